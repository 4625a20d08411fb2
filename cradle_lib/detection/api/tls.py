"""Which certificates a service has to have, by the environment's variables."""

from __future__ import annotations

import os
import ssl
from typing import Final

from cradle_lib.errors import EngineError

# The variables that httpx2 and OpenSSL know; the first that is set counts.
_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def tls_for(base: str, proxy: str | None) -> ssl.SSLContext:
    """Makes the TLS context for an endpoint and the way to it.

    Certificates are loaded only if the endpoint or its proxy is asked by HTTPS. Otherwise the
    context trusts nobody, and the environment's certificates can't stop the run.

    Raises:
        EngineError: If the environment names certificates that can't be loaded.
    """
    import httpx2

    if not any(url.lower().startswith("https:") for url in (base, proxy or "")):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    variable = next((name for name in _VARIABLES if os.environ.get(name)), None)
    # OpenSSL takes a missing folder for an empty one.
    if variable == "SSL_CERT_DIR" and not os.path.isdir(os.environ[variable]):
        raise _unusable(variable, "there is no such folder")
    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # Errors of OpenSSL are among them.
        if variable is None:
            raise EngineError(
                f"this machine's certificates can't be loaded ({error}). Set SSL_CERT_FILE to a "
                "file of certificates in PEM format."
            ) from None
        raise _unusable(variable, error.strerror or str(error)) from None


def _unusable(variable: str, why: str) -> EngineError:
    kind = (
        "file of certificates in PEM format"
        if variable == "SSL_CERT_FILE"
        else "folder of certificates"
    )
    return EngineError(
        f"the environment variable {variable} names {os.environ[variable]!r}, whose certificates "
        f"can't be loaded ({why}). Set it to a {kind} that has certificates, or unset it."
    )

"""Trusted certificates for the connection to a service."""

from __future__ import annotations

import os
import ssl
from typing import Final

from cradle_lib.errors import EngineError

# The variables that httpx2 and OpenSSL read.
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def tls_context(base: str, proxy: str | None) -> ssl.SSLContext:
    """Makes the TLS context for an endpoint and its proxy.

    Certificates are loaded only if the endpoint or its proxy uses HTTPS. Otherwise the context
    trusts no certificate, and the environment's certificates can't stop the run.

    Raises:
        EngineError: If the environment names certificates that can't be loaded.
    """
    import httpx2

    if not any(url.lower().startswith("https:") for url in (base, proxy or "")):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # OpenSSL's errors are OSErrors.
        named = [
            f"{name} names {os.environ[name]!r}" for name in _CERTIFICATES if os.environ.get(name)
        ]
        variables = " and ".join(named) or f"neither {' nor '.join(_CERTIFICATES)} is set"
        raise EngineError(
            f"certificates can't be loaded ({error.strerror or error}). In the environment, "
            f"{variables}. Set SSL_CERT_FILE to a file of certificates in PEM format, or unset it."
        ) from None

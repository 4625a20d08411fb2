"""The connection to a service: its address, the environment's proxy, and trusted certificates.

A proxy may see text and key, so addresses on this machine or a private network are called without
one. For any other host the environment's proxy is used, and the request for consent names it.
"""

from __future__ import annotations

import os
import ssl
import urllib.request
from typing import Final
from urllib.parse import urlsplit

from cradle_lib.detection.engine import find_engine
from cradle_lib.detection.model import Model, is_local_address
from cradle_lib.errors import EngineError

# The variables that httpx2 and OpenSSL read.
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def host_of(model: Model) -> str:
    """Gives the host of a model behind an API."""
    return urlsplit(_address(model)).hostname or ""


def proxy_of(model: Model) -> str | None:
    """Gives host and port of the proxy that a run uses; ``None`` without one."""
    found = find_proxy(_address(model))
    return None if found is None else host_and_port(found)


def find_proxy(url: str) -> str | None:
    """Finds the environment's proxy for an address, with user and password if it has them.

    ``None`` for this machine, private networks, and hosts in ``no_proxy``.

    Raises:
        EngineError: If the proxy is not an HTTP or HTTPS proxy.
    """
    parts = urlsplit(url)
    if is_local_address(url) or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    found = urlsplit(proxy)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise EngineError(
            f"the environment's proxy for {parts.hostname}, {found.scheme}://"
            f"{host_and_port(proxy)}, is neither an HTTP nor an HTTPS proxy. Set another one, or "
            "name the host in no_proxy."
        )
    return proxy


def host_and_port(url: str) -> str:
    """Gives host and port of an address, without user or password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _address(model: Model) -> str:
    return model.base_url or find_engine(model.engine).endpoint


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

"""Which way a request takes: through the environment's proxy, but never to a private address.

Text and key go where the registry says. A proxy sees both, or at least where they go, so that
an address on this machine or a private network is asked directly, whatever the environment
says; for any other host the environment's proxy is used, and whoever agrees is told its name.
"""

from __future__ import annotations

import urllib.request
from urllib.parse import urlsplit

from cradle_lib.detection.engine import find_engine
from cradle_lib.detection.models.model import Model, is_here
from cradle_lib.errors import EngineError


def host_of(model: Model) -> str:
    """Gives the host that a model behind an API is asked at."""
    return urlsplit(_address(model)).hostname or ""


def proxy_of(model: Model) -> str | None:
    """Says through whom the text of a run goes: the :func:`place_of` its proxy, or ``None``."""
    found = find_proxy(_address(model))
    return None if found is None else place_of(found)


def find_proxy(url: str) -> str | None:
    """Finds the environment's proxy for an address, with user and password if it has them.

    There is none for this machine and private networks, and for hosts in ``no_proxy``.

    Raises:
        EngineError: If the proxy is of a kind that can't be used.
    """
    parts = urlsplit(url)
    if is_here(url) or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    found = urlsplit(proxy)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise EngineError(
            f"the environment's proxy for {parts.hostname}, {found.scheme}://{place_of(proxy)}, is "
            "not of the kind http or https. Set another one, or name the host in no_proxy."
        )
    return proxy


def place_of(url: str) -> str:
    """Gives host and port of an address, without user or password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _address(model: Model) -> str:
    return model.base_url or find_engine(model.engine).endpoint

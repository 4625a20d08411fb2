"""Addresses of services: hosts, this machine and private networks, and the environment's proxy.

A proxy may see text and key, so addresses on this machine or a private network are called without
one. For any other host the environment's proxy is used, and the request for consent names it.
"""

from __future__ import annotations

import re
import urllib.request
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cradle_lib.detection.models.engine import find_engine
from cradle_lib.errors import EngineError

if TYPE_CHECKING:
    from cradle_lib.detection.models.model import Model

# Excludes user name, password, query and fragment, any of which could contain a key, and white
# space, which URL parsers remove, so that text would be sent to another host.
ADDRESS: Final = re.compile(
    r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[!-~]*)?"
)


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


def is_local_address(url: str) -> bool:
    """Whether an address is on this machine or a private network; its name is not looked up."""
    found = ADDRESS.fullmatch(url)
    host = found[1].strip("[]").removesuffix(".").lower() if found else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    return address.is_loopback or address.is_private

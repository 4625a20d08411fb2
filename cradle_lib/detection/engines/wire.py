"""The HTTP client that carries the SDKs' requests: aiohttp's connections, and nothing else.

A run makes thousands of calls of one kind to one address. What a general client does for each
of them (take the address apart, merge headers, look for redirects and cookies) costs more
processor time than the connection does. Both SDKs accept a client of one's own.
"""

from __future__ import annotations

import urllib.request
from functools import lru_cache
from typing import Any, Final

import aiohttp
import httpx2

# A run has one address, which is taken apart once.
_address: Final = lru_cache(maxsize=16)(httpx2.URL)


class Connections(httpx2.AsyncBaseTransport):
    """Keeps connections open, as many as are asked for, and sends one request over each.

    There is no limit of time: the caller sets one for the whole call.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[tuple[str, str], str | None] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request and reads the whole reply.

        Args:
            request: What to send; its body must be in memory.

        Returns:
            What came: a redirect, too, is an answer.

        Raises:
            httpx2.ConnectError: If there is no connection.
            httpx2.ReadError: If it ends before the reply does.
            httpx2.DecodingError: If the reply is not compressed as its header says.
        """
        if self._session is None:
            # Made here, because it belongs to the event loop that is running.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=httpx2.create_ssl_context()),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        try:
            async with self._session.request(
                request.method,
                str(request.url),
                data=request.content,
                headers=request.headers.multi_items(),
                allow_redirects=False,
                proxy=self._proxy(request.url),
            ) as reply:
                content = await reply.read()
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        except aiohttp.ClientError as error:
            raise httpx2.ReadError(str(error), request=request) from error
        return httpx2.Response(
            reply.status, headers=reply.raw_headers, content=content, request=request
        )

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    def _proxy(self, url: httpx2.URL) -> str | None:
        """Finds the environment's proxy for a host, once: aiohttp would ask for every call."""
        place = (url.scheme, url.host)
        if place not in self._proxies:
            proxies = urllib.request.getproxies()
            direct = urllib.request.proxy_bypass(url.host)
            proxy = None if direct else proxies.get(url.scheme) or proxies.get("all")
            self._proxies[place] = proxy
        return self._proxies[place]


class Wire(httpx2.AsyncClient):
    """Sends what an SDK asks for, word for word, and gives back what came."""

    def __init__(self) -> None:
        self._connections = Connections()
        super().__init__(transport=self._connections, timeout=None)

    def build_request(
        self,
        method: str,
        url: httpx2.URL | str,
        *,
        content: Any = None,
        headers: Any = None,
        **_: Any,
    ) -> httpx2.Request:
        """Makes a request of just these parts."""
        return httpx2.Request(method, _address(url), headers=headers, content=content)

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Sends a request; raises what :meth:`Connections.handle_async_request` does."""
        return await self._connections.handle_async_request(request)

"""What comes over the wire is what httpx2's own client brings, on real sockets."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable

import httpx2
import pytest

from cradle_lib.detection.engines.wire import Wire

BODY = '{"text": "what was said, with ü and \u2028"}'.encode()
# A head that says more than follows, and one that is none.
SHORT = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"
REPLIES = {
    "plain": b"HTTP/1.1 200 OK\r\nx-a: 1\r\nx-a: 2\r\ncontent-length: 2\r\n\r\n{}",
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "until the end": b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}",
    "empty": b"HTTP/1.1 204 No Content\r\n\r\n",
    "elsewhere": b"HTTP/1.1 307 T\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
    "cookie": b"HTTP/1.1 429 T\r\nset-cookie: a=b\r\ncontent-length: 1\r\n\r\nx",
    "gzip": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%s"
    % (len(gzip.compress(BODY, mtime=0)), gzip.compress(BODY, mtime=0)),
}
BROKEN = {
    "no gzip": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
    "short": SHORT,
    "no head": b"\x00\x01\x02 nothing\r\n\r\n",
    "nothing": b"",
}


class Listening:
    """A server that answers every request with the same bytes and then hangs up."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply
        self.requests: list[bytes] = []

    async def __aenter__(self) -> Listening:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        writer.write(self._reply)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


async def post(client: httpx2.AsyncClient, url: str) -> httpx2.Response:
    fields = {"authorization": "Bearer k", "content-type": "application/json", "x-b": "2"}
    request = client.build_request("POST", url + "/v1/chat?a=1", content=BODY, headers=fields)
    return await client.send(request, follow_redirects=False)


def brought(make: Callable[[], httpx2.AsyncClient], reply: bytes) -> tuple[object, bytes]:
    """What a client made of a reply (or its error's kind), and what it had sent."""

    async def ask() -> tuple[object, bytes]:
        async with Listening(reply) as server, make() as client:
            try:
                got = await post(client, server.url)
            except httpx2.RequestError as error:
                return type(error), server.requests[0]
            # A response that is made from whole bytes counts them, told or not.
            fields = [field for field in got.headers.multi_items() if field[0] != "content-length"]
            return (got.status_code, fields, got.content), server.requests[0]

    return asyncio.run(ask())


@pytest.mark.parametrize("name", REPLIES)
def test_it_brings_what_the_general_client_brings(name: str) -> None:
    got, sent = brought(Wire, REPLIES[name])
    expected, sent_by_other = brought(httpx2.AsyncClient, REPLIES[name])
    assert got == expected
    line, body = sent.split(b"\r\n", 1)[0], sent.rpartition(b"\r\n\r\n")[2]
    assert (line, body) == (b"POST /v1/chat?a=1 HTTP/1.1", BODY)
    assert (line, body) == (
        sent_by_other.split(b"\r\n", 1)[0],
        sent_by_other.rpartition(b"\r\n\r\n")[2],
    )
    for field in (b"authorization: bearer k", b"content-type: application/json", b"x-b: 2"):
        assert sent.lower().count(field) == 1


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reply_is_an_error_that_the_sdks_know(name: str) -> None:
    kind, _ = brought(Wire, BROKEN[name])
    other, _ = brought(httpx2.AsyncClient, BROKEN[name])
    assert isinstance(kind, type)
    assert isinstance(other, type)
    assert issubclass(kind, httpx2.RequestError)
    assert issubclass(other, httpx2.RequestError)


def test_nobody_listening_is_a_connect_error() -> None:
    async def ask() -> None:
        async with Listening(b"") as server:
            url = server.url
        async with Wire() as client:
            with pytest.raises(httpx2.ConnectError):
                await post(client, url)

    asyncio.run(ask())


def test_the_environment_names_a_proxy_and_whom_not_to_reach_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask() -> None:
        async with Listening(REPLIES["plain"]) as proxy, Listening(REPLIES["empty"]) as server:
            monkeypatch.setenv("http_proxy", proxy.url)
            monkeypatch.setenv("no_proxy", "")
            async with Wire() as client:
                assert (await post(client, "http://service.invalid")).content == b"{}"
            assert proxy.requests[0].startswith(b"POST http://service.invalid/v1/chat?a=1 ")
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            async with Wire() as client:
                assert (await post(client, server.url)).status_code == 204
            assert len(proxy.requests) == 1

    asyncio.run(ask())

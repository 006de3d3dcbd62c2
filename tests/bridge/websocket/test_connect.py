"""The client's way to a server: TLS, proxies, refusals and deadlines."""

import ssl
from base64 import b64encode
from http import HTTPStatus

import pytest
import trio
import trio.testing
import trustme

from bargein.websocket import (
    ConnectionClosedError,
    HandshakeRefusedError,
    accept,
    http_response,
    open_websocket,
    using,
)


class Place:
    """An echo on a loopback port, and perhaps a proxy before it."""

    def __init__(self):
        self.requests = []
        self.proxied = []

    async def echo(self, stream):
        opened = await accept(stream, lambda request: None)
        if opened is None:
            return
        request, connection = opened
        self.requests.append(request)
        try:
            async with using(connection) as websocket:
                while True:
                    await websocket.send(await websocket.receive())
        except* ConnectionClosedError:
            pass

    async def proxy(self, stream):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await stream.receive_some(1)
        self.proxied.append(head.decode())
        if b"Proxy-Authorization: Basic " + b64encode(b"ada:s3 cret") not in head:
            await stream.send_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            await stream.aclose()
            return
        host, _, port = head.split(b" ")[1].decode().rpartition(":")
        async with await trio.open_tcp_stream(host, int(port)) as server:
            await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pump, server, stream)
                await pump(stream, server)
                nursery.cancel_scope.cancel()


async def pump(source, sink):
    try:
        async for data in source:
            await sink.send_all(data)
        await sink.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


@pytest.fixture
async def place(nursery):
    """Serve an echo, over TLS too, and a proxy; each has its port."""
    it = Place()
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    it.client_tls = ssl.create_default_context()
    authority.configure_trust(it.client_tls)
    plain, secure, proxy = [
        (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0] for _ in range(3)
    ]
    it.port, it.tls_port, it.proxy_port = (
        one.socket.getsockname()[1] for one in (plain, secure, proxy)
    )
    secure = trio.SSLListener(secure, server, https_compatible=True)
    for handler, listener in ((it.echo, plain), (it.echo, secure), (it.proxy, proxy)):
        nursery.start_soon(trio.serve_listeners, handler, [listener])
    return it


async def says_hello(websocket):
    await websocket.send("hello")
    with trio.fail_after(10):
        return await websocket.receive() == "hello"


async def test_headers_reach_the_server(place):
    """Headers, origin, subprotocols and a user of the address go with the handshake."""
    async with open_websocket(
        f"ws://ada:pw@127.0.0.1:{place.port}/path?q=1",
        headers={"X-Key": "k", "User-Agent": "me"},
        origin="https://a.example",
        subprotocols=["v2", "v1"],
        proxy=None,
    ) as websocket:
        assert await says_hello(websocket)
    request = place.requests[0]
    assert request.path == "/path?q=1"
    assert request.headers["X-Key"] == "k"
    assert request.headers.get_all("User-Agent") == ["me"]
    assert request.headers["Origin"] == "https://a.example"
    assert request.headers["Sec-WebSocket-Protocol"] == "v2, v1"
    assert request.headers["Authorization"] == "Basic " + b64encode(b"ada:pw").decode()


async def test_tls_is_checked(place):
    """A certificate that is trusted opens the connection; another one is an OSError."""
    url = f"wss://localhost:{place.tls_port}/"
    async with open_websocket(url, ssl=place.client_tls, proxy=None) as websocket:
        assert await says_hello(websocket)
    with pytest.raises(OSError, match="TLS failed"):
        async with open_websocket(url, proxy=None):
            pass


async def test_connections_share_the_certificates_of_the_system(place, monkeypatch):
    """They are read once for all connections: each reading costs 20 ms of the loop, and 0.9 MB."""
    read = []
    really = ssl.create_default_context

    def create_default_context():
        read.append(1)
        return really()

    monkeypatch.setattr(ssl, "create_default_context", create_default_context)
    for _ in range(3):
        with pytest.raises(OSError, match="TLS failed"):
            async with open_websocket(f"wss://localhost:{place.tls_port}/", proxy=None):
                pass
    assert len(read) <= 1  # none, where another test has connected before


@pytest.mark.parametrize("scheme", ["ws", "wss"])
async def test_a_proxy_is_passed(place, scheme, monkeypatch):
    """Through a proxy, named or of the environment, with its user and password."""
    port = place.port if scheme == "ws" else place.tls_port
    proxy = f"http://ada:s3%20cret@127.0.0.1:{place.proxy_port}"
    url = f"{scheme}://localhost:{port}/"
    async with open_websocket(url, ssl=place.client_tls, proxy=proxy) as websocket:
        assert await says_hello(websocket)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with open_websocket(url, ssl=place.client_tls) as websocket:
        assert await says_hello(websocket)
    assert len(place.proxied) == 2
    monkeypatch.setenv("NO_PROXY", "localhost")
    monkeypatch.setenv("no_proxy", "localhost")
    async with open_websocket(url, ssl=place.client_tls) as websocket:
        assert await says_hello(websocket)
    assert len(place.proxied) == 2


async def test_a_proxy_that_refuses_is_told_of(place):
    """The status of the proxy is in the error, its password is not."""
    proxy = f"http://ada:wrong@127.0.0.1:{place.proxy_port}"
    with pytest.raises(ConnectionError, match="answered '407'") as failed:
        async with open_websocket(f"ws://127.0.0.1:{place.port}/", proxy=proxy):
            pass
    assert "wrong" not in str(failed.value)


@pytest.mark.parametrize("proxy", ["socks5://localhost:1", "localhost:8080", "http://"])
async def test_a_proxy_is_an_address(proxy):
    """What is no http address is an error that shows it."""
    with pytest.raises(ValueError, match=r"proxy: .* is not an http"):
        async with open_websocket("ws://127.0.0.1:9/", proxy=proxy):
            pass


@pytest.mark.parametrize("url", ["http://a", "ws://", "localhost", "ws://user@host", "ws://a#b"])
async def test_an_address_is_one_of_a_websocket(url):
    """What is no address is a ValueError, without a query that may hold a key."""
    with pytest.raises(ValueError, match="url: ") as failed:
        async with open_websocket(url + "?key=s3cret"):
            pass
    assert "s3cret" not in str(failed.value)


async def refused(autojump, serve, **options):
    mine, yours = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, yours)
        try:
            async with open_websocket("ws://vendor.example/?key=s3cret", stream=mine, **options):
                raise AssertionError("it was opened")
        except (OSError, ExceptionGroup) as error:
            nursery.cancel_scope.cancel()
            return error


async def test_a_refusal_has_status_headers_and_body(autojump_clock):
    """What a server says instead of opening a WebSocket can be read, and is no secret's leak."""

    def answer(request):
        response = http_response(HTTPStatus.UNAUTHORIZED, "application/json", b'{"error":"key"}')
        response.headers["X-Request-Id"] = "r1"
        return response

    error = await refused(autojump_clock, lambda stream: accept(stream, answer))
    assert isinstance(error, HandshakeRefusedError)
    assert (error.status, error.body) == (401, b'{"error":"key"}')
    assert error.headers["X-Request-Id"] == "r1"
    assert str(error) == (
        "vendor.example:80 answered 401 Unauthorized instead of opening a WebSocket"
    )


async def test_a_body_without_a_length_ends_with_the_line(autojump_clock):
    """A refusal whose body has no length is read to the end of the stream."""

    async def serve(stream):
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\nbusy")
        await stream.aclose()

    error = await refused(autojump_clock, serve)
    assert (error.status, error.body) == (503, b"busy")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x00" * 20_000,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: nonsense\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
    ],
)
async def test_what_is_no_answer_is_a_connection_error(autojump_clock, said):
    """A server that speaks something else, or nothing, is named in the error."""

    async def serve(stream):
        await stream.receive_some()
        await stream.send_all(said)
        await stream.aclose()

    error = await refused(autojump_clock, serve)
    assert isinstance(error, ConnectionError)
    assert "vendor.example:80" in str(error)
    assert "s3cret" not in str(error)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 101 Swi", b"HTTP/1.1 500 x\r\n\r\nno end"])
async def test_opening_has_a_deadline(autojump_clock, said):
    """A server that stalls in the handshake, wherever, is given up in time."""

    async def serve(stream):
        await stream.receive_some()
        await stream.send_all(said)
        await trio.sleep_forever()

    error = await refused(autojump_clock, serve, connect_s=7)
    assert isinstance(error, TimeoutError)
    assert trio.current_time() == 7


async def test_nobody_there_is_an_oserror():
    """A port without a server is what the operating system says it is."""
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        async with open_websocket("ws://127.0.0.1:9/", proxy=None):
            pass


async def test_an_error_in_the_block_comes_out_as_it_is(place):
    """No group is put around what the block raises, and the line is closed in good order."""
    with pytest.raises(KeyError, match="mine"):
        async with open_websocket(f"ws://127.0.0.1:{place.port}/", proxy=None):
            raise KeyError("mine")

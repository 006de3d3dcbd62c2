"""Plain HTTP: the page, health, metrics, and who may call."""

import re

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response

from bargein.bridge.server._access import Access
from bargein.bridge.server._http import SECURITY_HEADERS, Gate, call_request, is_loopback, load_page
from bargein.server import Metrics, sign_token
from bargein.websocket import HttpRequest

SECRET = "a secret of thirty-two bytes or more"

PAGE = {"/": ("text/html; charset=utf-8", b"<p>"), "/page/a.js": ("text/javascript", b"a")}


class Desk:
    """A gate with room for calls, and requests to it."""

    def __init__(self, **options):
        self.metrics = Metrics()
        self.why_not = None
        options = {"public": False, **options}
        access = Access(**{"listens_publicly": options["public"], **options})
        self.gate = Gate(self.metrics, lambda: self.why_not, access, page=PAGE)

    def ask(self, path, *, method="GET", host="localhost:8000", **headers):
        fields = Headers([("Host", host)])
        for name, value in headers.items():
            fields[name] = value
        request = HttpRequest(method, path, fields)
        response = self.gate.answer(request)
        if response is not None:
            self.gate.secure(request, response)
        return response

    def status(self, path, **headers):
        response = self.ask(path, **headers)
        return 101 if response is None else response.status_code


def test_the_page_has_its_type_and_the_security_headers():
    """Files are served with type, length and every security header."""
    response = Desk().ask("/page/a.js?x=1")
    assert (response.status_code, response.body) == (200, b"a")
    assert response.headers["Content-Type"] == "text/javascript"
    assert response.headers["Content-Length"] == "1"
    for name, value in SECURITY_HEADERS:
        assert response.headers[name] == value


def test_the_policy_of_the_page_is_exactly_this():
    """The content security policy allows the page's own files and its calls, nothing else."""
    assert Desk().ask("/").headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "connect-src 'self' ws://localhost:8000 wss://localhost:8000; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


@pytest.mark.parametrize(
    ("host", "calls"),
    [
        ("talk.example", " ws://talk.example wss://talk.example"),
        ("[::1]:8000", " ws://[::1]:8000 wss://[::1]:8000"),
        ("a.example; script-src *", ""),
        ("a.example *", ""),
        ("a.example:80800000", ""),
        ("", ""),
    ],
)
def test_a_host_that_is_none_never_gets_into_the_policy(host, calls):
    """The page may connect to the host that it was asked of; other text of Host is left out."""
    policy = Desk(public=True).ask("/", host=host).headers["Content-Security-Policy"]
    assert f"connect-src 'self'{calls}; img-src" in policy


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/nope", "/ws?mode=sing"])
def test_every_response_has_the_security_headers(path):
    """Refusals, health and metrics have the headers of the page."""
    headers = Desk().ask(path).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    for name, value in SECURITY_HEADERS:
        assert headers.get_all(name) == [value]


def test_the_handshake_has_them_too():
    """The response that opens a call gets the headers, each once."""
    response = Response(101, "Switching Protocols", Headers([("Cache-Control", "private")]))
    Gate.secure(HttpRequest("GET", "/ws", Headers([("Host", "localhost")])), response)
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers.get_all("Cache-Control") == ["private"]


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("ada", 101),
        ("ada@example.com", 101),
        ("%C3%A9t%C3%A9", 101),
        ("x" * 128, 101),
        ("", 400),
        ("x" * 129, 400),
        ("a/b", 400),
        ("a%20b", 400),
        ("a%00", 400),
        ("%EF%BF%BD%20", 400),
    ],
)
def test_a_conversation_has_a_plain_name(name, status):
    """Letters, digits and a few signs, at most 128; anything else is refused before the call."""
    desk = Desk()
    assert desk.status(f"/ws?conversation={name}") == status
    assert desk.metrics.rejected["conversation_refused"] == (status == 400)


def test_a_call_that_goes_on_needs_no_room():
    """The full server lets a client come back, but not while it drains."""
    desk = Desk()
    desk.why_not = "server_full"
    assert desk.status("/ws?resume=1") == 101
    assert desk.status("/ws") == 503
    desk.why_not = "draining"
    assert desk.status("/ws?resume=1") == 503


def test_an_app_is_told_how_a_client_asked():
    """Headers by lower-case names, the query, the conversation and the peer."""
    fields = Headers([("Host", "localhost"), ("Cookie", "a=1"), ("X-Two", "1"), ("X-Two", "2")])
    asked = call_request(
        HttpRequest("GET", "/ws?mode=text&conversation=ada&k=v&k=w", fields), "192.0.2.7"
    )
    assert (asked.mode, asked.conversation, asked.peer) == ("text", "ada", "192.0.2.7")
    assert asked.headers == {"host": "localhost", "cookie": "a=1", "x-two": "1, 2"}
    assert asked.query == {"mode": "text", "conversation": "ada", "k": "v"}
    assert call_request(HttpRequest("GET", "/ws", fields), "").conversation is None


def test_the_package_brings_its_page():
    """The page of the package is found, with its files below /page/ and nothing else."""
    page = load_page()
    assert page["/"] == page["/page/index.html"]
    assert page["/"][0] == "text/html; charset=utf-8"
    assert all(path == "/" or path.startswith("/page/") for path in page)
    assert any(path.endswith(".js") for path in page)
    assert not any(path.endswith((".py", ".pyc")) for path in page)


@pytest.mark.parametrize("path", ["/nope", "/page/", "/page/../events.py", "/page/%2e%2e/x", "//"])
def test_other_paths_are_not_found(path):
    """What is not listed is 404, whatever tricks the path plays."""
    assert Desk().status(path) == 404


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "DELETE"])
def test_other_methods_are_refused(method):
    """Only GET and HEAD are answered, and the answer says so."""
    response = Desk().ask("/healthz", method=method)
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, HEAD"


def test_health_is_for_everybody():
    """/healthz needs no token and no Host, and turns to 503 while draining."""
    desk = Desk(token="t")
    assert desk.status("/healthz", host="anything.example") == 200
    desk.why_not = "server_full"
    assert desk.status("/healthz") == 200
    desk.why_not = "draining"
    assert desk.status("/healthz") == 503


def test_metrics_are_text():
    """/metrics gives the counts in Prometheus' format."""
    response = Desk().ask("/metrics")
    assert b"bargein_calls_active 0" in response.body
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 101),
        ("localhost:8000", 101),
        ("127.0.0.1:8000", 101),
        ("127.9.9.9", 101),
        ("[::1]:8000", 101),
        ("me.localhost:1", 101),
        ("evil.example", 403),
        ("evil.example:8000", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("192.168.0.1", 403),
        ("", 403),
        ("[::1", 403),
    ],
)
def test_a_loopback_server_answers_to_its_own_names_only(host, status):
    """A foreign Host on a loopback server is DNS rebinding: page, metrics and calls refuse it."""
    desk = Desk()
    assert desk.status("/ws", host=host) == status
    assert desk.status("/", host=host) == (200 if status == 101 else 403)
    assert desk.status("/metrics", host=host) == (200 if status == 101 else 403)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("voice.example", 101),
        ("Voice.Example:8443", 101),
        ("voice.example.", 101),
        ("203.0.113.7:8000", 101),
        ("[2001:db8::7]", 101),
        ("localhost", 101),
        ("evil.example", 403),
        ("voice.example.evil.example", 403),
        ("evil.example:8000", 403),
        ("203.0.113.7.evil.example", 403),
        ("", 403),
    ],
)
def test_a_public_server_answers_to_its_names_and_to_addresses(host, status):
    """A foreign name may have been rebound to a public address as well; no address can be."""
    desk = Desk(public=True, host_names=["voice.example"])
    assert desk.status("/ws", host=host) == status
    assert desk.status("/", host=host) == (200 if status == 101 else 403)


def test_a_proxy_on_the_same_machine_names_its_host():
    """A loopback server that a proxy makes public answers to the names it was given alone."""
    desk = Desk(public=True, listens_publicly=False, host_names=["voice.example"])
    assert desk.status("/ws", host="voice.example") == 101
    assert desk.status("/ws", host="other.example") == 403
    assert desk.status("/ws", host="203.0.113.7") == 403
    origins = Desk(origins=["https://voice.example"])
    assert origins.status("/ws", host="voice.example") == 403


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 101),
        ("http://localhost:8000", 101),
        ("http://localhost:5173", 101),
        ("http://127.0.0.1:3000", 101),
        ("https://voice.example", 101),
        ("HTTPS://Voice.Example", 101),
        ("https://evil.example", 403),
        ("https://voice.example.evil.example", 403),
        ("https://voice.example:444", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_by_default_own_and_local_pages_may_call(origin, status):
    """Without `origins` a page may call its own server, and a local page any."""
    headers = {} if origin is None else {"Origin": origin}
    desk = Desk(public=False, host_names=["voice.example"])
    assert desk.status("/ws", host="voice.example", **headers) == status


def test_a_public_server_is_called_by_its_own_pages_only():
    """Whatever listens on a caller's own machine is no page of a public server."""
    desk = Desk(public=True, host_names=["voice.example"])
    assert desk.status("/ws", host="voice.example", Origin="https://voice.example") == 101
    assert desk.status("/ws", host="voice.example", Origin="http://localhost:5173") == 403


@pytest.mark.parametrize(
    ("options", "given", "status"),
    [
        ({}, None, 401),
        ({}, "x", 401),
        ({"token": "t"}, "t", 200),
        ({"token": "t"}, None, 401),
        ({"token": "t", "metrics_token": "m"}, "m", 200),
        ({"token": "t", "metrics_token": "m"}, "t", 200),
        ({"metrics_token": "m"}, "m", 200),
        ({"metrics_token": "m"}, "", 401),
        ({"token_secret": SECRET}, None, 401),
        ({"token_secret": SECRET}, sign_token(SECRET, "ada", lasts_s=9_000), 401),
        (
            {"token_secret": SECRET},
            sign_token(SECRET, "p", lasts_s=9_000, rights=["metrics"]),
            200,
        ),
    ],
)
def test_the_metrics_of_a_public_server_need_a_token(options, given, status):
    """The token, one of their own, or a signed one with the right to them; never nothing."""
    headers = {} if given is None else {"Authorization": f"Bearer {given}"}
    assert Desk(public=True, **options).status("/metrics", host="203.0.113.7", **headers) == status


def test_a_token_of_the_metrics_opens_no_call():
    """What a scraper holds lets nobody talk."""
    desk = Desk(token="t", metrics_token="m")
    assert desk.status("/ws", Authorization="Bearer m") == 401


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://a.example", 101),
        ("https://shop7.example", 101),
        ("https://shop.example", 403),
        ("https://shop7.example.evil", 403),
        ("http://localhost:8000", 403),
    ],
)
def test_given_origins_replace_the_default(origin, status):
    """With `origins` exactly those, whole, may call."""
    desk = Desk(origins=["https://a.example/", re.compile(r"https://shop\d\.example")])
    assert desk.status("/ws", Origin=origin) == status


def test_two_origins_are_none():
    """A request with two Origin headers is refused."""
    desk = Desk()
    headers = Headers([("Host", "localhost"), ("Origin", "http://localhost")])
    headers["Origin"] = "https://evil.example"
    assert desk.gate.answer(HttpRequest("GET", "/ws", headers)).status_code == 403


@pytest.mark.parametrize(
    ("path", "authorization", "status"),
    [
        ("/ws", None, 401),
        ("/ws", "Bearer s3cret", 101),
        ("/ws", "bearer s3cret", 101),
        ("/ws", "Bearer wrong", 401),
        ("/ws", "Basic s3cret", 401),
        ("/ws?token=s3cret", None, 101),
        ("/ws?token=wrong", None, 401),
        ("/ws?token=", None, 401),
        ("/ws?token=s3cret", "Bearer wrong", 401),
        ("/metrics", None, 401),
        ("/metrics", "Bearer s3cret", 200),
        ("/metrics?token=s3cret", None, 200),
        ("/", None, 200),
        ("/page/a.js", None, 200),
    ],
)
def test_a_token_guards_calls_and_metrics(path, authorization, status):
    """Calls and metrics need the token, in the header or the query; the page does not."""
    headers = {} if authorization is None else {"Authorization": authorization}
    desk = Desk(token="s3cret")
    assert desk.status(path, **headers) == status
    assert desk.metrics.rejected["unauthorized"] == (status == 401)


@pytest.mark.parametrize("why", ["server_full", "draining"])
def test_no_room_is_503_with_a_typed_error(why):
    """A refused call gets status 503, when to try again, and the reason as an error message."""
    desk = Desk()
    desk.why_not = why
    response = desk.ask("/ws")
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "5"
    assert f'"code":"{why}"'.encode() in response.body
    assert desk.metrics.rejected[why] == 1


@pytest.mark.parametrize(
    ("query", "status"), [("", 101), ("?mode=audio", 101), ("?mode=text", 101), ("?mode=x", 400)]
)
def test_the_mode_is_audio_or_text(query, status):
    """Any other mode is refused before the call."""
    assert Desk().status(f"/ws{query}") == status


@pytest.mark.parametrize(
    ("host", "yes"),
    [("localhost", True), ("127.0.0.53", True), ("::1", True), ("10.0.0.1", False), ("", False)],
)
def test_what_is_loopback(host, yes):
    """Names and addresses that are this machine by definition."""
    assert is_loopback(host) is yes


async def test_requests_over_a_connection(serving, autojump_clock):
    """The server answers plain requests, with POST refused and a body never read."""

    async def answer(call):
        pass

    async with serving(answer) as place:
        page = await place.request("GET / HTTP/1.1\nHost: localhost\n\n")
        assert page.startswith("HTTP/1.1 200 OK\r\n")
        assert "<html" in page
        assert "Server:" not in page
        head = await place.request("HEAD / HTTP/1.1\nHost: localhost\n\n")
        assert head.endswith("\r\n\r\n")
        length = re.search(r"Content-Length: (\d+)", head)
        assert length is not None
        assert int(length[1]) == len(page.partition("\r\n\r\n")[2].encode())
        post = await place.request("POST /metrics HTTP/1.1\nHost: localhost\n\n")
        assert " 405 " in post
        body = "POST / HTTP/1.1\nHost: localhost\nContent-Length: 3\n\nabc"
        assert " 405 " in await place.request(body)
        no_upgrade = await place.request("GET /ws HTTP/1.1\nHost: localhost\n\n")
        assert " 426 " in no_upgrade

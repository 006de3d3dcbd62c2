"""A wire that is not ours, on a real server: it gets all that the port has, over real sockets."""

import base64
import json
import time
from contextlib import asynccontextmanager

import pytest
import trio
from structlog.testing import capture_logs

from bargein import App, Refusal, current_run
from bargein.client import Spoken, open_caller
from bargein.events import AgentResponse, DTMFInput, UserAudio, UserStartedSpeaking
from bargein.server import Limits, open_server, sign_token
from bargein.websocket import ConnectionClosedError, HandshakeRefusedError, open_websocket
from bargein.wires import NativeWire, NewCall
from tests.media_wire import MediaSession, MediaWire, SignedMediaWire
from tests.plain_voice import PlainVoice

SECRET = "a secret of at least thirty-two bytes"
TOKEN = "a token of the tests"


@pytest.fixture
def tone_speech():
    """A voice that lasts 60 ms a character."""
    return PlainVoice(lambda text: bytes(2 * 24 * 60 * len(text)))


FRAME = json.dumps({"event": "media", "payload": base64.b64encode(bytes(640)).decode()})


async def teller(call):
    """Tells something at each key, and stops when the caller speaks."""
    agent = call.bridge(name="teller")
    heard = []
    agent.on(UserAudio).map(lambda m: heard.append(len(m.event.pcm)))

    async def tell(message):
        for _ in range(20):
            yield AgentResponse(content="A long tale about a fox. ")

    agent.on(DTMFInput, button="1").interrupt_on(UserStartedSpeaking).stream(tell).broadcast()
    agent.on(DTMFInput, button="2").map(lambda m: call.publish(UserStartedSpeaking()))
    agent.on(DTMFInput, button="3").map(lambda m: call.end("agent_ended"))


@asynccontextmanager
async def served(tone_speech, *wires, answer=teller, app=None, **options):
    """A server with the wire on a free port of this machine."""
    wires = wires or (MediaWire(),)
    app = App(answer, speech=tone_speech, name="teller", **(app or {}))
    async with open_server(app, port=0, wires=wires, **options) as server:
        yield server


def address(server, query=""):
    return f"ws://127.0.0.1:{server.port}/media{query}"


async def until(condition):
    """Wait until something is true, over real sockets."""
    with trio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - a socket, not a task, makes it true
            await trio.sleep(0.01)


async def hang_up(url):
    """Call, hang up, and wait for the end."""
    async with open_websocket(url) as socket:
        await socket.send(json.dumps({"event": "stop"}))
        await socket.receive()


class Phone:
    """The other end: echoes marks, and counts what it hears."""

    def __init__(self, socket):
        self.socket = socket
        self.heard = []

    async def press(self, digit):
        await self.socket.send(json.dumps({"event": "dtmf", "digit": digit}))

    async def read(self, *, until="never"):
        """Take messages until one of a kind."""
        with trio.fail_after(10):
            while True:
                message = json.loads(await self.socket.receive())
                self.heard.append(message["event"])
                if message["event"] == "mark":
                    await self.socket.send(json.dumps(message))
                if message["event"] == until:
                    return


async def test_a_call_over_it_is_a_call_like_any_other(tone_speech):
    """It is heard, talked over, counted in the metrics, and told in the log when it hangs up."""
    with capture_logs() as logs:
        async with served(tone_speech) as server:
            async with open_websocket(address(server)) as socket:
                phone = Phone(socket)
                await socket.send(json.dumps({"event": "start"}))
                for _ in range(3):
                    await socket.send(FRAME)
                await phone.press("1")
                await phone.read(until="mark")
                await until(lambda: server.metrics.frames_in == 3)
                assert server.calls == 1
                assert server.metrics.calls_active == 1
                await phone.press("2")
                await phone.read(until="clear")
                await socket.send(json.dumps({"event": "mark", "name": "0:999999"}))  # ignored
                await socket.send("nonsense")
                await socket.send(json.dumps({"event": "stop"}))
                with pytest.raises(ConnectionClosedError) as closed:
                    await phone.read()
            await until(lambda: server.calls == 0)
            assert server.metrics.barge_ins == 1
            assert server.metrics.frames_out > 0
            assert server.metrics.answers["interrupted"] == 1
            assert server.metrics.calls["hangup"] == 1
    assert closed.value.code == 1000
    assert "media" not in phone.heard[phone.heard.index("clear") :]
    (over,) = [line for line in logs if line["event"] == "call_over"]
    assert over["reason"] == "hangup"
    assert over["audio"] is True
    assert over["barge_ins"] == 1
    assert over["refused"] == 1


async def test_it_needs_a_token_as_any_other(tone_speech):
    """A stranger gets 401, late; the bearer of the token calls."""
    async with served(tone_speech, token=TOKEN) as server:
        with pytest.raises(HandshakeRefusedError) as refused:
            async with open_websocket(address(server)):
                pass
        assert refused.value.status == 401
        assert server.metrics.rejected["unauthorized"] == 1
        async with open_websocket(address(server, f"?token={TOKEN.replace(' ', '+')}")) as socket:
            await Phone(socket).press("1")
            await Phone(socket).read(until="media")


async def test_it_asks_the_app(tone_speech):
    """The app admits its callers, and sees how they ask."""
    asked = []

    def admit(request):
        asked.append((request.mode, request.query["who"]))
        return Refusal("not you")

    async with served(tone_speech, app={"admit": admit}) as server:
        with pytest.raises(HandshakeRefusedError) as refused:
            async with open_websocket(address(server, "?who=fox")):
                pass
    assert refused.value.status == 403
    assert b"not you" in refused.value.body
    assert asked == [("audio", "fox")]


async def test_a_wire_refuses_what_is_not_right(tone_speech):
    """What a wire refuses is counted, and answered with its code and its text."""
    async with served(tone_speech) as server:
        with pytest.raises(HandshakeRefusedError) as refused:
            async with open_websocket(address(server, "?version=2")):
                pass
        assert refused.value.status == 400
        assert json.loads(refused.value.body) == {
            "type": "error",
            "code": "bad_message",
            "message": "this speaks version 1",
        }
        assert server.metrics.rejected["bad_message"] == 1


async def test_its_calls_are_limited_as_any_other(tone_speech):
    """There is no call above the limit of all, nor above that of an address."""
    limits = Limits(max_calls=2, calls_per_address=1)
    proxies = {"trusted_proxies": ("127.0.0.1",), "token": TOKEN, "limits": limits}
    ask = {"Authorization": f"Bearer {TOKEN}"}
    one, other = "203.0.113.1", "203.0.113.2"
    async with served(tone_speech, **proxies) as server:

        async def refused_to(whom):
            with pytest.raises(HandshakeRefusedError) as refused:
                async with open_websocket(address(server), headers=ask | {"X-Forwarded-For": whom}):
                    pass
            return refused.value.status

        async with open_websocket(address(server), headers=ask | {"X-Forwarded-For": one}):
            await until(lambda: server.calls == 1)
            assert await refused_to(one) == 429
            async with open_websocket(address(server), headers=ask | {"X-Forwarded-For": other}):
                await until(lambda: server.calls == 2)
                assert await refused_to("203.0.113.3") == 503


async def test_its_calls_end_with_the_server(tone_speech):
    """A server that drains ends them with the reason that others get, and closes in order."""
    with capture_logs() as logs:
        async with served(tone_speech) as server, trio.open_nursery() as nursery:

            async def call():
                async with open_websocket(address(server)) as socket:
                    with pytest.raises(ConnectionClosedError) as closed:
                        await Phone(socket).read()
                assert closed.value.code == 1000

            nursery.start_soon(call)
            await until(lambda: server.calls == 1)
            await server.drain()
    assert [line["reason"] for line in logs if line["event"] == "call_over"] == ["shutdown"]


async def test_its_calls_end_with_their_user_and_their_token(tone_speech):
    """Whoever is sent away, or whose token expires, loses the call on any wire."""
    with capture_logs() as logs:
        async with served(tone_speech, token_secret=SECRET, calls_expire=True) as server:
            for user, lasts_s in (("ada", 60), ("bob", 1)):
                token = sign_token(SECRET, user, lasts_s=lasts_s, now_s=time.time())
                async with open_websocket(address(server, f"?token={token}")) as socket:
                    await until(lambda: server.calls == 1)
                    assert server.end_calls(user="ada") == (user == "ada")
                    with pytest.raises(ConnectionClosedError):
                        await Phone(socket).read()
                await until(lambda: server.calls == 0)
    over = [line["reason"] for line in logs if line["event"] == "call_over"]
    assert over == ["revoked", "token_expired"]


async def test_operators_see_its_questions(tone_speech):
    """Whoever watches the server is asked about calls of any wire, and answers them."""
    verdicts = []

    async def payer(call):
        async def pay(message):
            run, euros = current_run(), {"euros": 7}
            verdicts.append(await call.permissions.ask("q1", "pay", euros, run, by="operator"))
            yield AgentResponse(content="Done.")

        call.bridge(name="payer").on(DTMFInput).stream(pay).broadcast()

    bearer = {}
    for user, rights in (("eve", ["operator"]), ("ada", [])):
        token = sign_token(SECRET, user, lasts_s=60, rights=rights)
        bearer[user] = {"Authorization": f"Bearer {token}"}
    async with served(tone_speech, answer=payer, token_secret=SECRET) as server:
        where = address(server).removesuffix("/media") + "/watch"
        with pytest.raises(HandshakeRefusedError):
            async with open_websocket(where, headers=bearer["ada"]):
                pass
        async with (
            open_websocket(where, headers=bearer["eve"]) as operator,
            open_websocket(address(server), headers=bearer["ada"]) as socket,
        ):
            await Phone(socket).press("5")
            with trio.fail_after(10):
                question = json.loads(await operator.receive())
            assert (question["user"], question["arguments"]) == ("ada", {"euros": 7})
            answer = {"type": "permission", "call": question["call"], "id": "q1", "allow": True}
            await operator.send(json.dumps(answer))
            await until(lambda: verdicts == ["allowed"])


@pytest.mark.proof
async def test_its_silent_caller_is_let_go(tone_speech):
    """A caller that sends nothing for too long has left, though the line is up."""
    async with (
        served(tone_speech, limits=Limits(silence_s=1.0)) as server,
        open_websocket(address(server)) as socket,
    ):
        with pytest.raises(ConnectionClosedError):
            await Phone(socket).read()
        await until(lambda: server.metrics.calls["silence"] == 1)


async def test_two_wires_share_a_port(tone_speech):
    """The native one stays as it is beside another, and each has its own calls."""
    async with (
        served(tone_speech, NativeWire(), MediaWire()) as server,
        open_caller(server.url, mode="text") as caller,
        open_websocket(address(server)) as socket,
    ):
        phone = Phone(socket)
        await phone.press("1")
        await phone.read(until="media")
        caller.press("1")
        await caller.wait_for(Spoken)
        assert server.calls == 2


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (("/ws",), "both have '/ws'"),
        (("/watch",), "the server's own"),
        (("/page/x",), "the server's own"),
        (("media",), "a path is such as"),
        (("/m?x=1",), "a path is such as"),
    ],
)
async def test_a_path_belongs_to_one_wire(paths, said):
    """A path that somebody else has, or that is none, is a mistake when the server opens."""
    wire = MediaWire()
    wire.paths = paths
    with pytest.raises(ValueError, match=said):
        async with open_server(App(teller), port=0, wires=(NativeWire(), wire)):
            pass


async def test_a_path_below_a_wires_own_is_its(tone_speech):
    """A path that ends in a slash stands for all below it, where a carrier puts its secrets."""
    wire = MediaWire()
    wire.paths = ("/media/",)
    async with (
        served(tone_speech, wire) as server,
        open_websocket(address(server, "/a-secret/of/one/call")),
    ):
        await until(lambda: server.calls == 1)


async def test_a_server_needs_a_wire():
    """No wires at all, or an object that is none, is a mistake when the server opens."""
    with pytest.raises(ValueError, match="nobody could call"):
        async with open_server(App(teller), port=0, wires=()):
            pass
    for wrong, said in (
        (("native",), "answer\\(\\) and session"),
        (MediaWire(), "a list of wires"),
        ((MediaWire,), "such as MediaWire\\(\\)"),
    ):
        with pytest.raises(TypeError, match=said):
            async with open_server(App(teller), port=0, wires=wrong):
                pass


@pytest.mark.parametrize("where", ["answer", "session", "run", "counts", "nothing to say"])
async def test_a_wire_that_raises_ends_only_what_it_was_asked_about(where, tone_speech):
    """Its mistake ends one request or one session; the server and its other calls go on."""

    class Broken(MediaWire):
        name = "broken"
        paths = ("/broken",)
        webhooks = ()

        def answer(self, request):
            if where == "answer":
                raise LookupError(where)
            return None if where == "nothing to say" else NewCall()

        def session(self, connection, call):
            if where == "session":
                raise LookupError(where)
            session = MediaSession(connection, call)
            if where in ("run", "counts"):
                setattr(session, where, lambda: 1 / 0)
            return session

    with capture_logs() as logs:
        async with (
            served(tone_speech, MediaWire(), Broken()) as server,
            open_websocket(address(server)) as socket,
        ):
            await until(lambda: server.calls == 1)
            refused_at_once = where in ("answer", "nothing to say")
            with pytest.raises(HandshakeRefusedError if refused_at_once else ConnectionClosedError):
                await hang_up(f"ws://127.0.0.1:{server.port}/broken")
            await until(lambda: server.calls == 1)
            await Phone(socket).press("1")
            await Phone(socket).read(until="media")
    failed = [line for line in logs if line["event"] in ("wire_failed", "session_failed")]
    assert len(failed) == 1


async def test_a_carrier_that_signs_needs_no_token_and_is_no_address(tone_speech):
    """What a wire knows by itself is admitted as that sender; all others need the token."""
    limits = Limits(calls_per_address=1)
    options = {"trusted_proxies": ("127.0.0.1",), "token": TOKEN, "limits": limits}
    ask = {"X-Signature": "right", "X-Forwarded-For": "203.0.113.1"}
    async with served(tone_speech, SignedMediaWire(), **options) as server:
        async with (
            open_websocket(address(server), headers=ask),
            open_websocket(address(server), headers=ask),
        ):
            await until(lambda: server.calls == 2)
            assert server.end_calls(user="carrier") == 2
        with pytest.raises(HandshakeRefusedError) as refused:
            async with open_websocket(address(server), headers=ask | {"X-Signature": "wrong"}):
                pass
        assert refused.value.status == 401

"""A port without sockets: another server accepts the connections, and the port has all the rest."""

import json

import trio
from websockets.datastructures import Headers

from bargein import App
from bargein.events import AgentResponse, UserTranscriptionReceived
from bargein.protocol import TextInput, encode
from bargein.server import open_server
from bargein.websocket import HttpRequest

TOKEN = "a-token-of-the-tests"


async def echo(call):
    agent = call.bridge(name="echo")
    agent.on(UserTranscriptionReceived).map(
        lambda message: AgentResponse(content=message.event.content)
    ).broadcast()


class OthersConnection:
    """A WebSocket that somebody else has accepted, such as a framework of the web."""

    close_s = 2.0
    close_sent = None
    was_closed_by_peer = False

    def __init__(self):
        self.is_over = False
        self.message_at_s = trio.current_time()
        self.close_code = 1006
        self.closed_with = (1000, "")
        self.sent = []
        self._inbox, self._received = trio.open_memory_channel(100)
        self._scope = trio.CancelScope()

    @property
    def is_open(self):
        return not self.is_over

    def say(self, data):
        self._inbox.send_nowait(data)

    def leave(self, code):
        self.close_code, self.was_closed_by_peer = code, True
        self._inbox.close()

    def end_with(self, code, reason=""):
        self.closed_with = (code, reason)

    def cut(self, why="cut"):
        self._scope.cancel()

    def check(self, now_s):
        """Do nothing: the other server notices who is gone."""

    async def first(self):
        return await self._received.receive()

    async def run(self, source, take, may_read=None):
        wake = trio.Event()

        def notified():
            wake.set()

        async def write():
            nonlocal wake
            while True:
                wake = trio.Event()
                while (data := source.next()) is not None:
                    self.sent.append(data)
                if source.is_closed:
                    self.close_sent = self.close_code = self.closed_with[0]
                    nursery.cancel_scope.cancel()
                    return
                await wake.wait()

        source.notify(notified)
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                if may_read is not None:
                    await may_read()
                async for data in self._received:
                    self.message_at_s = trio.current_time()
                    take(data)
                nursery.cancel_scope.cancel()
        self.is_over = True


def request(path, **headers):
    return HttpRequest("GET", path, Headers({"Host": "127.0.0.1", **headers}))


async def test_a_port_needs_no_sockets(autojump_clock):
    """It admits a request by the same rule, and carries a connection that is not its own."""
    async with open_server(App(echo), listeners=(), token=TOKEN) as server:
        assert server.port == 0
        refused = await server.pending("203.0.113.7", secure=True).answer(request("/ws?mode=text"))
        assert refused.status_code == 401
        healthy = await server.pending("203.0.113.7", secure=True).answer(request("/healthz"))
        assert healthy.status_code == 200
        pending = server.pending("203.0.113.7", secure=True)
        asked = request("/ws?mode=text", Authorization=f"Bearer {TOKEN}")
        assert await pending.answer(asked) is None
        connection = OthersConnection()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.carry(pending), connection)
            connection.say(encode(TextInput(text="hello")))
            await trio.sleep(1)
            said = [json.loads(data) for data in connection.sent]
            assert said[0]["type"] == "hello"
            assert [one["text"] for one in said if one["type"] == "spoken"] == ["hello"]
            assert server.calls == 1
            connection.leave(1000)
        assert server.metrics.calls["disconnected"] == 1


async def test_such_a_call_ends_with_the_server(autojump_clock):
    """A server that drains says goodbye over any connection."""
    connection = OthersConnection()
    async with (
        trio.open_nursery() as nursery,
        open_server(App(echo), listeners=()) as server,
    ):
        pending = server.pending("203.0.113.7", secure=True)
        assert await pending.answer(request("/ws?mode=text")) is None
        nursery.start_soon(server.carry(pending), connection)
        await trio.sleep(1)
    assert json.loads(connection.sent[-1]) == {"type": "ended", "reason": "shutdown"}
    assert connection.close_sent == 1000

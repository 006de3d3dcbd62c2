"""A store of journals in trouble, under a call that talks: paused, slow, full, killed, moved."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import trio

from bargein.client import open_caller
from tests.bridge.stopping import PATIENCE_S, port_of, program

from .redis_server import redis_server
from .test_killed_workers import text_of

AGENT = """
import trio
from bargein import App
from bargein.events import AgentResponse, UserTranscriptionReceived


async def answer(call):
    agent = call.bridge(name="counts")

    async def reply(message):
        for number in range(WORDS):
            yield AgentResponse(content=f"w{number} ")
            if call.resumed is None:  # whatever was said already comes at once
                await trio.sleep(0.05)

    agent.on(UserTranscriptionReceived).stream(reply).broadcast()


app = App(answer)
"""

SLOW_S = 0.3


class Relay:
    """What stands between servers and a Redis, as a proxy does that follows its fail-over.

    Attributes:
        port: The Redis that it leads to.
        delay_s: How long each answer is kept.
    """

    def __init__(self, port: int) -> None:
        self.port, self.delay_s = port, 0.0
        self._moved = trio.Event()

    def lead_to(self, port: int) -> None:
        """Break all connections; those that come go to another Redis."""
        self.port = port
        self._moved.set()
        self._moved = trio.Event()

    async def carry(self, stream: trio.SocketStream) -> None:
        """Carry one connection."""
        with trio.CancelScope() as scope:
            try:
                upstream = await trio.open_tcp_stream("127.0.0.1", self.port)
            except OSError:
                return
            ends = self._moved
            async with upstream, trio.open_nursery() as nursery:
                nursery.start_soon(self._pump, stream, upstream, scope, False)
                nursery.start_soon(self._pump, upstream, stream, scope, True)
                await ends.wait()
                scope.cancel()

    async def _pump(self, source, target, scope, is_answer) -> None:
        try:
            async for data in source:
                if is_answer and self.delay_s:
                    await trio.sleep(self.delay_s)
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()


def silences(folder: Path, seconds: float) -> dict[str, float]:
    """Run a call through all troubles, kill its server at last, and let another one go on.

    Args:
        folder: For files.
        seconds: How long each trouble lasts.

    Returns:
        The longest silence between two words while each lasted, in seconds.

    Raises:
        AssertionError: A word was lost, or said twice.
    """
    words = round((7 * seconds + 16) / 0.05)
    (folder / "agent.py").write_text(AGENT.replace("WORDS", str(words)))
    found: dict[str, float] = {}

    async def main() -> None:
        with ExitStack() as stack:
            redis = stack.enter_context(redis_server(folder))
            spare = stack.enter_context(redis_server(folder))
            spare.ask("REPLICAOF", "127.0.0.1", str(redis.port))
            relay = Relay(redis.port)
            async with trio.open_nursery() as nursery:
                (listener,) = await nursery.start(
                    partial(trio.serve_tcp, relay.carry, 0, host="127.0.0.1")
                )
                url = f"redis://127.0.0.1:{listener.socket.getsockname()[1]}"
                start = partial(program, folder, "serve", "--port", "0", "--cluster", url)
                servers = [stack.enter_context(start()) for _ in range(2)]
                for server in servers:
                    await trio.to_thread.run_sync(server.until, '"server_started"')
                ports = [port_of(server.text) for server in servers]
                talk = Talk(ports, words)
                nursery.start_soon(talk.run)
                await talk.after(1.0)

                redis.ask("CLIENT", "PAUSE", str(round(seconds * 1000)), "ALL")
                found["paused"] = await talk.after(seconds + 1)
                redis.stop()
                nursery.start_soon(talk.ring_once)
                found["stopped"] = await talk.after(max(seconds, 3.0))
                found["opening"] = talk.opening_s
                redis.go_on()
                await talk.after(1.0)
                relay.delay_s = SLOW_S
                found["slow"] = await talk.after(seconds)
                relay.delay_s = 0.0
                redis.ask("CONFIG", "SET", "maxmemory", "1")
                found["full"] = await talk.after(seconds)
                redis.ask("CONFIG", "SET", "maxmemory", "0")
                await talk.after(1.0)
                redis.kill()
                found["killed"] = await talk.after(seconds)
                redis.start()
                await talk.after(1.5)
                spare.ask("REPLICAOF", "NO", "ONE")
                redis.kill()
                relay.lead_to(spare.port)
                found["failed over"] = await talk.after(seconds + 1.5)
                await trio.to_thread.run_sync(servers[0].until, '"call_without_journal"')
                counted = b"bargein_calls_without_journal_total 1"
                assert counted in await metrics_of(ports[0])
                ports.reverse()
                os.kill(servers[0].process.pid, signal.SIGKILL)
                found["server killed"] = await talk.end()
                nursery.cancel_scope.cancel()

    trio.run(main)
    return found


async def metrics_of(port: int) -> bytes:
    """Return the numbers of a server."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b""
        with trio.move_on_after(PATIENCE_S):
            while b"calls_without_journal_total " not in text:
                text += await stream.receive_some()
        return text


class Talk:
    """A caller who listens to an agent that counts."""

    def __init__(self, ports: list[int], words: int) -> None:
        self._ports, self._words = ports, words
        self._longest_s = 0.0
        self._over = trio.Event()
        self.text = ""
        self.opening_s = float("inf")

    async def ring_once(self) -> None:
        """Open another call, which has no journal, and hang up."""
        began_s = trio.current_time()
        way = {"mode": "text", "stream": self._connect, "reconnect": False}
        async with open_caller("ws://127.0.0.1/ws", **way):
            self.opening_s = trio.current_time() - began_s

    async def run(self) -> None:
        """Listen to the last word."""
        async with open_caller("ws://127.0.0.1/ws", mode="text", stream=self._connect) as caller:
            caller.write("count")
            last_s = trio.current_time()
            while f"w{self._words - 1}" not in self.text:
                await trio.sleep(0.01)
                now = text_of(caller)
                if now != self.text:
                    self._longest_s = max(self._longest_s, trio.current_time() - last_s)
                    last_s, self.text = trio.current_time(), now
        self._over.set()

    async def _connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self._ports[0])

    async def after(self, seconds: float) -> float:
        """Wait, and return the longest silence meanwhile."""
        self._longest_s = 0.0
        await trio.sleep(seconds)
        return self._longest_s

    async def end(self) -> float:
        """Wait for the last word, and return the longest silence meanwhile."""
        self._longest_s = 0.0
        with trio.fail_after(PATIENCE_S + 0.1 * self._words):
            await self._over.wait()
        assert self.text == "".join(f"w{number} " for number in range(self._words))
        return self._longest_s


def main() -> None:
    """Print the silences, and fail if one is too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each trouble (%(default)g)")
    parser.add_argument("--seed", type=int, help="is not used: nothing is random")
    with tempfile.TemporaryDirectory() as folder:
        found = silences(Path(folder), parser.parse_args().seconds)
    for trouble, silence_s in found.items():
        print(f"{trouble}: longest silence {silence_s:.2f} s")
    assert found.pop("opening") <= 2.5, found
    del found["server killed"]
    assert max(found.values()) <= 0.3, found


if __name__ == "__main__":
    main()

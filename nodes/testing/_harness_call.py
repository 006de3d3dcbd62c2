"""A call over a platform under test that hears and speaks, in memory and in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, final

import trio

from bargein.bridge import App, Call
from bargein.bridge.server import Server, open_server
from bargein.bridge.testing.heard_answers import heard_answers
from bargein.bridge.wires import Wire
from bargein.nodes.fakes import MemoryListener

__all__ = ["HarnessCall", "open_harness"]


class HarnessLine(Protocol):
    """A caller, and the platform that hears and speaks for the agent."""

    async def says(self, text: str) -> None:
        """Speak, over the agent if it speaks; return when the platform has told the words."""
        ...

    async def quiet(self, for_s: float = 3.0) -> None:
        """Wait until the agent has said nothing for a while, or the call is over."""
        ...


LineT = TypeVar("LineT", bound=HarnessLine)
LineT_co = TypeVar("LineT_co", bound=HarnessLine, covariant=True)


class FakeHarness(Protocol[LineT_co]):
    """A fake of a platform: ``FakeLineHarness()``."""

    def wire(self) -> Wire:
        """Return the wire that it calls."""
        ...

    def call(
        self, dial: Callable[[], Awaitable[trio.abc.Stream]], /
    ) -> AbstractAsyncContextManager[LineT_co]:
        """Let a caller call, until the end of the block or of the call."""
        ...


@final
@dataclass(frozen=True, slots=True)
class HarnessCall(Generic[LineT]):
    """A call over a platform under test; made by ``open_harness()``."""

    call: Call
    """The call, as the agent sees it."""
    line: LineT
    """The caller and the platform: what was really heard is ``line.heard``."""
    server: Server
    """The server."""

    @property
    def heard(self) -> str:
        """What the caller has heard of the agents so far, according to the call's history.

        A line break separates what different answers have said.
        """
        return "\n".join(map(str.strip, heard_answers(self.call)))

    async def says(self, text: str) -> None:
        """Speak, over the agent if it speaks; return when the platform has told the words."""
        await self.line.says(text)

    async def quiet(self) -> None:
        """Wait until the agent has said nothing for three seconds, or the call is over."""
        await self.line.quiet()


@asynccontextmanager
async def open_harness(
    answer: Callable[[Call], Awaitable[object]] | App, harness: FakeHarness[LineT]
) -> AsyncIterator[HarnessCall[LineT]]:
    """Let a platform call an agent, without a network; leaving the block hangs up.

    Under a mock clock a call takes milliseconds, and all times are exact.

    Args:
        answer: What answers, or an app.
        harness: The platform.

    Yields:
        The call.

    Raises:
        HttpRefusedError: The server does not take the call.
        HandshakeRefusedError: It refuses the socket.
    """
    app = copy(answer) if isinstance(answer, App) else App(answer)
    opened: list[Call] = []
    is_open = trio.Event()
    own_answer = app.answer

    async def answer_and_tell(call: Call) -> None:
        opened.append(call)
        is_open.set()
        await own_answer(call)

    app.answer = answer_and_tell
    door = MemoryListener()
    async with (
        open_server(app, wires=(harness.wire(),), listeners=[door]) as server,
        harness.call(door.dial) as line,
    ):
        await is_open.wait()
        yield HarnessCall(opened[0], line, server)

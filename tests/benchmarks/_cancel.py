"""The verb ``cancel`` on a sleeping tool: the time to its receipt, and until everything has
settled.

Every call has a running tool and gets a frame of its caller every 20 ms. One call at a time is
cancelled at a random moment and started again. Bare trio cancels the scope of a sleeping task.
"""

from __future__ import annotations

import gc
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Protocol

import trio
import trio.testing

from bargein import App, Call, ChatNode
from bargein.events import UserAudio, UserStoppedSpeaking, UserTranscriptionReceived
from bargein.llm import TextDelta, ToolCallRequest, Usage
from bargein.tools import Tool, tool

from ._bare import Table
from ._measure import Row, Size, row_of
from ._talk import EVERY_S, Line, frames

MOST_S = 3.0
"""How long a round may take, in seconds."""

PAUSE_S = 0.006
"""The longest pause between two cancels, in seconds."""


@dataclass(frozen=True, slots=True)
class _Took:
    """How long one cancel took, in µs."""

    receipt: float
    """Until the receipt was returned; in bare trio until ``scope.cancel()`` returned."""
    over: float
    """Until the tool's ``finally``."""
    settled: float
    """Until the task that waits for its end was woken."""


_WHAT = {"receipt": "accepted", "over": "the tool's finally", "settled": "settled"}


class _Side(Protocol):
    running: trio.Event

    def begin(self) -> None:
        """Start the tool."""

    async def cancel(self) -> _Took:
        """Cancel the tool and wait until it has settled."""


class _Sleeper:
    """The tool."""

    def __init__(self) -> None:
        self.running = trio.Event()
        self.over_ns = 0

    async def sleep(self) -> None:
        """Sleep until cancelled."""
        try:
            self.running.set()
            await trio.sleep_forever()
        finally:
            self.over_ns = perf_counter_ns()


def _took(began_ns: int, receipt_ns: int, over_ns: int) -> _Took:
    now_ns = perf_counter_ns()
    return _Took(*((at_ns - began_ns) / 1000 for at_ns in (receipt_ns, over_ns, now_ns)))


class _Bare(_Sleeper):
    """A task in its own cancel scope."""

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__()
        self._nursery = nursery
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    def begin(self) -> None:
        self.running, self._ended = trio.Event(), trio.Event()
        self._scope = trio.CancelScope()
        self._nursery.start_soon(self._work)

    async def _work(self) -> None:
        with self._scope:
            await self.sleep()
        self._ended.set()

    async def cancel(self) -> _Took:
        began = perf_counter_ns()
        self._scope.cancel()
        returned = perf_counter_ns()
        await self._ended.wait()
        return _took(began, returned, self.over_ns)


class _Ours(_Sleeper):
    """A call whose model always calls the tool."""

    def __init__(self) -> None:
        super().__init__()
        self._call: Call | None = None

    def tool(self) -> Tool:
        """Return the tool."""

        @tool(read_only=True)
        async def wait() -> str:
            """Wait for ever."""
            await self.sleep()
            return ""

        return wait

    async def answer(self, call: Call) -> None:
        """Answer the call."""
        self._call = call
        node = ChatNode(_Model(), tools=[self.tool()])
        call.bridge(node, name="agent").on(UserStoppedSpeaking).stream(node.generate).broadcast()

    def begin(self) -> None:
        assert self._call is not None
        self.running = trio.Event()
        self._call.publish(UserTranscriptionReceived(content="Please wait."))
        self._call.publish(UserStoppedSpeaking())

    async def cancel(self) -> _Took:
        assert self._call is not None
        handle = self._call.handle
        began = perf_counter_ns()
        receipt = handle.cancel()
        returned = perf_counter_ns()
        await receipt.settled
        took = _took(began, returned, self.over_ns)
        assert receipt.accepted
        assert len(receipt.stopped) == 1
        return took


class _Model:
    """Always calls the tool."""

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncGenerator[TextDelta | ToolCallRequest | Usage, None]:
        yield ToolCallRequest("", "wait", {}, "{}")
        yield Usage()


async def _timed(sides: Sequence[_Side], cancels: int) -> list[_Took]:
    for side in sides:
        side.begin()
        await side.running.wait()
    chance = random.Random(1)
    took: list[_Took] = []
    began_s = trio.current_time()
    for number in range(cancels):
        if took and trio.current_time() > began_s + MOST_S:
            break  # the machine is too slow for the load; the figures show it
        await trio.sleep(chance.uniform(0, PAUSE_S))
        side = sides[number * 7 % len(sides)]
        took.append(await side.cancel())
        side.begin()
        await side.running.wait()
    return took


def _due_s(number: int, calls: int) -> float:
    return trio.current_time() + EVERY_S * number / calls


def _bare(calls: int, cancels: int) -> list[_Took]:
    async def main() -> list[_Took]:
        async with trio.open_nursery() as nursery:
            sides = []
            for number in range(calls):
                line, table = Line(), Table()
                table.on(UserAudio, line.hear)
                nursery.start_soon(frames, _publisher(table), _due_s(number, calls))
                sides.append(_Bare(nursery))
            took = await _timed(sides, cancels)
            nursery.cancel_scope.cancel()
        return took

    return trio.run(main)


def _publisher(table: Table) -> Any:
    return lambda event: table.publish(event, "caller")


def _ours(calls: int, cancels: int) -> list[_Took]:
    async def main() -> list[_Took]:
        async with AsyncExitStack() as stack:
            sides = []
            for number in range(calls):
                side = _Ours()
                call = await stack.enter_async_context(App(side.answer).open_call(Line()))
                call.nursery.start_soon(frames, call.publish, _due_s(number, calls))
                sides.append(side)
            await trio.testing.wait_all_tasks_blocked()
            return await _timed(sides, cancels)

    return trio.run(main)


def _samples(calls: int, size: Size) -> tuple[list[list[_Took]], list[list[_Took]]]:
    """Return the times of each round of both sides."""
    bare: list[list[_Took]] = []
    ours: list[list[_Took]] = []
    sides = ((_bare, bare), (_ours, ours))
    for number in range(size.interrupt_rounds):
        for run, taken in sides if number % 2 else sides[::-1]:
            gc.collect()
            taken.append(run(calls, size.interrupts))
    return bare, ours


def rows(calls: int, size: Size, bounds: Mapping[str, float]) -> list[Row]:
    """Return the figures.

    Args:
        calls: How many calls are open.
        size: How much to run.
        bounds: The limits for ``receipt``, ``over`` and ``settled``, as multiples of bare trio.
    """
    sides = _samples(calls, size)
    found = []
    for field, what in _WHAT.items():
        bare, ours = ([[getattr(t, field) for t in taken] for taken in side] for side in sides)
        name = f"cancel to {what}, {calls} call{'s' * (calls > 1)}"
        found.append(row_of(name, "us", bare, ours, bound=bounds[field]))
    return found

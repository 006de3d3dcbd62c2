"""Every verb after every other, while a slow tool runs: one table.

The tool books for 3 s and may finish within 1 s of an interrupt.  The first verb is used after 1 s,
the second at once, or 0.2 s later.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from bridge import Handle, Receipt, open_agent
from bridge.control import STRENGTH, VERBS, Verb
from bridge.events import ToolResult, TurnEnded
from nodes import ChatNode
from nodes.llm import TextDelta, ToolCallRequest, Usage
from nodes.tools import finish, tool


class Model:
    """Books first, then tells that it is done."""

    def __init__(self) -> None:
        self.asked = 0

    async def stream(self, messages: Any, *, tools: Any = ()) -> Any:
        self.asked += 1
        await trio.sleep(0.1)
        if any(message["role"] == "tool" for message in messages):
            yield TextDelta("That is all.")
        else:
            yield ToolCallRequest("call_book", "book", {}, "{}")
        yield Usage()


class Pair:
    """One run: two verbs, and what came of them."""

    def __init__(self, first: Verb, second: Verb, delay_s: float) -> None:
        self.verbs = (first, second)
        self.delay_s = delay_s
        self.model = Model()
        self.begun = 0
        self.receipts: list[Receipt] = []
        self.settled_s: dict[int, float] = {}
        self.begun_after: list[int] = []

    def node(self) -> ChatNode:
        @tool(policy=finish(1))
        async def book() -> str:
            """Book a table."""
            self.begun += 1
            await trio.sleep(3)
            return "booked"

        return ChatNode(self.model, tools=[book])

    async def run(self) -> None:
        async with open_agent(self.node(), name="agent") as handle:
            feed = handle.subscribe()
            handle.send_input("Book a table.")
            await trio.sleep(1.1)
            async with trio.open_nursery() as nursery:
                for verb in self.verbs:
                    self.use(handle, verb, nursery)
                    if verb is self.verbs[0] and self.delay_s:
                        await trio.sleep(self.delay_s)
                self.state = handle._call.current_state
                self.asked = self.model.asked
                await trio.sleep(10)
                nursery.cancel_scope.cancel()
            await self.look(handle)
            handle.shutdown()
            events = [event async for event in feed]
        self.ends = [event.outcome for event in events if isinstance(event, TurnEnded) and event.turn == 1]
        self.results = [event.outcome for event in events if isinstance(event, ToolResult)]

    def use(self, handle: Handle, verb: Verb, nursery: trio.Nursery) -> None:
        began_s = trio.current_time()
        receipt = handle._use(verb, "to Tokyo" if verb == "redirect" else "")

        async def wait() -> None:
            await receipt.settled
            self.settled_s[receipt.id] = trio.current_time() - began_s

        self.receipts.append(receipt)
        nursery.start_soon(wait)

    async def look(self, handle: Handle) -> None:
        call = handle._call
        self.records = [r.verb for r in call.history.interruptions if r.turn == 1]
        self.illegal = call._state.illegal_steps
        self.asked_after = self.model.asked - self.asked
        self.closed = call.ended.is_set()
        if self.closed:
            return
        if call.current_state in ("paused", "pausing"):
            handle.resume()
            await trio.sleep(10)
        before = self.model.asked
        assert handle.send_input("And now?")
        await trio.sleep(10)
        assert self.model.asked > before, "it answers no more"
        assert handle.snapshot().state == "idle"
        self.illegal = call._state.illegal_steps

    @property
    def cell(self) -> str:
        second = self.receipts[1]
        how = "accepted" if second.accepted else second.reason
        if second.upgraded_from:
            how = f"upgrades {second.upgraded_from}"
        return f"{how}; {self.state}; {self.ends}; {self.records}; {self.results}; {self.asked_after}"


if __name__ == "__main__":
    import structlog
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    for first in VERBS:
        for second in VERBS:
            if first == second: continue
            for delay_s in (0, 0.2):
                pair = Pair(first, second, delay_s)
                try:
                    trio.run(pair.run, clock=trio.testing.MockClock(autojump_threshold=0))
                    print(f"{first:15}{second:15}{delay_s:4} {pair.cell} {[round(pair.settled_s.get(r.id,-1),2) for r in pair.receipts]} il={pair.illegal} begun={pair.begun}")
                except BaseException as e:
                    while isinstance(e, BaseExceptionGroup): e = e.exceptions[0]
                    print(f"{first:15}{second:15}{delay_s:4} ERROR {type(e).__name__} {e}")

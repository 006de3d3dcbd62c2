"""An agent that works in four steps; pause, redirect or cancel it, or send it to the background.

With `python examples/pause_and_redirect.py`, it writes a memo on customers who may leave, and shows
its steps.  Meanwhile type `pause`, `resume only EU`, `redirect top 10 only`, `cancel` or
`background`; anything else is said to the agent.  A few lines replace the language model, so it
needs no network, and its work can be checked.  To see it in the browser, run
`python -m bargein talk examples/pause_and_redirect.py:app`.
"""

from bargein.cli import exit_code  # first: Ctrl+C is one line while the rest is loaded, too

# isort: split
import argparse
import json
import os
import random
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import structlog
import trio

from bargein import App, Call, ChatNode, Handle, open_agent
from bargein.events import (
    AgentResponse,
    AnswerEnded,
    ControlRequested,
    StateChanged,
    ToolCall,
    ToolResult,
)
from bargein.llm import AnswerPiece, TextDelta, ToolCallRequest, Usage
from bargein.tools import commit, current_tool, finish, tool

STEPS = {
    "fetch_customers": "Fetch customer list",
    "join_mrr": "Join against MRR table",
    "score_churn": "Score churn risk",
    "write_memo": "Write summary memo",
}
VERBS = ("pause", "resume", "redirect", "cancel", "background")


class Analyst:
    """The data and the four steps; each step has its own interrupt policy, and is done once."""

    def __init__(self, step_s: float = 2.0) -> None:
        self.step_s = step_s
        self.begun: list[str] = []
        self.customers: dict[str, str] = {}
        self.mrr: dict[str, int] = {}
        self.at_stake: dict[str, float] = {}
        self.memos: dict[tuple[str, int], list[str]] = {}

    async def work(self) -> random.Random:
        self.begun.append(current_tool().name)
        await trio.sleep(self.step_s)
        return random.Random(7)  # the same data each time

    @tool(read_only=True, on_duplicate="join")
    async def fetch_customers(self) -> str:
        """Fetch customer list."""
        if not self.customers:
            dice = await self.work()
            self.customers = {f"C{n:02}": dice.choice(("EU", "US", "APAC")) for n in range(60)}
        return f"done: {len(self.customers)} customers"

    @tool(read_only=True, on_duplicate="join")
    async def join_mrr(self) -> str:
        """Join against MRR table."""
        if not self.mrr:
            dice = await self.work()
            self.mrr = {name: dice.randrange(50, 2000) for name in self.customers}
        return f"done: {sum(self.mrr.values())} dollars a month"

    @tool(policy=finish(3.0), on_duplicate="join")
    async def score_churn(self) -> str:
        """Score churn risk."""
        if not self.at_stake:
            dice = await self.work()
            self.at_stake = {name: mrr * dice.random() for name, mrr in self.mrr.items()}
        return f"done: {sum(self.at_stake.values()):.0f} dollars a month at stake"

    @tool(commits=True, on_duplicate="join")
    async def write_memo(self, region: str = "", top: int = 60) -> str:
        """Write summary memo."""
        if (region, top) not in self.memos:
            await self.work()
            names = sorted(self.at_stake, key=self.at_stake.__getitem__, reverse=True)
            names = [name for name in names if region in ("", self.customers[name])][:top]
            async with commit():  # from here on an interrupt waits until it is written
                await trio.sleep(self.step_s / 4)
                self.memos[region, top] = names
        return f"done: a memo on {len(self.memos[region, top])} customers {region}".rstrip()


class Planner:
    """Replaces a language model: calls the first step that is not done, or sums up."""

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncIterator[AnswerPiece]:
        await trio.sleep(0.5)
        said = " ".join(m["content"] for m in messages if m["role"] == "user")
        wish: dict[str, Any] = {}
        for region, top in re.findall(r"only (EU|US|APAC)|top (\d+)", said):
            wish |= {"region": region} if region else {"top": int(top)}
        results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        last = {call["function"]["name"]: call for call in calls}
        result = ""
        for name in STEPS:
            result = results[last[name]["id"]] if name in last else ""
            if not result.startswith("done"):
                arguments = json.dumps(wish if name == "write_memo" else {})
                if "its result will come later" in result:  # the same call again joins it
                    arguments = last[name]["function"]["arguments"]
                yield ToolCallRequest(f"call_{name}", name, json.loads(arguments), arguments)
                break
        else:
            yield TextDelta(f"There is {result.splitlines()[0].removeprefix('done: ')}.")
            if wish != json.loads(last["write_memo"]["function"]["arguments"]):
                yield TextDelta(" What you have said since is not in it.")
        yield Usage()


def agent(analyst: Analyst) -> ChatNode:
    """Return the agent that does the four steps."""
    return ChatNode(Planner(), tools=[getattr(analyst, name) for name in STEPS])


async def answer(call: Call) -> None:
    """Answer a call."""
    node = agent(Analyst())
    call.converse(node, name="analyst")


app = App(answer, name="the analyst")


def obey(handle: Handle, line: str) -> None:
    """Carry out a line of input."""
    verb, _, text = line.partition(" ")
    if verb in VERBS and (text or verb != "redirect"):
        print(handle.describe(verb))  # type: ignore[arg-type]  # it is one of ours
        use: Callable[..., object] = getattr(handle, verb)
        print(use(text) if verb in ("resume", "redirect") else use())
    elif line:
        handle.send_input(line)


def shown(event: Any) -> str:
    """Return the line to show for an event; empty for none."""
    match event:
        case ToolCall():
            return f"-> {STEPS[event.name]} {event.arguments or ''}"
        case ToolResult():
            return f"   {STEPS[event.name]}: {event.outcome}, {event.content.splitlines()[0]}"
        case AgentResponse():
            return f'   "{event.content.strip()}"'
        case AnswerEnded():
            return f"== answer {event.answer} is {event.outcome}"
        case StateChanged(state="pausing" | "paused" | "stopping"):
            return f"   ({event.state})"
    return ""


async def main(step_s: float, read: Callable[[], bytes]) -> None:
    """Let the agent work until the memo is written, and carry out what is typed meanwhile."""
    analyst, end_of_input = Analyst(step_s), trio.Event()

    async def listen() -> None:
        while typed := await trio.to_thread.run_sync(read, abandon_on_cancel=True):
            for line in typed.decode(errors="replace").splitlines():
                obey(handle, line.strip())
        end_of_input.set()
        handle.resume()  # no further input can resume it

    async with open_agent(agent(analyst)) as handle, trio.open_nursery() as nursery:
        began_s = trio.current_time()
        nursery.start_soon(listen)
        handle.send_input("Write a memo on the customers who may leave us.")
        async for message in handle.subscribe():
            if line := shown(message.event):
                print(f"{message.at_s - began_s:5.1f} s {line}", flush=True)
            if isinstance(message.event, (StateChanged, ControlRequested)):
                now, may_end = handle.snapshot(), analyst.memos or end_of_input.is_set()
                if may_end and now.state == "idle" and not now.backgrounded:
                    nursery.cancel_scope.cancel()


def command() -> int:
    """Run the example from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--step-s", type=float, default=2.0, help="seconds that a step takes")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    # Not sys.stdin: a thread that blocks in it holds a lock that the exit needs.
    keyboard = partial(os.read, 0, 4096) if sys.stdin else bytes
    trio.run(main, parser.parse_args().step_s, keyboard)
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(command))

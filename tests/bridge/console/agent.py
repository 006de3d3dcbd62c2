"""An agent for a console under test: it does what the user's words say, with real tools."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import trio

from bargein import App, Call, Caps, ChatNode
from bargein.events import (
    AgentResponse,
    EndCall,
    ToolCall,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.llm import TextDelta, ToolCallRequest, Usage
from bargein.tools import CommandTool, ToolContext, shield, tool

COUNTS: list[str] = []


@tool(where="worker")
def remember(word: str) -> str:
    """Remember a word, and tell all of them and the number of the process."""
    COUNTS.append(word)
    return f"pid {os.getpid()} has {' '.join(COUNTS)}"


@tool(where="worker", read_only=True)
def compute() -> str:
    """Compute for half a minute."""
    until_s = time.monotonic() + 30
    while time.monotonic() < until_s:
        pass
    return "computed"


@tool
async def bake(context: ToolContext) -> str:
    """Bake for as long as it takes."""
    for percent in range(0, 100, 25):
        context.progress("in the oven", fraction=percent / 100)
        await trio.sleep(float(os.environ.get("BAKE_S", "4")) / 4)
    return "baked"


@tool(permission="ask")
async def delete(path: str) -> str:
    """Delete a file that is not there."""
    return f"{path} is gone"


@tool(policy=shield(6.0))
async def pay() -> str:
    """Pay, which takes a while."""
    await trio.sleep(1.5)
    return "paid"


@tool
async def block() -> str:
    """Block the event loop for a minute, as no tool should."""
    time.sleep(60)  # noqa: ASYNC251  # that is what it is for
    return "blocked"


@tool
async def chatter() -> str:
    """Print, as tools of others do."""
    print("printed by a tool")
    os.write(1, b"written past Python\n")
    print("and to stderr", file=sys.stderr)
    return "\x1b[2J\x1b[31mred\x1b]0;title\x07"


sleeper = CommandTool(["sleep", "30"], name="sleeper", description="Sleep.")
TOOLS = (remember, compute, bake, delete, pay, block, chatter, sleeper)


class Obedient:
    """A model that says what it is told, or calls the tool that the words begin with."""

    async def stream(self, messages: Any, *, tools: Any = ()) -> AsyncIterator[Any]:
        last = messages[-1]
        if last["role"] == "tool":
            yield TextDelta(f"It says: {last['content'].splitlines()[0]}")
        else:
            words = [m["content"] for m in messages if m["role"] == "user"][-1].split()
            async for piece in self._obey(words):
                yield piece
        yield Usage()

    async def _obey(self, words: list[str]) -> AsyncIterator[Any]:
        name = words[0] if words else ""
        if name in {each.name for each in TOOLS}:
            arguments = {"remember": {"word": words[-1]}, "delete": {"path": words[-1]}}
            given = arguments.get(name, {})
            yield ToolCallRequest(
                id=f"call_{time.monotonic_ns()}", name=name, arguments=given, raw=""
            )
        elif name == "count":
            for number in range(1, 1 + int(words[-1])):
                yield TextDelta(f"{number} ")
                await trio.sleep(0.05)
        elif name == "hostile":
            yield TextDelta("be\x1b[2J\x1b]0;owned\x07fore\x9b31m \u202eafter\x1b[")
            yield TextDelta("31mend\x07")
        elif name == "crash":
            raise RuntimeError("the model broke")
        elif name == "goodbye":
            yield TextDelta("Goodbye.")
        else:
            yield TextDelta(f"You said: {' '.join(words)}")


class Helper(ChatNode):
    """Ends the call once it has said goodbye."""

    async def generate(self, message: Any) -> AsyncIterator[Any]:
        async for event in super().generate(message):
            yield event
            if isinstance(event, AgentResponse) and event.content == "Goodbye.":
                yield EndCall()


async def answer(call: Call) -> None:
    """Answer a call."""
    node = Helper(Obedient(), tools=TOOLS, caps=Caps(tool_calls=5))
    route = call.bridge(node, name="helper").on(UserStoppedSpeaking)
    route.interrupt_on(UserStartedSpeaking).stream(node.generate).broadcast()


app = App(answer, name="the helper")


async def overheard(call: Call) -> None:
    """Answer, and hear somebody else say something behind each tool."""
    await answer(call)
    somebody = call.bridge(name="somebody", is_agent=False).on(ToolCall)
    somebody.map(lambda message: call.handle.send_input("and tea?") and None)


in_company = App(overheard, name="the helper")


async def broken(call: Call) -> None:
    """Fail to answer."""
    raise RuntimeError("no answer")


class Faulty:
    """A store of conversations that does not work, and says so in no way that was foreseen."""

    def open_conversation(self, id: str) -> Any:
        raise ZeroDivisionError("the store broke")


async def crash_soon(call: Call) -> None:
    """Answer, and let a task of the call's own fail once something was said."""
    await answer(call)

    async def fail() -> None:
        await trio.sleep(0.5)
        raise ZeroDivisionError("a task broke")

    call.nursery.start_soon(fail)


cannot_open = App(answer, conversations=Faulty())

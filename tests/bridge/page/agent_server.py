"""A real server with a real agent for the page's tests; only its model and its voice are scripted.

Run as a program it prints its port, then serves until it is killed; given the word ``full``, its
app asks for the whole handle at all times.  What the caller types names
the scene: a text with "story" has the agent talk for long, "ponder" think for long, "archive" use a
tool that takes a while, "close" use two tools of which one may finish, "deposit" ask for
permission, "choose" ask which table, "table" do several steps, and anything else is answered in a
few words; "go deaf" lets its ears fail until "hear again".  The voice is a tone, as loud as a
person and with a length by the text.
"""

from __future__ import annotations

import array
import math
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
import trio

from bargein import App, Call, Caps, ChatNode, Message
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentResponse,
    AgentTextComplete,
    ListeningFailed,
    ListeningResumed,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.llm import TextDelta, ToolCallRequest, Usage
from bargein.server import open_server
from bargein.tools import ToolContext, finish, tool

RATE_HZ = 24_000
MS_PER_CHAR = 60
STORY = (
    "Of course. The old harbour was built by fishermen who came over the pass in spring, and every "
    "house along the quay still carries the colour of the boat it once belonged to. In the middle "
    "stands the customs tower, which has not collected a single coin since the fire, and behind "
    "it the market begins before the sun is up. "
)
SCENES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "archive": [("search_archive", {"query": "tables by the window"})],
    "close": [("search_archive", {"query": "open bills"}), ("send_invoice", {"number": 1042})],
    "deposit": [("pay_deposit", {"amount": "20.00 EUR", "to": "Restaurant Lumen", "note": ""})],
    "choose": [("pick_table", {})],
    "two deposits": [
        ("pay_deposit", {"amount": "20.00 EUR", "to": "Restaurant Lumen", "note": "table 4"}),
        ("send_invoice", {"number": 7}),
        ("pay_deposit", {"amount": "5.00 EUR", "to": "The cloakroom", "note": "two coats"}),
    ],
}


@tool(read_only=True)
async def search_archive(query: str) -> str:
    """Search the archive, which takes a while."""
    await trio.sleep(30)
    return f"nothing about {query}"


@tool(read_only=True)
async def find_table(people: int, time: str) -> str:
    """Find a free table."""
    await trio.sleep(1.5)
    return f"table 4 for {people} at {time}"


@tool(policy=finish(8.0))
async def book_table(table: int) -> str:
    """Book a table."""
    await trio.sleep(30)
    return f"table {table} is booked"


@tool(policy=finish(4.0))
async def send_invoice(number: int) -> str:
    """Send an invoice."""
    await trio.sleep(2.5)
    return f"invoice {number} was sent"


@tool(permission="ask")
async def pay_deposit(amount: str, to: str, note: str = "") -> str:
    """Pay a deposit."""
    await trio.sleep(0.2)
    return f"{amount} paid to {to}"


@tool
async def pick_table(context: ToolContext) -> str:
    """Ask which table it is to be."""
    answer = await context.ask("Which table would you like?", choices=["By the window", "Outside"])
    return f"{answer.outcome}: {answer.choice or answer.text}"


class Model:
    """Answers what was said last, by the scene that it names."""

    async def stream(
        self, messages: Any, *, tools: Any = ()
    ) -> AsyncIterator[TextDelta | ToolCallRequest | Usage]:
        said = [m["content"] for m in messages if m["role"] == "user"]
        wish = str(said[-1]).lower() if said else ""
        last = max((n for n, m in enumerate(messages) if m["role"] == "user"), default=-1)
        results = [m for m in messages[last + 1 :] if m["role"] == "tool"]
        async for piece in self._answer(wish, str(said[-1]) if said else "", results):
            yield piece
        yield Usage()

    async def _answer(
        self, wish: str, said: str, results: list[Any]
    ) -> AsyncIterator[TextDelta | ToolCallRequest]:
        if "ponder" in wish:
            await trio.sleep(30)
        await trio.sleep(0.3)
        if "story" in wish:
            for word in (STORY * 2).split(" "):
                yield TextDelta(f"{word} ")
                await trio.sleep(0.01)
            return
        calls = self._calls(wish, results)
        for n, (name, arguments) in enumerate(calls):
            key = f"call_{len(results)}_{n}_{trio.current_time()}"
            yield ToolCallRequest(id=key, name=name, arguments=arguments, raw="")
        if not calls:
            told = results[-1]["content"].splitlines()[0] if results else said
            yield TextDelta(f"All right: {told}")

    @staticmethod
    def _calls(wish: str, results: list[Any]) -> list[tuple[str, dict[str, Any]]]:
        if "table" in wish:
            steps = [("find_table", {"people": 2, "time": "19:30"}), ("book_table", {"table": 4})]
            return steps[len(results) : len(results) + 1]
        names = sorted((name for name in SCENES if name in wish), key=len)
        return SCENES[names[-1]] if names and not results else []


class Tone:
    """Says each character as 60 ms of a tone."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    def attach(self, call: Call) -> None:
        def say(message: Message) -> AgentAudio | None:
            utterance = call.answers.utterance_of(message)
            if utterance is None:
                return None  # of an answer that goes on in the background: nobody hears it
            text = message.event.content
            return AgentAudio(_tone(len(text)), RATE_HZ, text, utterance=utterance.number)

        def finish_saying(message: Message) -> AgentAudioComplete:
            return AgentAudioComplete(utterance=message.event.utterance)

        voice = call.bridge(name="voice", is_agent=False)
        voice.on(AgentResponse).map(say).broadcast()
        voice.on(AgentTextComplete).map(finish_saying).broadcast()


_PERIOD = [int(6000 * math.sin(2 * math.pi * n / 60)) for n in range(60)]
"""One period of 400 Hz; a character has 24 of them."""


def _tone(characters: int) -> bytes:
    periods = characters * MS_PER_CHAR * RATE_HZ // 1000 // len(_PERIOD)
    return array.array("h", _PERIOD * periods).tobytes()


def ears(message: Message) -> ListeningFailed | ListeningResumed | None:
    """Fails or hears again, as the caller types."""
    if "go deaf" in message.event.content:
        return ListeningFailed(error="RuntimeError")
    return ListeningResumed() if "hear again" in message.event.content else None


async def answer(call: Call) -> None:
    """Answers a call."""
    node = ChatNode(
        Model(),
        tools=[search_archive, find_table, book_table, send_invoice, pay_deposit, pick_table],
        caps=Caps(steps=12, wall_s=120, tool_calls=8),
    )
    call.bridge(name="ears", is_agent=False).on(UserTranscriptionReceived).map(ears).broadcast()
    agent = call.bridge(node, name="desk")
    agent.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking).stream(
        node.generate
    ).broadcast()


async def serve(app: App) -> None:
    """Serves on a free port of the loopback interface and prints that port."""
    async with open_server(app, port=0) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


def run(app: App) -> None:
    """Serves until it is killed; what is worth a warning is told on the standard error."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(30),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    trio.run(serve, app)


if __name__ == "__main__":
    offer = "full" if "full" in sys.argv[1:] else "auto"
    run(App(answer, speech=Tone(), name="Restaurant Lumen", handle=offer))

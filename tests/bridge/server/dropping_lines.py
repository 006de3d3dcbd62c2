"""Calls whose line drops, with an agent that tells a story."""

from contextlib import asynccontextmanager

import trio

from bargein import Call
from bargein.client import (
    Spoken,
    State,
)
from bargein.events import (
    AgentResponse,
    UserStartedSpeaking,
    UserTranscriptionReceived,
)
from bargein.websocket import open_websocket

STORY = "Once upon a time there was a fox. It lived in a wood and it talked too much."


SAMPLES = [1 + n % 30_000 for n in range(len(STORY) * 60 * 24)]


async def storyteller(call: Call) -> None:
    """Tells a story when asked; the caller's words cut it."""
    agent = call.bridge(name="storyteller")

    async def tell(message):
        yield AgentResponse(content=STORY)

    agent.on(UserTranscriptionReceived, content="tell").interrupt_on(UserStartedSpeaking).stream(
        tell
    ).broadcast()


class Kept:
    """Keeps the calls that it answers, and tells the story in them."""

    def __init__(self, answer=storyteller):
        self.calls = []
        self.answer = answer

    async def __call__(self, call):
        self.calls.append(call)
        await self.answer(call)


async def echo(call: Call) -> None:
    """Answers each line with itself."""
    agent = call.bridge(name="echo")
    agent.on(UserTranscriptionReceived).map(
        lambda m: AgentResponse(content=f"you said {m.event.content}")
    ).broadcast()


def samples(caller):
    """All samples that a caller has heard, in order."""
    return [s for span in caller.heard for s in memoryview(bytes(span.pcm)).cast("h")]


def texts(caller, kind):
    """The texts of all messages of a class, in order."""
    return [r.message.text for r in caller.received if isinstance(r.message, kind)]


async def told_all(caller):
    """Wait until the story is over."""
    with trio.fail_after(120):
        await caller.wait_for(State, lambda m: m.state == "speaking")
        await caller.wait_for(Spoken, lambda m: m.text.endswith("much."))
        await caller.wait_for(State, lambda m: m.state == "idle", after=3)


@asynccontextmanager
async def dialed(place, path="?mode=text"):
    """Open a bare connection."""
    stream = await place.listener.dial()
    async with open_websocket(f"ws://localhost/ws{path}", stream=stream) as connection:
        yield connection

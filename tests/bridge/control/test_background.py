"""A turn that goes to the background: nothing of it is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio

from bridge import Call, Message
from bridge.events import AgentResponse, JobFinished, UserStartedSpeaking, UserStoppedSpeaking
from bridge.testing import open_call

WORDS = "one two three four five six seven eight"


async def test_what_was_generated_and_not_heard_is_part_of_the_result(autojump_clock):
    """Heard and result together are the whole answer, though the voice was far behind."""

    async def generate(message: Message) -> AsyncIterator[object]:
        for word in WORDS.split():
            yield AgentResponse(content=f"{word} ")
            await trio.sleep(0.1)
        await trio.sleep(5)
        yield AgentResponse(content="nine")

    async def answer(call: Call) -> None:
        route = call.bridge(name="agent").on(UserStoppedSpeaking)
        route.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1.5)
        caller.call.handle.background()
        await trio.sleep(0.5)
        heard = caller.heard
        await caller.receives(JobFinished)
        (result,) = caller.events(JobFinished)
        assert heard
        assert heard != WORDS
        assert heard + result.content == f"{WORDS} nine"

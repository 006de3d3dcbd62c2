"""What a text caller has heard is told ten times a second at most, and never too late."""

from __future__ import annotations

import trio

from bargein import Call
from bargein.events import (
    AgentResponse,
    AgentSpeechSent,
    AnswerEnded,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import open_call


class Counter:
    """Counts aloud, a number every so many seconds, and then waits."""

    def __init__(self, every_s: float, numbers: int = 8, waits_s: float = 1.0) -> None:
        self.every_s, self.numbers, self.waits_s = every_s, numbers, waits_s

    async def answer(self, call: Call) -> None:
        call.converse(self)

    async def generate(self, message: object):
        for number in range(1, self.numbers + 1):
            yield AgentResponse(content=f"{number} ")
            await trio.sleep(self.every_s)
        await trio.sleep(self.waits_s)


def told(caller):
    """Return what was told of heard words, and when."""
    return [
        (item.event.content, round(item.at_s, 3))
        for item in caller.received
        if isinstance(item.event, AgentSpeechSent)
    ]


async def test_quick_pieces_share_an_event(autojump_clock):
    """The first piece is told at once, what follows within a tenth of a second together."""
    async with open_call(Counter(0.03).answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
    assert told(caller) == [("1 ", 0.0), ("2 3 4 ", 0.1), ("5 6 7 ", 0.2), ("8 ", 0.3)]


async def test_slow_pieces_have_one_each(autojump_clock):
    """A piece that comes after a tenth of a second is told as it is sent."""
    async with open_call(Counter(0.2, 3).answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
    assert told(caller) == [("1 ", 0.0), ("2 ", 0.2), ("3 ", 0.4)]


async def test_an_answer_ends_after_its_last_words(autojump_clock):
    """What was not told yet is told before the end of the answer."""
    async with open_call(Counter(0.0, 3, 0.0).answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
    assert told(caller) == [("1 ", 0.0), ("2 3 ", 0.0)]
    kinds = [type(item.event) for item in caller.received]
    assert kinds.index(AnswerEnded) > max(i for i, k in enumerate(kinds) if k is AgentSpeechSent)


async def test_a_cut_comes_after_the_words_before_it(autojump_clock):
    """What was sent before a barge-in is told before it, and is in the record of the cut."""
    async with open_call(Counter(0.03).answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.05)
        caller.publish(UserStartedSpeaking())
        assert told(caller) == [("1 ", 0.0), ("2 ", 0.05)]
        kinds = [type(item.event) for item in caller.received]
        assert kinds.index(UserStartedSpeaking) > kinds.index(AgentSpeechSent)
        assert [cut.heard for cut in caller.call.history.interruptions] == ["1 2 "]
        await caller.at(1.0)
        assert len(told(caller)) == 2


async def test_the_history_does_not_wait(autojump_clock):
    """Whoever reads the history finds each piece as soon as it was sent."""
    async with open_call(Counter(0.03).answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.05)
        assert caller.heard == "1 2 "
        assert told(caller) == [("1 ", 0.0)]


async def test_a_call_that_ends_tells_the_last_words(autojump_clock):
    """A hang-up loses no words that were sent."""
    async with open_call(Counter(0.03).answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.05)
        caller.call.end("disconnected")
        assert [words for words, _ in told(caller)] == ["1 ", "2 "]

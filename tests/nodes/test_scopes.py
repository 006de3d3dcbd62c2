"""Models that hold a cancel scope or a nursery across a yield, in an answer with caps."""

import pytest
import trio

from bargein import Caps, ChatNode, ReasoningNode
from bargein.events import (
    AgentError,
    AgentResponse,
    AnswerEnded,
    TurnLikelyOver,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.llm import TextDelta, Usage
from bargein.testing import open_call

from .answers_by_script import answer_with


class Holding:
    """A model that writes a word each second, five in all, and takes 0.2 s to be left.

    Attributes:
        left_s: When it was done with each answer.
    """

    def __init__(self, kind, *, fails_at=None, own_s=100.0):
        self.kind = kind
        self.fails_at = fails_at
        self.own_s = own_s
        self.left_s = []

    def stream(self, messages, *, tools=()):
        return getattr(self, self.kind)()

    async def word(self, n):
        await trio.sleep(1)
        if n == self.fails_at:
            raise ValueError("the model failed")
        return TextDelta(f"word{n} ")

    async def leave(self):
        with trio.CancelScope(shield=True):
            await trio.sleep(0.2)
        self.left_s.append(round(trio.current_time(), 6))

    async def plain(self):
        try:
            for n in range(5):
                yield await self.word(n)
            yield Usage()
        finally:
            await self.leave()

    async def scope(self):
        try:
            with trio.move_on_after(self.own_s):
                for n in range(5):
                    yield await self.word(n)
                yield Usage()
        finally:
            await self.leave()

    async def nursery(self):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                for n in range(5):
                    yield await self.word(n)
                yield Usage()
            finally:
                await self.leave()
            nursery.cancel_scope.cancel()

    async def safe_channel(self):
        async with trio.as_safe_channel(self.plain)() as pieces:
            async for piece in pieces:
                yield piece


@pytest.fixture(params=["plain", "scope", "nursery", "safe_channel"])
def kind(request):
    return request.param


def said(caller):
    return [
        (round(r.at_s, 6), r.event.content)
        for r in caller.received
        if isinstance(r.event, AgentResponse)
    ]


def ends(caller):
    return [
        (round(r.at_s, 6), r.event.outcome)
        for r in caller.received
        if isinstance(r.event, AnswerEnded)
    ]


WORDS = [(1, "word0 "), (2, "word1 "), (3, "word2 "), (4, "word3 "), (5, "word4 ")]


async def test_uncut(kind, autojump_clock):
    """With a cap of its time, an answer is whole."""
    node = ChatNode(Holding(kind), caps=Caps(wall_s=60))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(20)
    assert said(caller) == WORDS
    assert [outcome for _, outcome in ends(caller)] == ["completed"]
    assert not caller.events(AgentError)


@pytest.mark.parametrize("wall_s", [2.5, 60])
async def test_cut_and_asked_again(kind, wall_s, autojump_clock):
    """Cut in the middle of a word, the model is left at once, and the next answer works."""
    model = Holding(kind)
    node = ChatNode(model, caps=Caps(wall_s=wall_s))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.5)
        caller.publish(UserStartedSpeaking())
        await caller.at(10)
        caller.publish(UserStoppedSpeaking())
        await caller.at(30)
    words = WORDS[:2] if wall_s < 5 else WORDS
    assert said(caller) == [(1, "word0 "), *((10 + at_s, word) for at_s, word in words)]
    assert model.left_s == [1.7, 12.7 if wall_s < 5 else 15.2]
    assert not caller.events(AgentError)


async def test_the_time_at_work_is_capped_to_the_moment(kind, autojump_clock):
    """When the time is up the answer ends there, and what was said stays said."""
    model = Holding(kind)
    node = ChatNode(model, caps=Caps(wall_s=2.5))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(20)
    assert (said(caller), model.left_s) == (WORDS[:2], [2.7])
    assert ends(caller) == [(2.7, "capped")]
    assert not caller.events(AgentError)


async def test_the_time_at_work_stands_still_in_a_pause(kind, autojump_clock):
    """A pause does not count; then the answer goes on, with the time that was left."""
    model = Holding(kind)
    node = ChatNode(model, caps=Caps(wall_s=3.5))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.5)
        caller.call.handle.pause()
        await caller.at(20)
        caller.call.handle.resume()
        await caller.at(40)
    assert said(caller) == [(1, "word0 "), (20, "word1 "), (21, "word2 ")]
    assert model.left_s == [22.2]
    assert not caller.events(AgentError)


async def test_paused_then_cancelled(kind, autojump_clock):
    """Cancelled in a pause, the model is left, and the next answer works."""
    model = Holding(kind)
    node = ChatNode(model, caps=Caps(wall_s=60))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.5)
        caller.call.handle.pause()
        await caller.at(4)
        caller.call.handle.cancel()
        await caller.at(10)
        caller.publish(UserStoppedSpeaking())
        await caller.at(30)
    assert [word for _, word in said(caller)] == ["word0 ", *(word for _, word in WORDS)]
    assert model.left_s == [4.2, 15.2]
    assert not caller.events(AgentError)


async def test_the_call_ends(kind, autojump_clock):
    """The end of a call closes a model's answer without an error."""
    model = Holding(kind)
    async with open_call(answer_with(ChatNode(model, caps=Caps(wall_s=60))), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.5)
    assert model.left_s == [1.7]
    assert not caller.events(AgentError)


async def test_an_error_of_the_model(kind, autojump_clock):
    """A model that fails fails its answer by its own error, and the next one is asked."""
    model = Holding(kind, fails_at=1)
    answer = answer_with(ChatNode(model, caps=Caps(wall_s=60)))
    async with open_call(answer, audio=False, expect_errors=ValueError) as caller:
        for at_s in (0, 10):
            await caller.at(at_s)
            caller.publish(UserStoppedSpeaking())
        await caller.at(20)
    assert said(caller) == [(1, "word0 "), (11, "word0 ")]
    errors = [error.message for error in caller.events(AgentError)]
    assert errors == ["ValueError in .stream(ChatNode.generate)"] * 2
    assert model.left_s == [2.2, 12.2]


@pytest.mark.parametrize("is_claimed", [True, False])
async def test_begun_before_the_end_of_the_turn(kind, is_claimed, autojump_clock):
    """An answer that was begun early is taken over, or thrown away, in a task of its own."""
    model = Holding(kind)
    node = ChatNode(model, caps=Caps(wall_s=60), speculate=True)
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(TurnLikelyOver(content="a latte"))
        await caller.at(1.5)
        text = "a latte" if is_claimed else "a mocha"
        caller.publish(UserTranscriptionReceived(content=text))
        caller.publish(UserStoppedSpeaking())
        await caller.at(30)
    began_s = 0 if is_claimed else 1.5
    assert [word for _, word in said(caller)] == [word for _, word in WORDS]
    assert model.left_s == ([5.2] if is_claimed else [1.7, began_s + 5.2])
    assert not caller.events(AgentError)


async def test_a_node_of_ones_own(kind, autojump_clock):
    """What `process_context` holds nests too: cut, it is left in bounded time."""
    model = Holding(kind)

    class Own(ReasoningNode):
        def process_context(self, context):
            return self.answer(getattr(model, kind)())

        async def answer(self, pieces):
            with trio.move_on_after(50):
                try:
                    async for piece in pieces:
                        if isinstance(piece, TextDelta):
                            yield AgentResponse(content=piece.text)
                finally:
                    await pieces.aclose()

    async with open_call(answer_with(Own()), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.5)
        caller.call.handle.pause()
        await caller.at(4)
        caller.call.handle.cancel()
        await caller.at(10)
    assert (said(caller), model.left_s) == ([(1, "word0 ")], [4.2])
    assert not caller.events(AgentError)

"""The node that lets a model answer, with a scripted model."""

import trio

from bargein import ChatNode
from bargein.events import UserStartedSpeaking, UserStoppedSpeaking
from bargein.llm import TextDelta, Usage
from bargein.testing import open_call

from .answering import answer_with


class Scripted:
    """A model that says the same pieces, and keeps what it was asked."""

    def __init__(self, *pieces):
        self.pieces = pieces
        self.asked = []
        self.closed = 0

    async def stream(self, messages, *, tools=()):
        self.asked.append(messages)
        try:
            for piece in self.pieces:
                await trio.sleep(0.1)
                yield piece
        finally:
            self.closed += 1


async def test_the_model_answers_the_conversation_as_it_was_heard(autojump_clock):
    """The model sees the user's words, and of a cut answer what was heard."""
    model = Scripted(TextDelta("One latte and a very large muffin for you."), Usage())
    node = ChatNode(model, "Be kind.", examples=[{"role": "user", "content": "example"}])
    async with open_call(answer_with(node)) as caller:
        await caller.says("a latte")
        await caller.at(2.0)
        await caller.says("wait")
        await caller.quiet()
    assert model.asked[0] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "example"},
        {"role": "user", "content": "a latte"},
    ]
    heard = model.asked[1][3]["content"]
    assert "One latte and a very large muffin for you.".startswith(heard)
    assert model.asked[1][4:] == [{"role": "user", "content": "wait"}]
    assert node.current_response == "One latte and a very large muffin for you."


async def test_a_cut_closes_the_model(autojump_clock):
    """The model's stream is closed in the step in which the answer unwinds."""
    model = Scripted(*[TextDelta("word ")] * 50)
    async with open_call(answer_with(ChatNode(model))) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(0.35)
        caller.publish(UserStartedSpeaking())
        await trio.testing.wait_all_tasks_blocked()
        assert model.closed == 1


async def test_only_the_last_entries_are_sent(autojump_clock):
    """A small model can be spared the whole conversation."""
    model = Scripted(TextDelta("ok "))
    async with open_call(answer_with(ChatNode(model, "p", last_entries=1))) as caller:
        for text in ("one", "two"):
            await caller.says(text)
            await caller.quiet()
    assert model.asked[-1] == [
        {"role": "system", "content": "p"},
        {"role": "user", "content": "two"},
    ]

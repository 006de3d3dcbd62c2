"""The node that lets a model answer, with a scripted model."""

from collections.abc import AsyncIterator

import pytest
import trio

from bargein import ChatNode, ConversationContext, OpenAIChat, ReasoningNode
from bargein.events import UserStartedSpeaking
from bargein.fakes import FakeOpenAIChat
from bargein.testing import ScriptedModel, open_call
from bargein.tools import ToolDefinitionError, tool

from .answers_by_script import answer_with


async def test_the_model_answers_the_conversation_as_it_was_heard(autojump_clock):
    """The model sees the user's words, and of a cut answer what was heard."""
    model = ScriptedModel(then=[0.1, "One latte and a very large muffin for you."])
    node = ChatNode(model, "Be kind.", examples=[{"role": "user", "content": "example"}])
    async with open_call(answer_with(node)) as caller:
        await caller.says("a latte")
        await caller.at(2.0)
        await caller.says("wait")
        await caller.quiet()
    assert model.requests[0].messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "example"},
        {"role": "user", "content": "a latte"},
    ]
    heard = model.requests[1].messages[3]["content"]
    assert "One latte and a very large muffin for you.".startswith(heard)
    assert model.requests[1].messages[4:] == [{"role": "user", "content": "wait"}]
    assert node.current_response == "One latte and a very large muffin for you."


async def test_a_cut_closes_the_model(autojump_clock):
    """The model's stream is closed in the step in which the answer unwinds."""
    model = ScriptedModel([0.1, "word "] * 50)
    async with open_call(answer_with(ChatNode(model))) as caller:
        await caller.says("go on", takes_s=0.0)
        await trio.sleep(0.35)
        caller.publish(UserStartedSpeaking())
        await trio.testing.wait_all_tasks_blocked()
        assert model.requests[0].outcome == "cut"


async def test_only_the_last_entries_are_sent(autojump_clock):
    """A small model can be spared the whole conversation."""
    model = ScriptedModel(then=[0.1, "ok "])
    async with open_call(answer_with(ChatNode(model, "p", last_entries=1))) as caller:
        for text in ("one", "two"):
            await caller.says(text)
            await caller.quiet()
    assert model.requests[-1].messages == [
        {"role": "system", "content": "p"},
        {"role": "user", "content": "two"},
    ]


async def test_a_node_inside_another_keeps_its_prompt(autojump_clock):
    """A node that passes its turns on to a ChatNode has no prompt of its own: the model gets that
    of the ChatNode."""

    class Guard(ReasoningNode):
        def __init__(self, inner: ChatNode, system_prompt: str = "") -> None:
            super().__init__(system_prompt)
            self.inner = inner

        async def process_context(self, context: ConversationContext) -> AsyncIterator[object]:
            async for event in self.inner.process_context(context):
                yield event

    model = ScriptedModel("yes", "no")
    for guard in (Guard(ChatNode(model, "Be kind.")), Guard(ChatNode(model), "Be brief.")):
        async with open_call(answer_with(guard)) as caller:
            await caller.says("a latte")
            await caller.quiet()
    prompts = [request.messages[0] for request in model.requests]
    assert [prompt["content"] for prompt in prompts] == ["Be kind.", "Be brief."]


def test_one_tool_that_is_no_list_is_refused():
    """The error says how to write it."""

    @tool
    def look() -> str:
        """Look."""
        return ""

    for one in (look, len):
        with pytest.raises(ToolDefinitionError, match=r"write tools=\[\.\.\.\]"):
            ChatNode(ScriptedModel("Hi."), tools=one)


@pytest.mark.parametrize("gap_s", [0.0, 0.001, 0.05, 0.2, 0.39])
async def test_who_speaks_again_before_a_sound_gets_one_answer(autojump_clock, gap_s):
    """Both questions are answered at once, and the first answer is never heard (pipecat 1140)."""
    model = ScriptedModel(then=lambda request: [0.4, f"Answer {len(request.texts('user'))}."])
    async with open_call(answer_with(ChatNode(model))) as caller:
        await caller.says("one", takes_s=0.2)
        await trio.sleep(gap_s)
        await caller.says("two", takes_s=0.2)
        await caller.quiet()
        assert caller.heard == "Answer 2."


async def test_cut_questions_leave_no_connection_open(autojump_clock):
    """However often a caller asks again while the model is slow, and whenever."""

    class Slow(FakeOpenAIChat):
        def made_s(self, event):
            return 2.0

    async with Slow("One ", "two.").open() as fake:
        model = OpenAIChat("m", base_url="http://fake/v1", api_key="k", transport=fake.transport())
        async with model.open(), open_call(answer_with(ChatNode(model))) as caller:
            for number in range(10):
                await caller.says("again", takes_s=0.1)
                await trio.sleep(0.07 * (number % 7))
            await caller.quiet()
            await trio.sleep(3)  # the fake notices a closed connection when it wants to send
            assert fake.open_lines <= 1
            assert caller.heard == "One two."

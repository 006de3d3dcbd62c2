"""A node's memory, and its messages for a model."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import trio

from bargein import Call, ConversationContext, Message, ReasoningNode
from bargein.events import (
    AgentResponse,
    AgentSpeechSent,
    DTMFInput,
    JobFinished,
    ToolCall,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import Caller, open_call


async def answer(call: Call) -> None:
    """Count to four whenever the caller stops speaking."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One two three four")

    chain = call.bridge(name="agent").on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
    chain.stream(generate).broadcast()


def following(caller: Caller, prompt: str = "") -> ConversationContext:
    context = ConversationContext(prompt)
    context.follow(caller.call)
    return context


async def test_it_takes_bare_events_and_messages(autojump_clock):
    """Transcripts are said, interim ones are not, texts and other events are notes."""
    context = ConversationContext()
    context.add(UserTranscriptionReceived(content="lat", final=False))
    context.add(UserTranscriptionReceived(content="latte"))
    context.add(Message(DTMFInput(button="5"), id=3))
    context.add("The shop is closed.")
    context.add(AgentSpeechSent(content="Hi", utterance=1))
    assert [(entry.role, entry.content) for entry in context] == [
        ("user", "latte"),
        ("note", "DTMFInput(type='user.dtmf', button='5')"),
        ("note", "The shop is closed."),
    ]
    assert context.events == context.entries
    assert repr(context) == "<ConversationContext of 3 entries>"


async def test_a_copy_does_not_change(autojump_clock):
    """A snapshot stays as it was, and cannot be added to."""
    context = ConversationContext("Be brief.")
    context.add("one")
    copy = context.copy()
    context.add("two")
    context.clear()
    assert [entry.content for entry in copy] == ["one"]
    assert copy.system_prompt == "Be brief."
    assert len(context) == 0
    with pytest.raises(TypeError, match="snapshot"):
        copy.add("three")
    assert [entry.content for entry in copy.copy()] == ["one"]


async def test_the_agent_stands_as_it_was_heard(autojump_clock):
    """A chat model sees heard words only; an answer that nobody heard is left out."""
    async with open_call(answer, chars_per_s=10) as caller:
        context = following(caller, "You count.")
        await caller.says("count", takes_s=0.1)
        await caller.at(0.95)
        await caller.says("again", takes_s=0)
        caller.publish(UserStartedSpeaking())
        await caller.says("once more", takes_s=0)
        await caller.quiet()
        assert context.as_chat() == [
            {"role": "system", "content": "You count."},
            {"role": "user", "content": "count"},
            {"role": "assistant", "content": "One two"},
            {"role": "user", "content": "again"},
            {"role": "user", "content": "once more"},
            {"role": "assistant", "content": "One two three four"},
        ]


async def test_a_tool_call_is_shown_with_its_result(autojump_clock):
    """One without a result yet says so; ids tie the two together."""
    context = ConversationContext()
    context.add(ToolCall(name="look", arguments={"for": "décaf"}, id="7"))
    assert "its result will come later" in context.as_chat()[1]["content"]
    context.add(ToolResult(name="look", id="7", content="found"))
    call, result = context.as_chat()
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "7"
    assert call["tool_calls"][0]["function"] == {
        "name": "look",
        "arguments": '{"for": "d\\u00e9caf"}',
    }
    assert result["content"] == "found"
    bare = ConversationContext()
    bare.add(ToolCall(name="look"))
    bare.add(ToolResult(name="look", content="x"))
    assert bare.as_chat()[1]["tool_call_id"] == "call_look"


async def test_notes_are_told_in_a_fence(autojump_clock):
    """A note is neither a user's words nor a late system message."""
    context = ConversationContext()
    context.add("The shop is closed.")
    [message] = context.as_chat()
    assert message["role"] == "user"
    assert re.fullmatch(r"<note-(\w+)>\nThe shop is closed.\n</note-\1>", message["content"])


async def test_what_the_user_said_last(autojump_clock):
    """All that was said since an agent was last heard, in order."""
    async with open_call(answer, chars_per_s=10) as caller:
        context = following(caller)
        assert context.last_user_text == ""
        await caller.says("a large", takes_s=0)
        caller.publish(UserStartedSpeaking())  # before a word of the answer was heard
        await caller.says(" latte ", takes_s=0.1)
        assert context.last_user_text == "a large latte"
        await caller.quiet()
        assert context.last_user_text == ""
        await caller.says("thanks", takes_s=0)
        assert context.last_user_text == "thanks"


async def test_what_a_node_answers_to_stays_while_it_answers(autojump_clock):
    """Neither the words that the caller hears nor a notice of the answer take it from the node."""
    seen: list[str] = []

    class Slow(ReasoningNode):
        async def process_context(
            self, context: ConversationContext
        ) -> AsyncIterator[AgentResponse]:
            yield AgentResponse(content="One moment. ")
            seen.append(context.last_user_text)
            await trio.sleep(5)
            seen.append(context.last_user_text)
            seen.append(context.copy().last_user_text)
            yield AgentResponse(content="Here it is.")

    async def slow(call: Call) -> None:
        call.converse(Slow())

    async with open_call(slow) as caller:
        await caller.says("a large", takes_s=0)
        await caller.quiet()
        await caller.says("a small", takes_s=0)
        await caller.quiet()
    assert seen == ["a large"] * 3 + ["a small"] * 3


async def test_following_the_same_call_again_forgets_nothing_anew(autojump_clock):
    """What was cleared stays cleared."""
    async with open_call(answer) as caller:
        context = following(caller)
        await caller.says("a", takes_s=0)
        context.clear()
        context.follow(caller.call)
        assert [entry.role for entry in context if entry.role == "user"] == []


async def test_a_job_is_remembered(autojump_clock):
    """The result of a background job is not a developer's note."""
    context = ConversationContext()
    context.add(JobFinished(id="7", name="look", content="found"))
    assert [entry.role for entry in context] == ["job"]
    (note,) = context.as_chat()
    assert note["role"] == "user"
    assert "Result of look, which went on in the background (completed):\nfound" in note["content"]


async def test_both_kinds_of_messages(autojump_clock):
    """Anthropic's messages hold what the chat holds; a copy keeps its fence."""
    context = ConversationContext("Be brief.")
    context.add(UserTranscriptionReceived(content="latte"))
    context.add("Closed.")
    system, messages = context.as_anthropic()
    assert system == "Be brief."
    ((fence,),) = [
        re.findall("<note-([0-9a-f]{12})>", b["text"]) for b in messages[0]["content"][1:]
    ]
    assert messages == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "latte"},
                {"type": "text", "text": f"<note-{fence}>\nClosed.\n</note-{fence}>"},
            ],
        }
    ]
    assert context.copy().as_anthropic() == (system, messages)


async def test_an_answer_sees_what_it_has_said_itself(autojump_clock):
    """In its answer a node sees what it generated, also in a copy; others see what was heard."""
    seen: list[list[dict]] = []

    async def answer(call: Call) -> None:
        context = ConversationContext()
        context.follow(call)

        async def generate(message: Message) -> AsyncIterator[object]:
            yield AgentResponse(content="Let me look.")
            yield ToolCall(name="look", id="7")
            yield ToolResult(name="look", id="7", content="found")
            seen.extend([context.as_chat(), context.copy().as_chat()])
            yield AgentResponse(content=" Found it.")

        chain = call.bridge(name="agent").on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        chain.stream(generate).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        context = following(caller)
        await caller.says("go", takes_s=0.1)
        await caller.at(0.75)
        (chat, copied) = seen
        assert chat == copied
        assert [m["role"] for m in chat] == ["user", "assistant", "tool"]
        assert chat[1]["content"] == "Let me look."
        assert context.as_chat()[1]["content"] == "Let me"
        await caller.quiet()
        roles = [m["role"] for m in context.as_chat()]
        assert roles == ["user", "assistant", "tool", "assistant"]
        assert context.as_chat()[3]["content"] == "Found it."

"""The laws that hold after any interrupt; each breach of one is found."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
import trio.testing

from bargein import App, Call, Message
from bargein.events import (
    AgentGenerationComplete,
    AgentResponse,
    AnswerEnded,
    DTMFInput,
    EmergencyStop,
    ToolCall,
    ToolResult,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import (
    Caller,
    asks_on,
    barge_in,
    interrupt_everywhere,
)
from tests.bridge.scenarios import (
    Generate,
    agent,
    breaches,
    broken,
    one_question,
    sound,
    two_sentences,
)

pytestmark = pytest.mark.proof


def once(call: Call) -> Generate:
    """Answer the first question as ``sound``, and think about the second for ever."""
    asked: list[Message] = []

    async def generate(message: Message) -> AsyncIterator[object]:
        asked.append(message)
        await trio.sleep(0.4)
        yield AgentResponse(content="One sentence. ")
        await trio.sleep(0.4 if len(asked) == 1 else math.inf)
        yield AgentResponse(content="And another.")

    return generate


# --- any interrupt, any agent -------------------------------------------------------------------


def says_wait(caller: Caller) -> None:
    """Begin to speak, and stop half a second later."""

    async def speak() -> None:
        await caller.says("wait", takes_s=0.5)

    caller.call.nursery.start_soon(speak)


@pytest.mark.parametrize(
    "interrupt",
    [
        barge_in,
        says_wait,
        lambda caller: caller.publish(EmergencyStop()),
        lambda caller: caller.publish(DTMFInput(button="1")),
        lambda caller: caller.publish(UserTranscriptionReceived(content="by the way")),
        lambda caller: caller.call.router.cut_all("a test"),
    ],
    ids=["barge-in", "a word", "emergency stop", "nothing", "words", "all runs"],
)
@pytest.mark.parametrize("audio", [True, False], ids=["voice", "text"])
def test_the_laws_hold_for_any_interrupt(interrupt, audio):
    """Two agents, one after the other, whatever comes in between."""

    async def scenario(caller: Caller) -> None:
        await one_question(caller)
        caller.call.hand_over("agent1")
        await one_question(caller)

    answer = App(agent(two_sentences, two_sentences))
    report = interrupt_everywhere(answer, scenario, interrupt=interrupt, audio=audio, limit=5)
    assert report.drifted == 0


SAID = "One sentence. And another."


BREACHES = {
    "the call is over": (
        lambda caller: caller.call.end(),
        "the call has ended: 'ended'",
    ),
    "the call is left at work": (
        lambda caller: caller.publish(UserStoppedSpeaking()),
        "the call is 'speaking' though nothing is to come",
    ),
    "words are lost": (
        lambda caller: caller.said.insert(0, "lost"),
        "the history has lost the user's 'lost', or its place",
    ),
    "words are in another order": (
        lambda caller: caller.said.insert(0, "Well?") or caller.call.history.add_user("And?"),
        "the history has lost the user's 'Well?', or its place",
    ),
    "more is heard than was said": (
        lambda caller: caller.call.history.set_agent(1, "agent", SAID, SAID + "!", "clock"),
        f"answer 1 has heard {SAID + '!'!r} of {SAID!r}",
    ),
    "what was heard is taken back": (
        lambda caller: caller.call.history.set_agent(1, "agent", SAID, "One", "clock"),
        f"answer 1 had been heard as {SAID!r}",
    ),
    "a second end": (
        lambda caller: tell(caller, AnswerEnded(answer=1, agent="agent", outcome="completed")),
        "answer 1 has 2 AnswerEnded",
    ),
    "no end": (
        lambda caller: tell(caller, AgentGenerationComplete(answer=9, outcome="completed")),
        "answer 9 has no AnswerEnded",
    ),
    "audio after the cut": (
        lambda caller: (caller._transport.clear(3, "a cut"), caller._transport.play(3, bytes(2))),
        "audio of utterance 3 was played after it was cut",
    ),
    "a message of a cut run": (
        lambda caller: caller._transport.send(stale_message(caller)),
        "'agent.response' of a run that was cut reached the caller",
    ),
    "two results": (
        lambda caller: tell(
            caller, ToolCall(name="look", id="1"), *2 * [ToolResult(name="look", id="1")]
        ),
        "look '1' has 2 results for 1 calls",
    ),
    "no result": (
        lambda caller: tell(caller, ToolCall(name="look", id="1")),
        "the history has no result of look '1'",
    ),
}


def tell(caller: Caller, *events: object) -> None:
    for event in events:
        caller.call.router.publish_detached(event, "agent")


def stale_message(caller: Caller) -> Message:
    """Return a message of a run that is cut after it was published."""
    message = caller.publish(UserStoppedSpeaking())
    run = next(run for route in caller.call.router.routes for run in route.runs)
    run.cut(reason="a test")
    return Message(AgentResponse(content="late"), "agent", message.id, message.at_s, run)


def break_after(break_it: Callable[[Caller], object], interrupt: Any = len) -> dict[str, Any]:
    """Return what breaks each call that is interrupted, once its scenario is over."""
    interrupted: list[Caller] = []

    def note(caller: Caller) -> None:
        interrupted.append(caller)
        if interrupt is not len:
            interrupt(caller)

    async def probe(caller: Caller) -> None:
        if caller in interrupted:
            break_it(caller)

    return {"interrupt": note, "probe": probe, "audio": True}


@pytest.mark.parametrize("breach", BREACHES)
def test_each_breach_is_found(breach):
    """A call that goes well is then broken, in one way, and the laws say in which."""
    break_it, told = BREACHES[breach]
    found = breaches(broken(agent(once), **break_after(break_it)))
    assert any(text.startswith(told) for text in found), found


def test_an_answer_that_grows_after_its_cut_is_found():
    """What is told of an answer that was cut is its last word."""

    def grow(caller: Caller) -> None:
        entry = next((e for e in caller.call.history if e.role == "agent"), None)
        if entry is not None and entry.interruption is not None:
            caller.call.history.set_agent(1, "agent", SAID, entry.heard, "clock")

    found = breaches(broken(sound, **break_after(grow, barge_in)))
    assert any(text.startswith("answer 1 grew after it was cut") for text in found), found


def test_asks_on_fails_when_nobody_answers():
    """An agent without routes answers nothing."""

    async def answer(call: Call) -> None:
        call.bridge(name="agent")

    with pytest.raises(AssertionError, match=r"an interrupt:\n  probe= raised .* not answer"):
        interrupt_everywhere(answer, one_question, audio=False)
    assert asks_on.__doc__

"""Questions that a tool asks the caller in the midst of its work."""

from __future__ import annotations

import pytest
import structlog
import trio
import trio.testing

from bargein import AgentEntry, ChatNode, ToolEntry, UserEntry
from bargein.events import (
    AgentSpeechCut,
    DTMFInput,
    QuestionAsked,
    QuestionClosed,
    StateChanged,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import AnswerPhrases, QuestionAnswer, ToolContext, tool
from tests.nodes.tools.asking import ACCOUNTS, agent, asked, balance, ends, outcomes


@pytest.mark.parametrize("audio", [True, False])
async def test_the_callers_next_turn_is_the_answer(autojump_clock, audio):
    """The agent asks aloud; what the caller says goes to the tool, and begins no other answer."""
    answers, model = [], ScriptedModel([calls("balance")], "Five euros.")
    async with open_call(agent(balance(answers), model=model), audio=audio) as caller:
        question = await asked(caller)
        assert (question.name, question.call) == ("balance", "call_balance")
        assert (question.text, question.choices) == ("Which account?", ACCOUNTS)
        assert caller.call.snapshot().question == question
        assert caller.call.snapshot().phase == "input"
        assert caller.heard.strip() == "Which account?"
        await trio.sleep(5)
        await caller.says("The savings one, please.")
        await caller.quiet()
        assert answers == [QuestionAnswer("answered", "The savings one, please.", "Savings")]
        assert outcomes(caller) == ["answered"]
        assert ends(caller) == ["completed"]
        assert caller.call.snapshot().question is None
        assert caller.heard == "Which account? Five euros."
        result, note, words = model.requests[-1].messages[-3:]
        assert (result["role"], result["content"]) == ("tool", "Savings")
        assert "\nThe tool balance has asked the user: Which account?\n" in note["content"]
        assert (words["role"], words["content"]) == ("user", "The savings one, please.")
    kinds = [type(entry) for entry in caller.call.history]
    assert (kinds.count(UserEntry), kinds.count(ToolEntry), kinds.count(AgentEntry)) == (2, 1, 1)
    states = [event.state for event in caller.events(StateChanged)]
    assert states.count("waiting_input") == 1


async def test_an_answer_over_the_question_cuts_it_short(autojump_clock):
    """A reply before the end of the question silences it, and the agent's answer continues."""
    answers = []
    async with open_call(agent(balance(answers))) as caller:
        caller.publish(UserTranscriptionReceived(content="How much have I?"))
        caller.publish(UserStoppedSpeaking())
        await caller.until(lambda caller: caller.heard.strip() == "Which")
        await caller.says("Savings")
        await caller.quiet()
        assert [answer.choice for answer in answers] == ["Savings"]
        [cut] = caller.events(AgentSpeechCut)
        assert (cut.heard.strip(), cut.unheard.strip()) == ("Which", "account?")
        assert ends(caller) == ["completed"]
        assert caller.heard == "Which Five euros."
        [entry] = [e for e in caller.call.history if isinstance(e, AgentEntry)]
        assert entry.interruption is None


async def test_a_barge_in_before_the_question_is_heard_interrupts(autojump_clock):
    """Words that began before the question was heard are no reply; they interrupt the answer."""
    answers = []
    model = ScriptedModel(["Let me have a look at that. ", calls("balance")], "Yes?")
    async with open_call(agent(balance(answers), model=model)) as caller:
        caller.publish(UserTranscriptionReceived(content="How much have I?"))
        caller.publish(UserStoppedSpeaking())
        await caller.receives(QuestionAsked)
        assert caller.call.current_state == "speaking"
        await caller.says("Wait, another thing")
        await caller.quiet()
        assert outcomes(caller) == ["interrupted"]
        assert ends(caller) == ["interrupted", "completed"]
        assert answers == []
        assert caller.heard.endswith("Yes?")
        assert "account" not in caller.heard


async def test_a_turn_that_began_before_the_question_is_no_answer(autojump_clock):
    """Words of a caller who was already speaking when the question came are answered as a turn."""
    answers = []

    async def answer(call):
        node = ChatNode(ScriptedModel([calls("balance")], "Five.", "Sure."),
                        tools=[balance(answers)])  # fmt: skip
        call.bridge(node).on(UserStoppedSpeaking).stream(node.generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserTranscriptionReceived(content="How much have I?"))
        caller.publish(UserStoppedSpeaking())
        caller.publish(UserStartedSpeaking())
        await caller.receives(QuestionAsked)
        caller.publish(UserTranscriptionReceived(content="And be quick"))
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        assert caller.call.current_state == "waiting_input"
        await caller.says("Checking")
        await caller.quiet()
        assert [each.text for each in answers] == ["Checking"]
        assert ends(caller) == ["completed", "completed"]


@pytest.mark.parametrize("text", ["Never mind.", "Oh, forget it, thanks"])
async def test_never_mind_withdraws_the_question(autojump_clock, text):
    """The tool learns that the caller wants it no more, and decides what that means."""
    answers = []
    async with open_call(agent(balance(answers))) as caller:
        await asked(caller)
        await caller.says(text)
        await caller.quiet()
        assert answers == [QuestionAnswer("withdrawn", text)]
        assert outcomes(caller) == ["withdrawn"]
        assert ends(caller) == ["completed"]


SPANISH = AnswerPhrases(
    never_mind=("Déjalo", "da igual"),
    polite=("ah", "no", "gracias"),
    fillers=("la", "el", "quiero"),
    ordinals=("primera primero", "segunda segundo"),
    numbers=("uno una", "dos"),
    last=("última", "último"),
)


@pytest.mark.parametrize(
    ("said", "outcome", "choice"),
    [
        ("Ah no, déjalo, gracias.", "withdrawn", None),
        ("no gracias", "answered", None),
        ("Quiero la segunda.", "answered", "Savings"),
        ("el primero", "answered", "Checking"),
        ("la última", "answered", "Savings"),
        ("dos", "answered", "Savings"),
        ("Never mind", "withdrawn", None),
    ],
)
async def test_answers_in_another_language(autojump_clock, said, outcome, choice):
    """The phrases of the call count, and the words of the page's key."""
    answers = []
    bank = agent(balance(answers))

    async def answer(call):
        call.questions.phrases = SPANISH
        await bank(call)

    async with open_call(answer, audio=False) as caller:
        await asked(caller)
        await caller.says(said, takes_s=0)
        await caller.quiet()
    assert answers == [QuestionAnswer(outcome, said, choice)]


async def test_phrases_that_are_none_are_an_error(autojump_clock):
    """ask() raises for choices that are a single text or something else."""
    with pytest.raises(TypeError, match=r"never_mind=\) is a tuple of texts, not 'egal'"):
        AnswerPhrases(never_mind="egal")
    async with open_call(agent()) as caller:
        with pytest.raises(
            TypeError, match=r"phrases is an AnswerPhrases, or the tag of .*, not 3"
        ):
            caller.call.questions.phrases = 3
        with pytest.raises(ValueError, match=r"phrases knows de, en, .*, not 'ru'; give AnswerPhr"):
            caller.call.questions.phrases = "ru"


async def test_keys_answer(autojump_clock):
    """Digits are gathered until # or a gap, and stay out of the history: a PIN is the tool's."""
    got = []

    @tool
    async def pin(context: ToolContext) -> str:
        got.append(await context.ask("Your PIN, please?"))
        got.append(await context.ask("And again?"))
        return "thanks"

    async with open_call(agent(pin)) as caller:
        await asked(caller)
        for button in "1234#":
            caller.publish(DTMFInput(button=button))
        await caller.until(lambda caller: caller.call.current_state == "waiting_input")
        for button in "12":
            await trio.sleep(2.9)
            caller.publish(DTMFInput(button=button))
        began_s = trio.current_time()
        await caller.receives(QuestionClosed)
        assert trio.current_time() - began_s == pytest.approx(3.0, abs=0.01)
        await caller.quiet()
        assert got == [QuestionAnswer("answered", "1234"), QuestionAnswer("answered", "12")]
        assert "1234" not in repr(list(caller.call.history))


async def test_a_key_names_a_choice(autojump_clock):
    """One key is enough for one of a few choices; one that names none changes nothing."""
    answers = []
    async with open_call(agent(balance(answers))) as caller:
        await asked(caller)
        caller.publish(DTMFInput(button="7"))
        await trio.sleep(5)
        assert answers == []
        caller.publish(DTMFInput(button="2"))
        await caller.quiet()
        assert answers == [QuestionAnswer("answered", "2", "Savings")]


async def test_a_key_silences_the_question(autojump_clock):
    """A caller who answers by key does not have to hear the whole question."""
    answers = []
    async with open_call(agent(balance(answers))) as caller:
        caller.publish(UserTranscriptionReceived(content="How much have I?"))
        caller.publish(UserStoppedSpeaking())
        await caller.until(lambda caller: caller.heard.strip() == "Which")
        caller.publish(DTMFInput(button="1"))
        await caller.quiet()
        assert caller.heard == "Which Five euros."
        assert ends(caller) == ["completed"]


async def test_the_handle_answers(autojump_clock):
    """An answer by the handle counts while the question is said, and is the caller's words."""
    answers = []
    async with open_call(agent(balance(answers))) as caller:
        caller.publish(UserTranscriptionReceived(content="How much have I?"))
        caller.publish(UserStoppedSpeaking())
        question = await caller.receives(QuestionAsked)
        handle = caller.call.handle
        assert not handle.answer("question_99", "Savings")
        assert not handle.answer(question.id, "  ")
        with pytest.raises(TypeError, match=r"answer\(\) text= is a string, not 7"):
            handle.answer(question.id, 7)
        assert handle.answer(question.id, "Savings")
        assert not handle.answer(question.id, "Checking")
        await caller.quiet()
        assert answers == [QuestionAnswer("answered", "Savings", "Savings")]
        said = [e.content for e in caller.call.history if isinstance(e, UserEntry)]
        assert said == ["How much have I?", "Savings"]
        assert caller.heard == "Five euros."


async def test_an_answer_is_not_given_back(autojump_clock):
    """A cancel gives back what waits for its own turn, and not the answer that was taken."""

    @tool
    async def slow(context: ToolContext) -> str:
        await context.ask("Which account?")
        await trio.sleep(60)
        return "done"

    async with open_call(agent(slow), audio=False) as caller:
        await asked(caller)
        await caller.says("Savings")
        caller.call.handle.send_input("and hurry")
        receipt = caller.call.handle.cancel()
        assert receipt.returned == ("and hurry",)


async def test_what_is_unclear_names_no_choice(autojump_clock):
    """The tool gets the words as they were, and may ask again."""
    got = []

    @tool
    async def account(context: ToolContext) -> str:
        answer = await context.ask("Which account?", choices=ACCOUNTS)
        while answer.outcome == "answered" and answer.choice is None:
            got.append(answer.text)
            answer = await context.ask("Checking or savings?", choices=ACCOUNTS)
        return answer.choice or answer.outcome

    async with open_call(agent(account), audio=False) as caller:
        await asked(caller)
        await caller.says("the green one")
        await caller.receives(QuestionAsked)
        await caller.says("checking")
        await caller.quiet()
        assert got == ["the green one"]
        assert [result.content for result in caller.events(ToolResult)] == ["Checking"]


async def test_words_are_logged_as_such_only(autojump_clock):
    """What is asked and answered is in the log under keys that say what it is."""
    with structlog.testing.capture_logs() as logs:
        async with open_call(agent(balance([])), audio=False) as caller:
            await asked(caller)
            await caller.says("my Savings")
            await caller.quiet()
    for entry in logs:
        harmless = {key: value for key, value in entry.items() if not key.startswith("pii_")}
        assert "Savings" not in repr(harmless)
        assert "Which account?" not in repr(harmless)
    assert {"question_asked", "question_closed"} <= {entry["event"] for entry in logs}


@pytest.mark.parametrize(
    ("question", "options", "error", "words"),
    [
        (7, {}, TypeError, r"question= is a string, not 7"),
        (" ", {}, ValueError, r"question= is something to say, not ' '"),
        (
            "Which?",
            {"choices": "ab"},
            TypeError,
            r"choices= is a list of texts, or left out, not 'ab'",
        ),
        ("Which?", {"choices": None}, TypeError, "choices= .* or left out, not None"),
        ("Which?", {"choices": [1]}, TypeError, r"choices= is a list of texts, or .* \[1\]"),
        ("Which?", {"choices": ["a", "a"]}, ValueError, r"different texts"),
        ("Which?", {"choices": [" "]}, ValueError, r"none of them empty"),
        ("Which?", {"timeout_s": 0}, ValueError, r"timeout_s= is seconds above 0, or None"),
    ],
)
async def test_an_impossible_question_is_an_error(autojump_clock, question, options, error, words):
    """What cannot be asked fails where the tool asks it, and says why."""
    caught = []

    @tool
    async def wrong(context: ToolContext) -> str:
        with pytest.raises(error, match=words) as info:
            await context.ask(question, **options)
        caught.append(info)
        return "did not ask"

    async with open_call(agent(wrong), audio=False) as caller:
        await caller.says("Go.", takes_s=0)
        await caller.quiet()
        assert len(caught) == 1
        assert caller.events(QuestionAsked) == []

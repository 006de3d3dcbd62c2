"""Questions that a tool asks the caller in the midst of its work."""

from __future__ import annotations

import functools

import pytest
import structlog
import trio
import trio.testing

from bargein import AgentEntry, ChatNode, ToolEntry, UserEntry
from bargein.control import Caps
from bargein.events import (
    AgentSpeechCut,
    CapWarning,
    DTMFInput,
    QuestionAsked,
    QuestionClosed,
    StateChanged,
    ToolResult,
    TurnEnded,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import ScriptedModel, barge_in, calls, interrupt_everywhere, open_call
from bargein.tools import Answer, AnswerPhrases, ToolContext, finish, shield, tool

ACCOUNTS = ("Checking", "Savings")

LIMIT_S = 30.0
"""For tools in threads, which no virtual clock knows of."""


def balance(answers, *, policy="cancel", timeout_s=30.0, choices=ACCOUNTS, limit_s=None):
    """A tool that asks for an account, and keeps what became of that."""

    @tool("balance", policy=policy, timeout_s=limit_s)
    async def balance(context: ToolContext) -> str:
        answer = await context.ask("Which account?", choices=choices, timeout_s=timeout_s)
        answers.append(answer)
        return answer.choice or answer.outcome

    return balance


def agent(*tools, model=None):
    """An agent that calls each tool in its first answer, and then says a word."""
    model = model or ScriptedModel(
        [calls(each.name) for each in tools], "Five euros.", "Yes?", "Well."
    )

    async def answer(call):
        call.converse(ChatNode(model, tools=tools), name="bank")

    return answer


async def asked(caller):
    """Have the question asked, and return it once the caller has heard it."""
    caller.publish(UserTranscriptionReceived(content="How much have I?"))
    caller.publish(UserStoppedSpeaking())
    question = await caller.receives(QuestionAsked)
    await caller.until(lambda caller: caller.call.state == "waiting_input")
    return question


def outcomes(caller):
    """How the questions ended, in order."""
    return [event.outcome for event in caller.events(QuestionClosed)]


def ends(caller):
    """How the turns ended, in order."""
    return [event.outcome for event in caller.events(TurnEnded)]


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
        assert answers == [Answer("answered", "The savings one, please.", "Savings")]
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
    """Who answers before the end of the question silences it, and the turn goes on all the same."""
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
    """Words that began before a word of the question was heard are no answer: they cut the turn."""
    answers = []
    model = ScriptedModel(["Let me have a look at that. ", calls("balance")], "Yes?")
    async with open_call(agent(balance(answers), model=model)) as caller:
        caller.publish(UserTranscriptionReceived(content="How much have I?"))
        caller.publish(UserStoppedSpeaking())
        await caller.receives(QuestionAsked)
        assert caller.call.state == "speaking"
        await caller.says("Wait, another thing")
        await caller.quiet()
        assert outcomes(caller) == ["interrupted"]
        assert ends(caller) == ["interrupted", "completed"]
        assert answers == []
        assert caller.heard.endswith("Yes?")
        assert "account" not in caller.heard


async def test_a_turn_that_began_before_the_question_is_no_answer(autojump_clock):
    """Who was speaking already when the question came has said something else; it is answered."""
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
        assert caller.call.state == "waiting_input"
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
        assert answers == [Answer("withdrawn", text)]
        assert outcomes(caller) == ["withdrawn"]
        assert ends(caller) == ["completed"]


async def test_silence_times_out(autojump_clock):
    """After so many seconds of silence, counted from the end of the question, the tool goes on."""
    answers = []
    async with open_call(agent(balance(answers, timeout_s=8))) as caller:
        await asked(caller)
        began_s = trio.current_time()
        await caller.receives(QuestionClosed)
        assert trio.current_time() - began_s == pytest.approx(8, abs=0.01)
        await caller.quiet()
        assert answers == [Answer("timed_out")]


async def test_time_stands_still_while_somebody_speaks(autojump_clock):
    """A caller who speaks for long, and says nothing that is understood, is not silent."""
    answers = []
    async with open_call(agent(balance(answers, timeout_s=8))) as caller:
        await asked(caller)
        began_s = trio.current_time()
        await trio.sleep(3)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(20)
        caller.publish(UserStoppedSpeaking())
        await caller.receives(QuestionClosed)
        assert trio.current_time() - began_s == pytest.approx(28, abs=0.01)
        await caller.quiet()
        assert [answer.outcome for answer in answers] == ["timed_out"]


async def test_time_stands_still_in_a_pause(autojump_clock):
    """A pause takes no time of the question's; an answer in it reaches the tool at the resume."""
    answers = []
    async with open_call(agent(balance(answers, timeout_s=8))) as caller:
        await asked(caller)
        receipt = caller.call.handle.pause()
        assert caller.call.state == "paused"
        await trio.testing.wait_all_tasks_blocked()
        assert receipt.settled
        await trio.sleep(60)
        assert outcomes(caller) == []
        caller.publish(UserTranscriptionReceived(content="Savings"))
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(60)
        assert outcomes(caller) == ["answered"]
        assert answers == []
        caller.call.handle.resume()
        await caller.quiet()
        assert [answer.choice for answer in answers] == ["Savings"]
        assert ends(caller) == ["completed"]


async def test_no_end_of_the_time(autojump_clock):
    """Without a limit the tool waits for as long as the caller takes, and so does its own limit."""
    answers = []
    async with open_call(agent(balance(answers, timeout_s=None, limit_s=2))) as caller:
        await asked(caller)
        await trio.sleep(10_000)
        assert caller.call.state == "waiting_input"
        await caller.says("the first")
        await caller.quiet()
        assert [answer.choice for answer in answers] == ["Checking"]
        assert [result.outcome for result in caller.events(ToolResult)] == ["completed"]


async def test_the_limit_of_the_tool_goes_on_after_the_answer(autojump_clock):
    """What the tool does after the answer has what the tool's time limit had left."""
    ended = []

    @tool(timeout_s=2)
    async def slow(context: ToolContext) -> str:
        await trio.sleep(1)
        await context.ask("Go on?")
        began_s = trio.current_time()
        try:
            await trio.sleep(5)
        finally:
            ended.append(trio.current_time() - began_s)
        return "done"

    async with open_call(agent(slow), audio=False) as caller:
        await asked(caller)
        await trio.sleep(7)
        await caller.says("yes")
        await caller.quiet()
        assert ended == [pytest.approx(1)]
        assert [result.outcome for result in caller.events(ToolResult)] == ["timed_out"]


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
    assert answers == [Answer(outcome, said, choice)]


async def test_phrases_that_are_none_are_an_error(autojump_clock):
    """A text where several are meant, or something else, is refused where it is written."""
    with pytest.raises(TypeError, match=r"never_mind=\) is a tuple of texts, not 'egal'"):
        AnswerPhrases(never_mind="egal")
    async with open_call(agent()) as caller:
        with pytest.raises(TypeError, match="phrases is an AnswerPhrases, not 'de'"):
            caller.call.questions.phrases = "de"


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_the_time_of_the_caller_is_none_of_the_turn(autojump_clock, policy):
    """Who thinks for a minute makes the agent reach neither its cap nor the limit of its chain."""
    answers = []
    model = ScriptedModel([calls("balance")], "Five euros.", then="Well.")
    node = ChatNode(model, tools=[balance(answers, policy=policy, timeout_s=None)],
                    caps=Caps(wall_s=3.0))  # fmt: skip

    async def answer(call):
        chain = call.bridge(node).on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        chain.stream(node.generate).timeout(3.0).broadcast()

    async with open_call(answer, audio=False) as caller:
        await asked(caller)
        await trio.sleep(60)
        caller.call.handle.pause()
        await trio.sleep(60)
        caller.call.handle.resume()
        await trio.sleep(60)
        assert caller.call.snapshot().caps["wall_s"] == (0, 3.0)
        await caller.says("the first")
        await caller.quiet()
        assert [answer.choice for answer in answers] == ["Checking"]
        assert ends(caller) == ["completed"]
        assert not caller.events(CapWarning)


async def test_the_cap_counts_on_after_the_answer(autojump_clock):
    """What the agent does after the answer has what it had left."""

    @tool
    async def slow(context: ToolContext) -> str:
        await trio.sleep(1)
        await context.ask("Go on?")
        await trio.sleep(5)
        return "done"

    model = ScriptedModel([calls("slow")])
    node = ChatNode(model, tools=[slow], caps=Caps(wall_s=3.0))

    async def answer(call):
        call.converse(node)

    async with open_call(answer, audio=False) as caller:
        await asked(caller)
        await trio.sleep(20)
        await caller.says("yes", takes_s=0)
        said_s = trio.current_time()
        await caller.receives(TurnEnded)
        assert ends(caller) == ["capped"]
        assert trio.current_time() - said_s == pytest.approx(2)


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        ("cancel", "withdrawn"),
        ("emergency_stop", "withdrawn"),
        ("shutdown", "withdrawn"),
        ("redirect", "interrupted"),
        ("barge_in", "interrupted"),
        ("background", "interrupted"),
    ],
)
@pytest.mark.parametrize("policy", ["cancel", "detach", finish(2.0), shield(2.0)])
async def test_a_verb_closes_the_question(autojump_clock, verb, outcome, policy):
    """In its step the question is closed; a tool that may go on learns how, another is cut."""
    answers = []
    async with open_call(agent(balance(answers, policy=policy))) as caller:
        await asked(caller)
        handle = caller.call.handle
        receipt = handle.redirect("stop that") if verb == "redirect" else getattr(handle, verb)()
        assert receipt.accepted
        assert outcomes(caller) == [outcome]
        assert caller.call.snapshot().question is None
        await trio.sleep(20)
        assert outcomes(caller) == [outcome]
        forced = verb in ("emergency_stop", "shutdown") or policy == "cancel"
        if verb == "background" or (not forced):
            assert answers == [Answer(outcome)]
        elif verb == "emergency_stop":
            assert answers == []
        assert len(caller.events(ToolResult)) == 1


async def test_cancelling_the_wait_withdraws_the_question(autojump_clock):
    """A tool that stops waiting takes its question back, and the caller's next turn is a turn."""

    @tool
    async def hasty(context: ToolContext) -> str:
        with trio.move_on_after(2):
            await context.ask("Which account?")
        return "chose one"

    async with open_call(agent(hasty), audio=False) as caller:
        await asked(caller)
        await caller.receives(QuestionClosed)
        assert outcomes(caller) == ["withdrawn"]
        await caller.quiet()
        await caller.says("Hello?")
        await caller.quiet()
        assert ends(caller) == ["completed", "completed"]


async def test_the_end_of_the_call_closes_the_question(autojump_clock):
    """A caller who hangs up has answered nothing, and nothing waits any more."""
    answers = []
    async with open_call(agent(balance(answers))) as caller:
        await asked(caller)
        caller.call.end("hangup")
        assert caller.call.questions.open is None
        await trio.sleep(1)
        assert answers == [Answer("withdrawn")]


async def test_a_hand_over_closes_the_question(autojump_clock):
    """The caller now talks with another agent, which is no longer asked about."""
    answers = []

    async def answer(call):
        await agent(balance(answers, policy=finish(5.0)))(call)
        call.converse(ChatNode(ScriptedModel("Unheard.", "I am the other one.")), name="other")

    async with open_call(answer, audio=False) as caller:
        await asked(caller)
        caller.call.hand_over("other")
        assert outcomes(caller) == ["interrupted"]
        await trio.sleep(1)
        assert answers == [Answer("interrupted")]
        await caller.says("Savings")
        await caller.quiet()
        assert caller.heard.endswith("I am the other one.")


async def test_two_questions_come_one_after_the_other(autojump_clock):
    """A second tool of the same step asks once the first has its answer."""
    got = []

    @tool
    async def size(context: ToolContext) -> str:
        got.append((await context.ask("Which size?")).text)
        return got[-1]

    @tool
    async def colour(context: ToolContext) -> str:
        got.append((await context.ask("Which colour?")).text)
        return got[-1]

    async with open_call(agent(size, colour)) as caller:
        first = await asked(caller)
        assert len(caller.events(QuestionAsked)) == 1
        await caller.says("Large")
        await caller.until(lambda caller: len(caller.events(QuestionAsked)) == 2)
        second = caller.events(QuestionAsked)[1]
        assert first.id != second.id
        assert not caller.call.handle.answer(first.id, "Small")
        await caller.until(lambda caller: caller.call.state == "waiting_input")
        await caller.says("Red")
        await caller.quiet()
        assert sorted(got) == ["Large", "Red"]
        assert outcomes(caller) == ["answered", "answered"]
        assert ends(caller) == ["completed"]


async def test_a_cancel_closes_the_questions_in_line(autojump_clock):
    """None of a cut turn's questions is asked after the cut."""

    @tool
    async def size(context: ToolContext) -> str:
        return (await context.ask("Which size?")).text

    @tool
    async def colour(context: ToolContext) -> str:
        return (await context.ask("Which colour?")).text

    async with open_call(agent(size, colour)) as caller:
        await asked(caller)
        caller.call.handle.cancel()
        await trio.sleep(5)
        assert len(caller.events(QuestionAsked)) == 1
        assert outcomes(caller) == ["withdrawn"]
        assert caller.call.state == "idle"


def with_sub_agent(answers, **options):
    """An agent whose tool is an agent, whose tool asks."""

    @tool
    async def clerk() -> str:
        """Ask a colleague."""
        inner = ChatNode(
            ScriptedModel(calls("balance"), "They have five."), tools=[balance(answers, **options)]
        )
        inner.add_event(UserTranscriptionReceived(content="How much have they?"))
        return "".join([piece.content async for piece in inner.generate()])

    return agent(clerk)


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize(
    ("said", "outcome"),
    [("Savings, please.", "answered"), ("Never mind.", "withdrawn"), (None, "timed_out")],
)
async def test_a_tool_of_an_agent_within_a_tool_asks(autojump_clock, said, outcome, audio):
    """The agent of the turn asks for it, and the answer begins no other turn."""
    answers = []
    async with open_call(with_sub_agent(answers, timeout_s=5.0), audio=audio) as caller:
        question = await asked(caller)
        assert (question.name, caller.call.state) == ("balance", "waiting_input")
        if said is not None:
            await caller.says(said)
        await caller.at(20)
        assert [answer.outcome for answer in answers] == [outcome] == outcomes(caller)
        assert caller.heard == "Which account? Five euros."
        assert ends(caller) == ["completed"]


async def test_a_job_asks_nobody(autojump_clock):
    """A tool in the background learns at once that nobody is asked."""
    answers = []

    @tool(policy="detach")
    async def job(context: ToolContext) -> str:
        await trio.sleep(5)
        answers.append(await context.ask("Which account?"))
        return "done without asking"

    async with open_call(agent(job)) as caller:
        caller.publish(UserTranscriptionReceived(content="Go"))
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        caller.call.handle.background()
        await trio.sleep(10)
        assert answers == [Answer("interrupted")]
        assert caller.events(QuestionAsked) == []


async def test_a_tool_in_a_thread_asks():
    """A plain function asks by way of trio's door from threads."""
    answers = []

    @tool
    def plain(context: ToolContext) -> str:
        ask = functools.partial(context.ask, "Which account?", choices=ACCOUNTS)
        answers.append(trio.from_thread.run(ask))
        return "done"

    async with open_call(agent(plain), audio=False) as caller:
        with trio.fail_after(LIMIT_S):
            await asked(caller)
            await caller.says("number two", takes_s=0)
            await caller.quiet()
        assert answers == [Answer("answered", "number two", "Savings")]


@pytest.mark.parametrize("how", ["cancel", "hang up"])
async def test_a_thread_that_waits_is_released(how):
    """A cut, or the end of the call, lets a thread go that waits for an answer."""
    answers, ended = [], trio.Event()

    @tool
    def plain(context: ToolContext) -> str:
        try:
            answers.append(trio.from_thread.run(context.ask, "Which account?"))
        finally:
            trio.from_thread.run_sync(ended.set)
        return "done"

    async with open_call(agent(plain), audio=False) as caller:
        await asked(caller)
        if how == "cancel":
            caller.call.handle.cancel()
        else:
            caller.call.end("hangup")
        with trio.fail_after(LIMIT_S):
            await ended.wait()
        assert answers == [Answer("withdrawn")]


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
        await caller.until(lambda caller: caller.call.state == "waiting_input")
        for button in "12":
            await trio.sleep(2.9)
            caller.publish(DTMFInput(button=button))
        began_s = trio.current_time()
        await caller.receives(QuestionClosed)
        assert trio.current_time() - began_s == pytest.approx(3.0, abs=0.01)
        await caller.quiet()
        assert got == [Answer("answered", "1234"), Answer("answered", "12")]
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
        assert answers == [Answer("answered", "2", "Savings")]


async def test_a_key_silences_the_question(autojump_clock):
    """Who keys an answer over the question does not have to hear it out."""
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
        assert answers == [Answer("answered", "Savings", "Savings")]
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
        ("Which?", {"choices": "ab"}, TypeError, r"choices= is a list of texts, not 'ab'"),
        ("Which?", {"choices": [1]}, TypeError, r"choices= is a list of texts, not \[1\]"),
        ("Which?", {"choices": ["a", "a"]}, ValueError, r"different texts"),
        ("Which?", {"choices": [" "]}, ValueError, r"none of them empty"),
        ("Which?", {"timeout_s": 0}, ValueError, r"timeout_s= is above 0, or None"),
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


def cancels(caller):
    """Cancel the work."""
    caller.call.handle.cancel()


def stops(caller):
    """Press the Stop key."""
    caller.call.handle.emergency_stop()


def moves(caller):
    """Move the work to the background."""
    caller.call.handle.background()


@pytest.mark.proof
@pytest.mark.parametrize("interrupt", [barge_in, cancels, stops, moves])
@pytest.mark.parametrize("policy", ["cancel", finish(2.0)])
def test_a_question_bears_an_interrupt_at_every_point(interrupt, policy):
    """Wherever the interrupt falls, each question has one end, and the laws hold."""

    def answering(request):
        return calls("balance") if "How much" in request.last_text else "I am here."

    async def scenario(caller):
        await caller.says("How much have I?", takes_s=0.2)
        await trio.sleep(2.0)
        await caller.says("Savings", takes_s=0.2)
        await caller.quiet()

    def check(caller):
        asked_ids = [event.id for event in caller.events(QuestionAsked)]
        assert asked_ids == [event.id for event in caller.events(QuestionClosed)]
        assert caller.call.questions.open is None
        assert caller.call.router.withholds is None

    async def answer(call):
        call.converse(
            ChatNode(ScriptedModel(then=answering), tools=[balance([], policy=policy, timeout_s=5)])
        )

    interrupt_everywhere(answer, scenario, interrupt=interrupt, check=check, limit=60)

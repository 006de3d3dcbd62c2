"""The watchdog of the stages: which stage keeps the caller waiting, in virtual time."""

from contextlib import nullcontext

import pytest
import trio

from bargein import App, Budgets, ChatNode, NoteEntry, ReasoningNode, tool
from bargein.events import (
    AgentAudio,
    AgentResponse,
    StageStalled,
    UserStartedSpeaking,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.testing import ScriptedModel, calls, open_call


class Waiting(ReasoningNode):
    """Says what it is given; a number is a wait in seconds."""

    def __init__(self, *steps):
        super().__init__()
        self.steps = steps

    async def process_context(self, context):
        for step in self.steps:
            if isinstance(step, str):
                yield AgentResponse(content=step)
            else:
                await trio.sleep(step)


def app_with(*steps, **options):
    async def answer(call):
        call.converse(Waiting(*steps))

    return App(answer, **options)


def stalls(caller):
    return [
        (s.event.stage, round(s.at_s, 2))
        for s in caller.received
        if isinstance(s.event, StageStalled)
    ]


async def ask(caller):
    await caller.says("hello", at_s=0.0, takes_s=1.0)
    await caller.quiet()


async def test_a_model_that_says_nothing_is_named(autojump_clock):
    """The first token's budget runs from the end of the caller's turn, and again after that."""
    async with open_call(app_with(5.0, "Hello.")) as caller:
        await ask(caller)
    assert stalls(caller) == [("first_token", 3.2), ("first_token", 5.4)]
    assert [s.count for s in caller.events(StageStalled)] == [1, 2]


async def test_an_answer_in_time_stalls_nowhere(autojump_clock):
    """Whoever answers within the budget is not named, however long the answer is."""
    async with open_call(app_with(2.0, *["One two three four five six. "] * 9)) as caller:
        await ask(caller)
    assert stalls(caller) == []


async def test_a_model_that_stops_in_mid_answer_is_named(autojump_clock):
    """Silence counts from the last sound, not from the last token."""
    async with open_call(app_with("Fifteen letters. ", 6.0, "More.")) as caller:
        await ask(caller)
    ((stage, at_s), *_) = stalls(caller)
    assert stage == "between_tokens"
    assert at_s == pytest.approx(1 + 17 / 15 + 2.2, abs=0.1)


async def test_a_tool_that_takes_long_is_named(autojump_clock):
    """A tool is waited for once all that was said before it is heard."""

    @tool
    async def slow() -> str:
        """Take long."""
        await trio.sleep(4)
        return "done"

    async def answer(call):
        model = ScriptedModel(["Let me see. ", calls("slow")], "Done.")
        call.converse(ChatNode(model, tools=[slow]))

    async with open_call(App(answer)) as caller:
        await ask(caller)
    assert [stage for stage, _ in stalls(caller)] == ["tool"]


@pytest.mark.parametrize(("first", "stage"), [(b"", "first_audio"), (bytes(200), "between_audio")])
async def test_a_voice_that_gives_nothing_is_named(autojump_clock, first, stage):
    """A text without sound is the voice's, and so is one of which no more sound comes."""

    class Voice:
        def attach(self, call):
            bridge = call.bridge(name="voice", is_agent=False)

            def begin(message):
                number = bridge.utterance_of(message)
                return AgentAudio(first, 24_000, "One two. ", last=False, utterance=number)

            if first:
                bridge.on(AgentResponse).map(begin).broadcast()

        def open(self):
            return nullcontext()

    async with open_call(app_with("One two. ", speech=Voice()), own_speech=True) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(4.0)
        assert [found for found, _ in stalls(caller)] == [stage]


async def test_a_lost_line_is_named(autojump_clock):
    """While the caller's connection is lost nobody hears what is said."""
    async with open_call(app_with("One two three four five six seven. ")) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(1.2)
        caller.call.hold_speech("connection")
        await caller.at(5.0)
        caller.call.release_speech("connection")
        await caller.quiet()
    assert "line" in [stage for stage, _ in stalls(caller)]
    assert caller.heard == "One two three four five six seven. "


async def report_every_quarter_second(caller, from_s, until_s, *, began_s):
    """Play the first utterance, as a player that tells how far it is."""
    while from_s < until_s:
        await caller.at(from_s)
        caller.call.report_playback(1, (from_s - began_s) * 1000, "position")
        from_s += 0.25


async def test_a_line_that_is_half_dead_is_named(autojump_clock):
    """It takes audio, but the player does not say any more that it plays."""
    async with open_call(app_with("One two three four five six seven. " * 6)) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await report_every_quarter_second(caller, 1.25, 6.1, began_s=1.0)
        assert stalls(caller) == []
        await caller.at(10.5)
        assert stalls(caller) == [("line", 8.2), ("line", 10.4)]
        assert [s.silent_s for s in caller.events(StageStalled)] == [2.2, 4.4]
        await report_every_quarter_second(caller, 10.5, 14.0, began_s=1.0)
        assert len(stalls(caller)) == 2


@pytest.mark.parametrize("played_ms", [float("nan"), float("inf"), -1.0])
async def test_a_line_that_reports_nonsense_is_named(autojump_clock, played_ms):
    """What is no position says nothing of what is heard; the record tells of the line."""
    async with open_call(app_with("One two three four five six seven. " * 6)) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await report_every_quarter_second(caller, 1.25, 2.1, began_s=1.0)
        while caller.now_s < 4.5:
            caller.call.report_playback(1, played_ms, "position")
            await trio.sleep(0.25)
        assert stalls(caller) == [("line", 4.2)]
        (fault,) = [e for e in caller.call.history if isinstance(e, NoteEntry)]
        assert fault.content == "line stalled: nothing was heard for 2.2 s"


async def test_a_line_that_is_slow_is_not_named(autojump_clock):
    """Reports that come a second and a half late are reports."""
    async with open_call(app_with("One two three four five six seven. " * 6)) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        for at_s in (1.5, 3.0, 4.5, 6.0, 7.5, 9.0):
            await caller.at(at_s)
            caller.call.report_playback(1, max(0.0, at_s - 2.5) * 1000, "position")
        assert stalls(caller) == []


@pytest.mark.parametrize("kind", ["position", "done"])
async def test_a_line_that_dies_before_an_answer_is_named(autojump_clock, kind):
    """A player that has told how far it was owes that of the next answer, too."""
    async with open_call(app_with("One two three four five six seven. " * 3)) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await report_every_quarter_second(caller, 1.25, 8.1, began_s=1.0)
        caller.call.report_playback(1, 9000, kind)
        await caller.says("again", at_s=10.0, takes_s=1.0)
        await caller.at(15.0)
        assert [stage for stage, _ in stalls(caller)] == ["line"]


async def test_a_player_that_never_tells_how_far_it_is_owes_no_report(autojump_clock):
    """A telephone line may tell the end of a text, and nothing before."""
    async with open_call(app_with("One two three four five six seven. " * 3)) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(8.5)
        caller.call.report_playback(1, 9000, "done")
        await caller.says("again", at_s=10.0, takes_s=1.0)
        await caller.quiet()
        assert stalls(caller) == []


@pytest.mark.parametrize("kind", ["underrun", "position"])
async def test_a_voice_that_stalls_is_not_taken_for_the_line(autojump_clock, kind):
    """A player that has played all that it got has nothing to report."""
    async with open_call(app_with("One two three four five. ", 9.0, "Six.")) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await report_every_quarter_second(caller, 1.25, 2.4, began_s=1.0)
        await caller.at(2.7)
        caller.call.report_playback(1, 1667, kind)
        await caller.at(8.0)
        assert {stage for stage, _ in stalls(caller)} == {"between_tokens"}


async def test_a_voice_that_is_held_owes_no_report(autojump_clock):
    """While a barge-in is considered the player stands still."""
    async with open_call(app_with("One two three four five six seven. " * 3)) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await report_every_quarter_second(caller, 1.25, 2.1, began_s=1.0)
        caller.call.hold_speech("vad")
        await caller.at(6.0)
        caller.call.release_speech("vad")
        await report_every_quarter_second(caller, 6.25, 8.0, began_s=5.0)
        assert stalls(caller) == []


async def test_words_that_come_late_begin_the_wait_for_the_end_of_the_turn(autojump_clock):
    """A voice may have stopped before its words make a turn of it."""
    app = app_with("Hi.", budgets=Budgets(end_of_turn_s=1.5, ear_s=None))
    async with open_call(app) as caller:
        caller.publish(VoiceStarted())
        caller.publish(VoiceStopped())
        await caller.at(0.5)
        caller.publish(VoiceWords(content="hello"))
        caller.publish(UserStartedSpeaking())
        await caller.at(1.8)
        assert [stage for stage, _ in stalls(caller)] == ["end_of_turn"]


@pytest.mark.parametrize(("words", "stage"), [("", "ear"), ("hello", "end_of_turn")])
async def test_ears_that_are_late_are_named(autojump_clock, words, stage):
    """A voice that stopped has words within the budget, and a turn that is over."""
    app = app_with("Hi.", budgets=Budgets(end_of_turn_s=1.5, ear_s=1.0))
    async with open_call(app) as caller:
        caller.publish(UserStartedSpeaking())
        caller.publish(VoiceStarted())
        await caller.at(5.0)
        assert stalls(caller) == []
        caller.publish(VoiceStopped())
        caller.publish(VoiceWords(content=words))
        await caller.at(6.8)
        assert [found for found, _ in stalls(caller)][:1] == [stage]


async def test_what_stalled_is_in_the_history_and_not_told_to_the_model(autojump_clock):
    """People read it there; the model would only answer it."""
    async with open_call(app_with(3.0, "Hello.")) as caller:
        await ask(caller)
        (fault,) = [e for e in caller.call.history if isinstance(e, NoteEntry)]
        assert fault.kind == "fault"
        assert fault.content == "first_token stalled: nothing was heard for 2.2 s"
        chat = caller.call.floor.node.context.as_chat()
        assert [said["role"] for said in chat] == ["user", "assistant"]


async def test_nobody_waits_while_the_call_is_paused_or_asks(autojump_clock):
    """A call that is paused, or that waits for the caller, is not silent by a fault."""
    async with open_call(app_with(3.0, "Hello.")) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(2.0)
        caller.call.handle.pause()
        await caller.at(20.0)
        assert stalls(caller) == []
        caller.call.handle.resume()
        await caller.at(21.0)
        assert stalls(caller) == []
        await caller.quiet()
        await caller.at(40.0)
        assert stalls(caller) == []


async def test_a_stage_without_a_budget_is_not_watched(autojump_clock):
    """None watches a stage not at all, and an app without budgets none."""
    for budgets in (Budgets(first_token_s=None), None):
        async with open_call(app_with(9.0, "Hello.", budgets=budgets)) as caller:
            await ask(caller)
        assert stalls(caller) == []


@pytest.mark.parametrize("wrong", [0, -1, float("inf"), float("nan")])
def test_a_budget_is_above_zero(wrong):
    """A budget of nothing would fire at once, and one without end is None."""
    with pytest.raises(ValueError, match="tool_s"):
        Budgets(tool_s=wrong)


@pytest.mark.parametrize("wrong", ["2", True, [2]])
def test_a_budget_is_a_number(wrong):
    """What is no number of seconds is refused where it is written."""
    with pytest.raises(TypeError, match="tool_s"):
        Budgets(tool_s=wrong)


async def test_a_call_with_text_alone_is_not_watched(autojump_clock):
    """Who reads sees that the agent thinks, and hears no silence."""
    async with open_call(app_with(9.0, "Hello."), audio=False) as caller:
        await ask(caller)
    assert stalls(caller) == []

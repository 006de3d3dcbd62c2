"""What the caller hears while an answer does not come, in virtual time."""

from contextlib import nullcontext

import pytest
import structlog.testing
import trio

from bargein import App, ChatNode
from bargein.events import (
    AnswerEnded,
    StageStalled,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.speech import Fillers, Speech, SpeechPiece, SpokenFillers, TTSNode
from bargein.testing import ScriptedModel, open_call
from bargein.user_turns import TurnTaking

from .failing import Fault, WordEar, WordModel, WordVoice

ANSWER = "Alpha bravo charlie delta echo foxtrot. Golf hotel india juliet kilo lima."


@pytest.fixture
def voice():
    """Return a voice that works."""
    return WordVoice()


def app_with(model, voice, **options):
    async def answer(call):
        call.converse(ChatNode(model))

    return App(answer, speech=Speech(WordEar(), voice, **options))


async def ask(caller):
    await caller.says("hello", at_s=0.0, takes_s=1.0)


def heard_by_agent(caller):
    return [(e.agent, e.heard) for e in caller.call.history if e.role == "agent"]


async def test_an_answer_that_comes_late_follows_a_filler(autojump_clock, voice):
    """The history has both, but the model sees only its own words."""
    model = ScriptedModel([4.0, "Here I am."], "Yes.")
    async with open_call(app_with(model, voice), own_speech=True) as caller:
        await ask(caller)
        await caller.quiet()
        assert caller.heard == "One moment.\nHere I am."
        await caller.says("good", takes_s=1.0)
        await caller.quiet()
    asked = [m["content"] for m in model.requests[-1].messages]
    assert asked == ["hello", "Here I am.", "good"]
    notices = [e.is_notice for e in caller.call.history if e.role == "agent"]
    assert notices == [True, False, False]


async def test_a_filler_stands_in_the_middle_of_an_answer(autojump_clock, voice):
    """After the filler the answer continues with the next word, and is heard in full."""
    model = ScriptedModel(["One two three. ", 6.0, "Four five."])
    async with open_call(app_with(model, voice), own_speech=True) as caller:
        await ask(caller)
        await caller.quiet()
        assert ("call", "One moment.") in heard_by_agent(caller)
        assert ("chat_node", "One two three. Four five.") in heard_by_agent(caller)


async def test_a_slow_model_is_heard_word_by_word(autojump_clock, voice):
    """What it has written is better than a filler, and it is not given up while it writes."""
    model = WordModel(ANSWER)
    model.fault = Fault("slow")
    async with open_call(app_with(model, voice), own_speech=True) as caller:
        await ask(caller)
        await caller.quiet()
        assert caller.heard.split() == ANSWER.split()
        assert {e.stage for e in caller.events(StageStalled)} == {"between_tokens"}


async def test_the_caller_interrupts_a_filler(autojump_clock, voice):
    """A barge-in cuts it, and the answer that was waited for, as anything that is said."""
    model = ScriptedModel([9.0, "Too late."], "Yes?")
    async with open_call(app_with(model, voice), own_speech=True) as caller:
        await ask(caller)
        await caller.at(3.45)
        caller.publish(UserStartedSpeaking())
        await caller.at(3.6)
        assert next(e.heard for e in caller.call.history if e.role == "agent") == "One"
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard.endswith("Yes?")


async def test_a_caller_who_goes_on_cuts_a_filler(autojump_clock, voice):
    """Words that are late bring a filler into the caller's own turn; their voice ends it."""

    class Stack:
        spoken = SpokenFillers(Fillers(), voice)

        def open(self):
            return nullcontext()

        def attach(self, call):
            TurnTaking().attach(call)
            TTSNode(call.bridge(name="voice", is_agent=False), voice, self.spoken)

    async def answer(call):
        call.converse(ChatNode(ScriptedModel("Sure.")))

    async with open_call(App(answer, speech=Stack()), own_speech=True) as caller:
        await caller.at(2.0)  # the fillers are made
        caller.publish(VoiceStarted())
        await caller.at(3.0)
        caller.publish(VoiceStopped())
        await caller.at(5.1)
        assert caller.call.current_state == "speaking"
        caller.publish(VoiceStarted())
        await caller.at(5.2)
        assert caller.call.current_state == "listening"
        assert caller.heard == "One"
        caller.publish(VoiceStopped())
        caller.publish(VoiceWords(content="tell me more"))
        await caller.at(9.0)
        assert caller.heard == "One\nSure."


async def test_fillers_end_in_an_apology_and_the_answer_has_failed(autojump_clock, voice):
    """A model that never answers costs its turn; the next one is answered."""
    model = ScriptedModel([60.0, "Too late."], "Here again.")
    async with open_call(app_with(model, voice), own_speech=True) as caller:
        await ask(caller)
        await caller.quiet()
        fillers = Fillers()
        assert caller.heard == "\n".join([*fillers.fillers, fillers.apology])
        (ended,) = [e for e in caller.events(AnswerEnded) if e.agent == "chat_node"]
        assert ended.outcome == "failed"
        (record,) = caller.call.history.interruptions
        assert record.cause == "first_token stalled"
        await caller.says("hello", takes_s=1.0)
        await caller.quiet()
        assert caller.heard.endswith("Here again.")


async def test_the_voice_that_failed_is_not_asked_for_fillers(autojump_clock, voice):
    """Their sound was made when the speech stack opened, before anything could fail."""
    app = app_with(WordModel(ANSWER), voice)
    async with app.open(), open_call(app, own_speech=True, expect_errors=True) as caller:
        made = len(voice.said)
        voice.fault = Fault("stall")
        await ask(caller)
        await caller.quiet()
        assert len(voice.said) == made
        assert caller.heard.startswith("One moment.")


async def test_texts_of_your_own(autojump_clock, voice):
    """An app says what its callers understand; a text that is empty is not said."""
    fillers = Fillers(fillers=("Einen Moment.",), apology="")
    app = app_with(ScriptedModel([60.0, "Too late."]), voice, fillers=fillers)
    async with open_call(app, own_speech=True) as caller:
        await ask(caller)
        await caller.quiet()
        assert caller.heard == "Einen Moment."
        assert len(caller.events(StageStalled)) == 2


async def test_without_fillers_nothing_is_said_and_nothing_given_up(autojump_clock, voice):
    """A stack without fillers waits for as long as it takes."""
    app = app_with(ScriptedModel([30.0, "At last."]), voice, fillers=None)
    async with open_call(app, own_speech=True) as caller:
        await ask(caller)
        await caller.quiet()
        assert caller.heard == "At last."


async def test_a_voice_that_fails_at_once_leaves_the_app_open(autojump_clock, voice):
    """The fillers of a voice that is out of reach are made for the next call."""
    voice.fault = Fault("drop")
    app = app_with(ScriptedModel([4.0, "Here I am."]), voice)
    async with app.open():
        assert voice.said == []
        voice.fault = Fault()
        async with open_call(app, own_speech=True) as caller:
            await ask(caller)
            await caller.quiet()
            assert caller.heard == "One moment.\nHere I am."
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("wrong", ["One moment.", ("One moment.", 2)])
def test_fillers_are_a_tuple_of_texts(wrong):
    """A single text raises, because it would be split into letters."""
    with pytest.raises(TypeError, match="Fillers"):
        Fillers(fillers=wrong)


async def test_a_text_behind_a_stalled_answer_is_heard_though_that_is_given_up(
    autojump_clock, voice
):
    """The fillers went ahead of both; the answer that is cut takes away nothing but itself."""
    model = ScriptedModel(["Let me see. ", 30.0, "Here I am."])
    async with open_call(app_with(model, voice), own_speech=True) as caller:
        await ask(caller)
        await caller.receives(StageStalled)
        text = caller.call.say("You are next.")
        await caller.quiet()
        assert await text == "completed"
        assert "You are next." in caller.heard.splitlines()
        assert [e.outcome for e in caller.events(AnswerEnded) if e.agent != "call"] == ["failed"]


async def test_a_filler_is_heard_though_its_answer_is_cut(autojump_clock, voice):
    """A hand-over cuts the answer that the filler went ahead of, and not the filler."""

    async def answer(call):
        call.converse(ChatNode(ScriptedModel(["Let me think. ", 30.0, "Here I am."])), name="first")
        call.bridge(ChatNode(ScriptedModel("Hello.")), name="second")

    app = App(answer, speech=Speech(WordEar(), voice))
    async with open_call(app, own_speech=True) as caller:
        await ask(caller)
        await caller.receives(StageStalled)
        caller.call.hand_over("second")
        await caller.quiet()
        assert "One moment." in caller.heard


@pytest.mark.parametrize("error", [RuntimeError("no voice"), SystemExit(1)])
async def test_a_voice_that_cannot_say_the_fillers_costs_them_alone(autojump_clock, error):
    """Whatever it raises, the call goes on without fillers; their failure is logged."""

    class Broken(WordVoice):
        def open_context(self, style):
            raise error

    spoken = SpokenFillers(Fillers(), Broken())
    with structlog.testing.capture_logs() as logs:
        await spoken.prepare()
    assert [line["event"] for line in logs] == ["fillers_not_ready"]
    assert not spoken.is_ready


class UnplayableVoice:
    """Makes every text, at a rate that no player takes."""

    sample_rate_hz = 0

    async def synthesize(self, text):
        await trio.lowlevel.checkpoint()
        yield SpeechPiece(bytes(3200))


async def test_an_apology_that_fails_is_not_apologised_for(autojump_clock):
    """If even the prepared texts cannot be played, there is one attempt and then silence."""
    model = ScriptedModel("Here I am.")
    app = app_with(model, UnplayableVoice())
    async with open_call(app, own_speech=True, expect_errors=True) as caller:
        await ask(caller)
        await trio.sleep(30)
        assert not caller.heard
        failed = [e for e in caller.events(AnswerEnded) if e.outcome == "failed"]
    assert [e.agent for e in failed] == ["chat_node", "call"]


@pytest.mark.parametrize(
    ("options", "heard"),
    [
        ({}, "Einen Moment, bitte."),
        ({"fillers": Fillers(fillers=("Moment!",))}, "Moment!"),
        ({"fillers": Fillers()}, "One moment."),
    ],
)
async def test_fillers_are_in_the_language_of_the_app(autojump_clock, voice, options, heard):
    """Unless the developer chose others."""
    spoken = app_with(ScriptedModel([4.0, "Ja."]), voice, **options)
    app = App(spoken.answer, speech=spoken.speech, language="de")
    async with open_call(app, own_speech=True) as caller:
        await ask(caller)
        await caller.quiet()
        assert caller.heard == f"{heard}\nJa."


async def test_fillers_of_the_language_are_ready_before_the_first_call(autojump_clock, voice):
    """The voice says them when the app opens, because later it may be what fails."""
    async with App(lambda call: None, speech=Speech(WordEar(), voice), language="de").open():
        assert voice.said[:3] == ["Einen", "Moment,", "bitte."]
        assert "moment." not in voice.said

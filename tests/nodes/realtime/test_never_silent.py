"""A speech-to-speech model that hangs or fails, in a call without a voice of its own."""

from __future__ import annotations

import io
import wave
from typing import Any

import pytest
import trio

from bargein import Call, tool
from bargein.events import AgentAudio, AnswerEnded
from bargein.fakes import FakeOpenAIRealtime, Fault, RealtimeCall
from bargein.routes import Message
from bargein.speech import Fillers, Speech

from .calling import LONG, calling

FILLERS = Fillers()
NOTICES = (*FILLERS.fillers, FILLERS.apology)
LONGEST_SILENCE_S = 3.2
"""Until the caller hears something after their turn, and after each thing that they hear: the
budget of a stage, the time in which the turn is decided, and some rounding."""


def notices(caller: Any) -> list[str]:
    """Return the notices that the caller has heard."""
    entries = caller.call.history.entries
    return [e.heard.strip() for e in entries if e.role == "agent" and e.is_notice]


def sounds_of(caller: Any) -> list[tuple[float, AgentAudio]]:
    """Return what of the agent sounds from now on, and when it came; it grows."""
    sounds: list[tuple[float, AgentAudio]] = []

    def keep(message: Message) -> None:
        if message.event.pcm:
            sounds.append((trio.current_time(), message.event))

    caller.call.router.observe(AgentAudio, keep)
    return sounds


@pytest.mark.parametrize("at", ["first", "middle"])
async def test_a_model_that_hangs_is_waited_for_aloud_and_apologised_for(
    autojump_clock: Any, at: Any
) -> None:
    """Without any voice the caller hears the fillers, and then the apology."""
    vendor = FakeOpenAIRealtime(f"{LONG}.", "Here.", fault=Fault("stall", at))
    async with vendor.open(), calling(vendor, errors=True, speech=Speech()) as caller:
        await vendor.hear("Hello?", written_s=0.0)
        over_s, sounds = trio.current_time(), sounds_of(caller)
        await caller.quiet(within_s=30)
        assert notices(caller) == [*NOTICES]
        assert sounds[0][0] - over_s <= LONGEST_SILENCE_S
        assert "failed" in [e.outcome for e in caller.events(AnswerEnded)]
        await trio.sleep(10)  # until another line is open
        await vendor.hear("Are you there?", written_s=0.0)
        await caller.quiet(within_s=30)
        assert caller.heard.endswith("Here. ")


@pytest.mark.parametrize("kind", ["drop", "close", "error"])
async def test_a_model_that_breaks_off_is_apologised_for_at_once(
    autojump_clock: Any, kind: Any
) -> None:
    """A line that breaks in mid-answer ends in an apology, without a filler before it."""
    vendor = FakeOpenAIRealtime(f"{LONG} {LONG}.", "Here.", fault=Fault(kind, "middle"))
    async with vendor.open(), calling(vendor, errors=True, speech=Speech()) as caller:
        await vendor.hear("Hello?", written_s=0.0)
        await caller.quiet(within_s=30)
        assert notices(caller) == [FILLERS.apology]


async def test_a_model_that_is_gone_is_apologised_for(autojump_clock: Any) -> None:
    """A session that is never opened is no silence: the caller hears that nothing works."""
    vendor = FakeOpenAIRealtime("Here.", fault=Fault("refuse", "connect", None, 401))
    async with vendor.open(), calling(vendor, errors=True, speech=Speech()) as caller:
        await trio.sleep(3)
        await caller.says("Hello?")
        await caller.quiet(within_s=30)
        assert notices(caller)[-1] == FILLERS.apology


async def test_a_tool_that_hangs_is_waited_for_aloud(autojump_clock: Any, vendor: Any) -> None:
    """The caller hears the fillers, and that the agent goes on in the background."""

    @tool
    async def search(words: str) -> str:
        """Search."""
        await trio.sleep(30)
        return "found"

    vendor.replies += [[RealtimeCall("search", {"words": "x"})], "I have found it."]
    async with calling(vendor, tools=[search], speech=Speech()) as caller:
        await vendor.hear("Search it.", written_s=0.0)
        await trio.sleep(50)
        assert notices(caller) == [*FILLERS.fillers, FILLERS.in_background]
        assert caller.heard.strip().endswith("I have found it.")
        said = [item for item in vendor.line.conversation if item[0] == "assistant"]
        assert said == [("assistant", "I have found it. ")]  # what went unheard is deleted


async def test_a_barge_in_cuts_a_prepared_filler(autojump_clock: Any) -> None:
    """Sounds prepared in advance are cut like anything the agent says, at the heard word."""
    vendor = FakeOpenAIRealtime("Never.", "Yes?", fault=Fault("stall", "first"))
    async with vendor.open(), calling(vendor, errors=True, speech=Speech()) as caller:
        await vendor.hear("Hello?", written_s=0.0)
        await trio.sleep(5.2)
        await caller.until(lambda caller: "patience" in caller.heard or "working" in caller.heard)
        await vendor.hear("Never mind.", takes_s=0.4)
        await trio.sleep(1)
        assert notices(caller)[:2] != [*FILLERS.fillers]
        assert FILLERS.fillers[1].startswith(notices(caller)[1])


def wav(lasts_s: float, rate_hz: int = 16_000, sample: int = 7000) -> bytes:
    """Return a WAV file of one constant sample."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate_hz)
        out.writeframes(sample.to_bytes(2, "little", signed=True) * round(lasts_s * rate_hz))
    return file.getvalue()


async def test_the_apps_own_sounds_are_played(autojump_clock: Any, tmp_path: Any) -> None:
    """A file or bytes that the app gives for a text is what the caller hears of it."""
    file = tmp_path / "moment.wav"
    file.write_bytes(wav(0.5))
    fillers = Fillers(
        fillers=("Moment.",),
        apology="Tut mir leid.",
        sounds={"Moment.": file, "Tut mir leid.": wav(0.7, 8000)},
    )
    vendor = FakeOpenAIRealtime("Never.", fault=Fault("stall", "first"))
    speech = Speech(fillers=fillers)
    async with vendor.open(), calling(vendor, errors=True, speech=speech) as caller:
        sounds = sounds_of(caller)
        await vendor.hear("Hello?", written_s=0.0)
        await caller.quiet(within_s=30)
        assert notices(caller) == ["Moment.", "Tut mir leid."]
    lasts_s = [len(event.pcm) / 2 / event.sample_rate_hz for _, event in sounds]
    assert lasts_s == pytest.approx([0.5, 0.7], abs=0.01)


async def test_other_texts_without_a_sound_are_tones(autojump_clock: Any) -> None:
    """A text that nobody can say becomes a tone, and the history claims no words for it."""
    fillers = Fillers(fillers=("Moment.",), apology="Tut mir leid.")
    vendor = FakeOpenAIRealtime("Never.", fault=Fault("stall", "first"))
    speech = Speech(fillers=fillers)
    async with vendor.open(), calling(vendor, errors=True, speech=speech) as caller:
        sounds = sounds_of(caller)
        await vendor.hear("Hello?", written_s=0.0)
        await caller.quiet(within_s=30)
        assert notices(caller) == ["(a tone)", "(a falling tone)"]
        assert len(sounds) == 2


async def test_without_fillers_nothing_is_played(autojump_clock: Any) -> None:
    """An app that wants silence gets it."""
    vendor = FakeOpenAIRealtime("Never.", fault=Fault("stall", "first"))
    speech = Speech(fillers=None)
    async with vendor.open(), calling(vendor, errors=True, speech=speech) as caller:
        sounds = sounds_of(caller)
        await vendor.hear("Hello?", written_s=0.0)
        await caller.quiet(within_s=60)
        assert sounds == []


async def test_a_call_in_which_nothing_speaks_stays_silent(autojump_clock: Any) -> None:
    """Where an agent answers in writing, no sound tells that its answer is late."""
    from bargein import App, ChatNode
    from bargein.testing import ScriptedModel, open_call

    async def answer(call: Call) -> None:
        call.converse(ChatNode(ScriptedModel([9.0, "Late."])))

    app = App(answer, speech=Speech())
    async with open_call(app, own_speech=True) as caller:
        sounds = sounds_of(caller)
        await caller.says("hello", takes_s=1.0)
        await trio.sleep(20)
        assert (sounds, notices(caller)) == ([], [])


@pytest.mark.parametrize(
    ("sounds", "problem"),
    [
        ({"One moment.": b"no wav"}, "no WAV file"),
        ({"Other.": wav(0.1)}, "none of its texts"),
        ({"One moment.": 7}, "a path or bytes"),
        ({"One moment.": "missing.wav"}, "missing.wav"),
    ],
)
def test_sounds_that_cannot_be_played_are_refused(sounds: Any, problem: str) -> None:
    """A mistake in a sound is told where it is made."""
    with pytest.raises((TypeError, ValueError, OSError), match=problem):
        Fillers(sounds=sounds)

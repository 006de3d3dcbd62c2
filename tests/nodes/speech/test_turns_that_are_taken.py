"""What turn taking has taken is not heard a second time, on whichever line, and nothing else that
the caller says is lost."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein import App, ChatNode
from bargein.ears import (
    AssemblyAIEar,
    CartesiaEar,
    DeepgramFlux,
    DeepgramNova,
    ElevenLabsEar,
    SonioxEar,
)
from bargein.events import (
    ListeningFailed,
    UserAudio,
)
from bargein.fakes import (
    FakeAssemblyAIEar,
    FakeCartesiaEar,
    FakeDeepgramFlux,
    FakeDeepgramNova,
    FakeElevenLabsEar,
    FakeSonioxEar,
    Fault,
)
from bargein.fallback import Fallback
from bargein.speech import (
    EarRestarted,
    PerhapsOver,
    Speech,
    TurnOver,
    VoiceBegan,
    WordsHeard,
)
from bargein.testing import ScriptedModel, open_call
from bargein.user_turns import FixedEndpointing, TurnSettings, TurnTaking

from .failing import RATE_HZ, sound_of
from .hearing import LoudIsSpeech
from .test_streaming_ears import ScriptedEar, agent_with, turns_of
from .word_vendor import WordVendor, ear_at

VENDORS: dict[str, Any] = {
    "flux": (DeepgramFlux, FakeDeepgramFlux),
    "nova": (DeepgramNova, FakeDeepgramNova),
    "cartesia": (CartesiaEar, FakeCartesiaEar),
    "assemblyai": (AssemblyAIEar, FakeAssemblyAIEar),
    "elevenlabs": (ElevenLabsEar, FakeElevenLabsEar),
    "soniox": (SonioxEar, FakeSonioxEar),
}
WORD = b"\x00\x10\x00\xf0" * 1600
"""0.2 s of sound, which is a word to the fakes of vendors."""


FRAME_S = 0.1


def proofs(*values: Any) -> list[Any]:
    return [pytest.param(value, marks=pytest.mark.proof) for value in values]


async def send(caller: Any, pcm: bytes) -> None:
    """Send audio in real time."""
    size = 2 * round(FRAME_S * RATE_HZ)
    for at in range(0, len(pcm), size):
        caller.publish(UserAudio(pcm[at : at + size]))
        await trio.sleep(len(pcm[at : at + size]) / 2 / RATE_HZ)


async def be_silent(caller: Any, seconds: float) -> None:
    await send(caller, bytes(2 * round(seconds * RATE_HZ)))


async def speak(caller: Any, text: str) -> None:
    await send(caller, b"".join(sound_of(word) for word in text.split()))


def app_with(ear: Any, model: Any = None, **options: Any) -> App:
    async def answer(call: Any) -> None:
        call.converse(ChatNode(model or ScriptedModel(then="Hi.")))

    return App(answer, speech=Speech(ear, fillers=None, **options))


def ended_after(silence_s: float) -> TurnTaking:
    return TurnTaking(TurnSettings(endpointing=FixedEndpointing(silence_s)))


@pytest.mark.parametrize("name", ["flux", *proofs(*[name for name in VENDORS if name != "flux"])])
async def test_a_turn_of_a_line_that_hangs_is_answered_once(autojump_clock, name):
    """Our endpointing ends the turn; the line that replaces the hanging one does not hear it again,
    and hears what the caller says next."""
    make, fake = VENDORS[name]
    model = ScriptedModel(then="Hi.")
    vendor = fake("hello there", "a latte", fault=Fault("stall", at="last"))
    async with vendor.open():
        ear = make(api_key="any", base_url="ws://fake", dial=vendor.dial)
        async with open_call(app_with(ear, model), own_speech=True) as caller:
            await be_silent(caller, 1.0)
            await send(caller, 2 * WORD)
            await be_silent(caller, 20.0)
            assert turns_of(caller) == ["hello there"]
            assert vendor.lines == 2
            await send(caller, 2 * WORD)
            await be_silent(caller, 2.0)
            assert len(turns_of(caller)) == len(model.requests) == 2
            assert caller.events(ListeningFailed) == []


async def hear(
    vendor: WordVendor,
    *said: str | float,
    turns: TurnTaking | None = None,
    vad: Any = None,
    **limits: Any,
) -> list[str]:
    """Return the turns of a caller who says words and is silent for seconds."""
    async with vendor.open():
        app = app_with(ear_at(vendor, **limits), turns=turns, vad=vad)
        async with open_call(app, own_speech=True) as caller:
            await be_silent(caller, 1.0)
            for part in said:
                if isinstance(part, str):
                    await speak(caller, part)
                else:
                    await be_silent(caller, part)
            assert caller.events(ListeningFailed) == []
            return turns_of(caller)


@pytest.mark.parametrize("vad", [None, *proofs(LoudIsSpeech)])
@pytest.mark.parametrize("pause_s", [8.0, *proofs(2.0, 5.5, 5.9, 6.5, 9.9, 12.0)])
async def test_what_is_said_to_a_hanging_line_is_heard_by_the_next(autojump_clock, pause_s, vad):
    """The second utterance is heard once, whether it begins before or after the first one was
    answered, and before or after the line was replaced."""
    vendor = WordVendor(2)
    said = await hear(vendor, "hello there", pause_s, "one latte please", 30.0, vad=vad)
    assert " ".join(said) == "hello there one latte please"
    if pause_s >= 6.5:
        assert said == ["hello there", "one latte please"]


async def test_the_rest_of_a_turn_is_heard_by_the_next_line(autojump_clock):
    """A line that hangs in mid-turn has reported half of it; the other half is answered, too."""
    vendor = WordVendor(1)
    said = await hear(vendor, "hello we want one latte please", 30.0)
    assert said[0] == "hello"
    assert " ".join(said).endswith("we want one latte please")
    assert " ".join(said).count("hello") == 1


@pytest.mark.proof
@pytest.mark.parametrize("ends_s", [0.3, 0.5, 0.7, 3.0])
async def test_the_same_words_said_again_are_another_turn(autojump_clock, ends_s):
    """A caller who says again what was answered is answered again."""
    vendor = WordVendor(2)
    said = await hear(vendor, "hello there", 7.0, "hello there", 30.0, turns=ended_after(ends_s))
    assert said == ["hello there", "hello there"]


@pytest.mark.proof
async def test_words_of_which_nothing_was_reported_are_heard_by_the_next_line(autojump_clock):
    """A turn that nobody could answer is answered when its words come."""
    vendor = WordVendor(1)
    said = await hear(vendor, "hello", 7.0, "one latte please", 30.0, answer_s=12.0)
    assert said == ["hello", "one latte please"]


async def test_an_ear_that_is_opened_again_hears_what_it_missed(autojump_clock):
    """What the caller says again, to an ear that reports nothing, is heard by its next stream."""
    ear, loud = ScriptedEar(), b"\x00\x10\x00\xf0" * 8000
    async with open_call(agent_with(ear)) as caller:
        await be_silent(caller, 1.0)
        await send(caller, loud)
        await be_silent(caller, 20.0)
        assert (ear.closed, ear.heard.count(loud)) == (0, 1)
        await send(caller, loud)
        await be_silent(caller, 5.0)
        assert (ear.closed, ear.heard.count(loud)) == (1, 3)
        await send(caller, loud)
        await be_silent(caller, 5.0)
        assert (ear.closed, ear.heard.count(loud)) == (1, 4)


@pytest.mark.parametrize("ends_s", [0.4, *proofs(0.2, 0.9)])
@pytest.mark.parametrize("drops_after_s", [0.7, *proofs(0.05, 0.3, 0.5, 1.2)])
async def test_a_line_that_breaks_around_the_end_of_a_turn(autojump_clock, drops_after_s, ends_s):
    """Whether our end comes first or the next line's words, the turn is answered once, and so is
    the one behind it."""
    vendor = WordVendor(ends_turns=False)
    async with vendor.open():
        app = app_with(ear_at(vendor), turns=ended_after(ends_s), vad=LoudIsSpeech)
        async with open_call(app, own_speech=True) as caller:
            await be_silent(caller, 1.0)
            await speak(caller, "hello there")
            await be_silent(caller, drops_after_s)
            vendor.cut_line()
            await be_silent(caller, 15.0)
            assert turns_of(caller) == ["hello there"]
            await speak(caller, "one latte please")
            await be_silent(caller, 8.0)
            assert turns_of(caller) == ["hello there", "one latte please"]


@pytest.mark.parametrize("first_s", [0.5, *proofs(20.0)])
async def test_another_ear_does_not_hear_what_was_taken(autojump_clock, first_s):
    """A second ear that takes over hears what is said from then on, each utterance once."""
    first, second = WordVendor(2), WordVendor()
    async with first.open(), second.open():
        ear = Fallback(ear_at(first), ear_at(second))
        async with open_call(app_with(ear, turns=ended_after(0.4)), own_speech=True) as caller:
            await be_silent(caller, 1.0)
            await speak(caller, "hello there")
            await be_silent(caller, first_s)
            await speak(caller, "one latte please")
            await be_silent(caller, 10.0)
            assert " ".join(turns_of(caller)) == "hello there one latte please"


async def test_a_turn_that_is_taken_while_the_next_line_opens_is_let_go(autojump_clock):
    """The line gets none of its audio; one that may have got it already is known to repeat it."""
    vendor = WordVendor(ends_turns=False)
    async with vendor.open(), ear_at(vendor).open_stream() as stream:
        for _ in range(10):
            await stream.send(sound_of("hello"))
            await trio.sleep(0.2)
        await stream.receive()
        vendor.cut_line()
        with trio.move_on_after(0.001):
            await _collect(stream, [])
        assert stream.turn_taken(0.0)
        await trio.sleep(5)
        assert vendor.heard[1:] == [[]]
        assert not stream.turn_taken(0.0)


# --- ears that cannot let go ----------------------------------------------------------------------


async def turns_with(*facts: Any, again: Any = ()) -> list[str]:
    """Return the turns of an ear that reports facts again on another line, after our end."""
    ear = ScriptedEar()
    async with open_call(agent_with(ear, turns=ended_after(0.3))) as caller:
        ear.tell(*facts)
        await trio.sleep(3)
        ear.tell(EarRestarted(), *again)
        await trio.sleep(3)
        return turns_of(caller)


HELLO = (VoiceBegan(), WordsHeard("hello there", final=True), PerhapsOver(0.5))


@pytest.mark.parametrize(
    ("again", "rest"),
    [
        ([VoiceBegan(), WordsHeard("hello there"), TurnOver("hello there")], []),
        ([VoiceBegan(), TurnOver("Hello, there!")], []),
        ([VoiceBegan(), WordsHeard("hel"), TurnOver("hello their")], []),
        (
            [VoiceBegan(), WordsHeard("hello", 0, final=True), WordsHeard("there", 1), TurnOver()],
            [],
        ),
        ([VoiceBegan(), TurnOver("hello there one latte")], ["one latte"]),
        ([VoiceBegan(), WordsHeard("hello", 0), TurnOver("hello their, one latte")], ["one latte"]),
        ([VoiceBegan(), TurnOver("one latte please")], ["one latte please"]),
        ([*HELLO, TurnOver(), VoiceBegan(), TurnOver("hello there")], ["hello there"]),
    ],
)
async def test_words_that_another_line_repeats_are_no_turn(autojump_clock, again, rest):
    """They are left out however they are written and divided; what is new is a turn."""
    assert await turns_with(*HELLO, again=again) == ["hello there", *rest]


@pytest.mark.parametrize("late_s", [-0.001, 0.0, 0.001])
@pytest.mark.parametrize("apart_s", [0.0, 0.001])
async def test_words_that_come_in_the_step_of_our_end(autojump_clock, late_s, apart_s):
    """Another line's words are one turn with ours, whichever comes first, and none is missing."""
    ear = ScriptedEar()
    async with open_call(agent_with(ear, turns=ended_after(0.3))) as caller:
        ear.tell(*HELLO)
        await trio.sleep(0.3 + late_s)
        ear.tell(EarRestarted())
        await trio.sleep(apart_s)
        ear.tell(*HELLO, TurnOver("hello there one latte"))
        await trio.sleep(3)
        assert " ".join(turns_of(caller)) == "hello there one latte"


@pytest.mark.parametrize("late_s", [-0.001, 0.0, 0.001])
async def test_late_words_of_a_turn_do_not_end_the_next_one(autojump_clock, late_s):
    """The ear's own end of what was answered says nothing of what the caller says by then."""
    ear = ScriptedEar()
    async with open_call(agent_with(ear, turns=ended_after(0.3))) as caller:
        ear.tell(*HELLO)
        await trio.sleep(0.3 + late_s)
        ear.tell(WordsHeard("hello there", final=True), TurnOver("hello there"))
        await trio.sleep(1)
        assert turns_of(caller) == ["hello there"]
        ear.tell(VoiceBegan(), TurnOver("hello there"))
        await trio.sleep(1)
        assert turns_of(caller) == ["hello there", "hello there"]


@pytest.mark.parametrize(
    "leaves_s",
    [1.5, 6.7, 12.0, *proofs(0.0, 0.05, 1.0, 1.25, 2.4, 7.4, 7.45, 9.0, 11.4, 11.5, 11.6)],
)
@pytest.mark.parametrize("sends_silence", [True, *proofs(False)])
async def test_a_caller_may_hang_up_at_any_time(autojump_clock, leaves_s, sends_silence):
    """While a line hangs, is replaced, and gets silence: nothing is left behind."""
    vendor = WordVendor(2)
    async with vendor.open():
        async with open_call(app_with(ear_at(vendor)), own_speech=True) as caller:
            with trio.move_on_after(leaves_s):
                await be_silent(caller, 1.0)
                await speak(caller, "hello there")
                if sends_silence:
                    await be_silent(caller, 20.0)
                await trio.sleep_forever()
        assert caller.now_s < leaves_s + 10.0


async def test_the_agent_is_not_held_for_words_that_are_repeated(autojump_clock):
    """Its answer goes on while another line hears the turn again."""
    ear = ScriptedEar()
    long = "One two three four five six seven eight nine ten eleven twelve."
    async with open_call(agent_with(ear, long, turns=ended_after(0.3))) as caller:
        ear.tell(*HELLO)
        await trio.sleep(1)
        ear.tell(EarRestarted(), VoiceBegan(), WordsHeard("hello"), *HELLO[1:], TurnOver())
        await caller.quiet()
        assert caller.heard == long
        assert caller.held == []


async def test_words_in_other_segments_are_not_repeated_at_the_end_of_the_turn(autojump_clock):
    """A turn whose end has all its words brings none that were answered in parts."""
    ear = ScriptedEar()
    async with open_call(agent_with(ear, turns=ended_after(0.3))) as caller:
        ear.tell(VoiceBegan(), WordsHeard("hello", 0, final=True), WordsHeard("there", 1))
        ear.tell(PerhapsOver())
        await trio.sleep(2)
        ear.tell(TurnOver("hello there"))
        await trio.sleep(2)
        assert turns_of(caller) == ["hello there"]


# --- lines that hang, and lines on which nothing is sent ------------------------------------------


@pytest.mark.parametrize("name", ["flux", *proofs(*[name for name in VENDORS if name != "flux"])])
async def test_a_line_on_which_nothing_is_sent_does_not_hang(autojump_clock, name):
    """A vendor that gets no audio within a turn owes nothing; once it gets some, it does."""
    make, fake = VENDORS[name]
    vendor = fake("hello there", fault=Fault("stall", at="last"))
    async with vendor.open():
        ear = make(api_key="any", base_url="ws://fake", dial=vendor.dial)
        async with ear.open_stream() as stream, trio.open_nursery() as nursery:
            await stream.send(WORD * 2)
            facts: list[Any] = []
            nursery.start_soon(_collect, stream, facts)
            await trio.sleep(60.0)
            assert vendor.lines == 1
            for _ in range(110):
                await stream.send(bytes(3200))
                await trio.sleep(0.1)
            assert vendor.lines == 2
            assert EarRestarted() in facts
            nursery.cancel_scope.cancel()


async def test_a_line_that_was_asked_for_the_end_of_the_turn_owes_it(autojump_clock):
    """A talk key is released, and nothing is sent any more: the line is replaced and asked."""
    vendor = FakeDeepgramFlux("hello there", fault=Fault("stall", at="last"))
    async with vendor.open():
        ear = DeepgramFlux(api_key="any", base_url="ws://fake", dial=vendor.dial)
        async with ear.open_stream() as stream:
            await stream.send(WORD * 2)
            await stream.end_turn()
            facts: list[Any] = []
            with trio.move_on_after(11.0):
                await _collect(stream, facts)
            assert vendor.lines == 2
            assert facts[-1].text == "hello there"


async def _collect(stream: Any, facts: list[Any]) -> None:
    while True:
        facts.append(await stream.receive())

"""Answers of vendors' voices that are wrong, double, or missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio

from bargein.fakes import (
    FakeCartesiaVoice,
    FakeDeepgramAura,
    FakeDeepgramFluxVoice,
    FakeElevenLabsVoice,
)
from bargein.speech import SpeechPiece, TextSaid, VoiceStyle
from bargein.vendors import SessionLimits, VendorError
from bargein.voices import CartesiaVoice, DeepgramVoice, ElevenLabsVoice

BYTES_PER_S = 48_000


async def say(voice: Any, *clauses: str, pause_s: float = 0.0) -> tuple[float, int]:
    """Return how many seconds of audio came, and how many flushes were answered."""
    audio_s, answers = 0.0, 0
    async with voice.open_context(VoiceStyle()) as context, trio.open_nursery() as nursery:

        async def speak() -> None:
            for clause in clauses:
                await context.send(clause)
                await context.flush()
                await trio.sleep(pause_s)
            await context.end()

        nursery.start_soon(speak)
        with trio.fail_after(600):
            while (piece := await context.receive()) is not None:
                if isinstance(piece, TextSaid):
                    answers += 1
                elif isinstance(piece, SpeechPiece):
                    audio_s += len(piece.pcm) / BYTES_PER_S
    return audio_s, answers


async def length_of(fake: Any, make: Any, *clauses: str, **options: Any) -> tuple[float, int]:
    async with fake.open() as vendor:
        voice = make(api_key="k", base_url="ws://fake", dial=vendor.dial, **options)
        async with voice.open():
            return await say(voice, *clauses)


class Misaligned(FakeElevenLabsVoice):
    """Sends alignments that make no sense."""

    broken: Any = None

    def audio(self, context: str, word: str, at_s: float) -> Sequence[Any]:
        told = [dict(message) for message in super().audio(context, word, at_s)]
        for message in told:
            message["alignment"] = self.broken
        return told


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        "none",
        {"chars": ["a"], "charStartTimesMs": [], "charDurationsMs": []},
        {"chars": ["a"], "charStartTimesMs": [None], "charDurationsMs": [5]},
        {"chars": None, "charStartTimesMs": 5, "charDurationsMs": {}},
        {"chars": [5], "charStartTimesMs": [1], "charDurationsMs": [5]},
    ],
)
async def test_audio_outlives_a_bad_alignment(autojump_clock: Any, broken: Any) -> None:
    """All audio comes, and every flush is answered, whatever the times of characters are."""
    fake = Misaligned()
    fake.broken = broken
    make = lambda **options: ElevenLabsVoice("joe", **options)  # noqa: E731
    whole = await length_of(FakeElevenLabsVoice(), make, "Hello there.", "All is well.")
    assert await length_of(fake, make, "Hello there.", "All is well.") == whole


async def test_a_flush_of_unreported_characters_is_answered(autojump_clock: Any) -> None:
    """A next clause that comes later than the vendor's patience finds the voice alive."""

    class Plain(FakeElevenLabsVoice):
        def audio(self, context: str, word: str, at_s: float) -> Sequence[Any]:
            if not word.strip().isascii():
                return ()
            return super().audio(context, word, at_s)

    async with Plain().open() as vendor:
        voice = ElevenLabsVoice("joe", api_key="k", base_url="ws://fake", dial=vendor.dial)
        async with voice.open():
            audio_s, answers = await say(voice, "Well done 🎉 ", "And more.", pause_s=30)
    assert answers == 2
    assert audio_s > 0.5


class Respelling(FakeElevenLabsVoice):
    """Reports characters of its own, as many vendors do for numbers and abbreviations."""

    spellings: Mapping[str, str] = {}

    def audio(self, context: str, word: str, at_s: float) -> Sequence[Any]:
        told = [dict(message) for message in super().audio(context, word, at_s)]
        chars = [*self.spellings.get(word.strip(), word.strip()), " "]
        times = {"charStartTimesMs": [50 * n for n in range(len(chars))]}
        times["charDurationsMs"] = [50] * len(chars)
        for message in told:
            message["alignment"] = {"chars": chars, **times}
        return told


@pytest.mark.parametrize("spelled", ["twenty-five", "2 5", ""])
async def test_a_flush_is_answered_by_its_last_word_and_not_by_characters(
    autojump_clock: Any, spelled: str
) -> None:
    """However many characters the vendor reports, the audio of a clause ends with its last word."""
    fake = Respelling()
    fake.spellings = {"25": spelled, "50": spelled}
    first, second = "It is 25 or 50 dollars now. ", "That is all."
    async with fake.open() as vendor:
        voice = ElevenLabsVoice("joe", api_key="k", base_url="ws://fake", dial=vendor.dial)
        async with voice.open(), voice.open_context(VoiceStyle()) as context:
            for clause in (first, second):
                await context.send(clause)
                await context.flush()
            audio_s, ends_s, began_s = 0.0, [], trio.current_time()
            while len(ends_s) < 2:
                piece = await context.receive()
                if isinstance(piece, TextSaid):
                    ends_s.append(audio_s)
                elif isinstance(piece, SpeechPiece):
                    audio_s += len(piece.pcm) / BYTES_PER_S
            took_s = trio.current_time() - began_s
    lasts_s = [len(first) * 0.05, len(first + second + " ") * 0.05]
    assert ends_s == pytest.approx(lasts_s, abs=0.01)
    assert took_s < 1.4  # it waited for no silence


async def test_an_emoji_at_the_end_of_a_clause_costs_no_wait(autojump_clock: Any) -> None:
    """What is no word need not be reported: the clause ends with its last word all the same."""
    fake = Respelling()
    fake.spellings = {"🎉": ""}
    async with fake.open() as vendor:
        voice = ElevenLabsVoice("joe", api_key="k", base_url="ws://fake", dial=vendor.dial)
        async with voice.open(), voice.open_context(VoiceStyle()) as context:
            await context.send("Well done 🎉 ")
            await context.flush()
            began_s = trio.current_time()
            while not isinstance(await context.receive(), TextSaid):
                pass
            assert trio.current_time() - began_s < 1.0


async def test_a_context_that_the_vendor_ended_is_opened_anew(autojump_clock: Any) -> None:
    """Text behind the end of a context for inactivity is said in another one."""

    class Forgetful(FakeElevenLabsVoice):
        def audio(self, context: str, word: str, at_s: float) -> Sequence[Any]:
            final = ({"isFinal": True, "contextId": context},) if word.startswith("last") else ()
            return (*super().audio(context, word, at_s), *final)

    async with Forgetful().open() as vendor:
        voice = ElevenLabsVoice("joe", api_key="k", base_url="ws://fake", dial=vendor.dial)
        async with voice.open():
            whole_s, answers = await say(voice, "One last", "Two more", pause_s=200)
        opened = [m for m in vendor.received if m.get("text") == " "]
    assert answers == 2
    assert whole_s == pytest.approx(len("One last Two more ") * 0.05, abs=0.11)
    assert len(opened) == 2


@pytest.mark.parametrize(
    ("fake", "make", "kind"),
    [
        (FakeDeepgramAura, lambda **o: DeepgramVoice("aura-2-thalia-en", **o), "Flushed"),
        (FakeDeepgramFluxVoice, lambda **o: DeepgramVoice("flux-haley-en", **o), "SpeechMetadata"),
        (FakeCartesiaVoice, lambda **o: CartesiaVoice("joe", **o), "flush_done"),
    ],
)
async def test_a_second_answer_to_a_flush_is_none(
    autojump_clock: Any, fake: Any, make: Any, kind: str
) -> None:
    """An answer that comes twice costs no words: it bears the same id."""

    class Twice(fake):  # type: ignore[misc]
        def flushed(self, context: str, number: int) -> Sequence[Mapping[str, Any]]:
            told = super().flushed(context, number)
            return (*told, *(dict(message) for message in told if message["type"] == kind))

    clauses = ("Hello there.", "Your table is booked.", "See you.")
    lasts_s = pytest.approx(len(" ".join(clauses) + " ") * 0.05, abs=0.001)
    assert await length_of(fake(), make, *clauses) == (lasts_s, 3)
    assert await length_of(Twice(), make, *clauses) == (lasts_s, 3)


@pytest.mark.parametrize("has_ids", [True, False])
async def test_an_answer_that_comes_again_in_the_next_turn_is_none(
    autojump_clock: Any, has_ids: bool
) -> None:
    """Flux answers each turn under an id of its own; a server that reuses one is understood."""

    class Again(FakeDeepgramFluxVoice):
        def began(self, context: str, number: int) -> Sequence[Any]:
            if not has_ids:
                return super().began(context, 1)
            late = () if number == 1 else super().flushed(context, number - 1)
            return (*super().began(context, number), *late)

        def flushed(self, context: str, number: int) -> Sequence[Any]:
            return super().flushed(context, number if has_ids else 1)

    clauses = ("Hello there.", "Your table is booked.", "See you.")
    make = lambda **options: DeepgramVoice("flux-haley-en", **options)  # noqa: E731
    lasts_s = pytest.approx(len(" ".join(clauses) + " ") * 0.05, abs=0.001)
    assert await length_of(Again(), make, *clauses) == (lasts_s, 3)


async def test_the_echo_of_a_flush_answers_nothing(autojump_clock: Any) -> None:
    """Flux echoes a flush before it says anything: the text is said when the turn is over."""
    async with FakeDeepgramFluxVoice().open() as vendor:
        voice = DeepgramVoice("flux-haley-en", api_key="k", base_url="ws://fake", dial=vendor.dial)
        async with voice.open(), voice.open_context(VoiceStyle()) as context:
            await context.send("Hello there.")
            await context.flush()
            audio_s = 0.0
            while isinstance(piece := await context.receive(), SpeechPiece):
                audio_s += len(piece.pcm) / BYTES_PER_S
    assert isinstance(piece, TextSaid)
    assert audio_s == pytest.approx(len("Hello there. ") * 0.05, abs=0.001)


async def test_an_error_without_a_context_fails_all_at_once(autojump_clock: Any) -> None:
    """Two utterances of one line need not wait for their limits when the vendor has failed."""

    class Failing(FakeCartesiaVoice):
        def audio(self, context: str, word: str, at_s: float) -> Sequence[Any]:
            return (self.error,) if word.startswith("now") else ()

    failed_s: list[float] = []
    async with Failing().open() as vendor:
        limits = SessionLimits(answer_s=60)
        voice = CartesiaVoice(
            "joe", api_key="k", base_url="ws://fake", dial=vendor.dial, limits=limits
        )

        async def fail(text: str) -> None:
            try:
                await say(voice, text)
            except* VendorError:
                failed_s.append(trio.current_time())

        began_s = trio.current_time()
        async with voice.open(), trio.open_nursery() as nursery:
            nursery.start_soon(fail, "wait " * 200)
            await trio.sleep(0.02)
            nursery.start_soon(fail, "now")
    assert len(failed_s) == 2
    assert max(failed_s) - began_s < 10


async def test_text_waits_for_its_flush(autojump_clock: Any) -> None:
    """Pieces of a word reach Cartesia, which says each request by itself, in one request."""
    async with FakeCartesiaVoice().open() as vendor:
        voice = CartesiaVoice("joe", api_key="k", base_url="ws://fake", dial=vendor.dial)
        async with voice.open(), voice.open_context(VoiceStyle()) as context:
            for piece in ("Hel", "lo", " there."):
                await context.send(piece)
            await context.flush()
            await context.end()
            while await context.receive() is not None:
                pass
        said = [m["transcript"] for m in vendor.received if m.get("transcript")]
    assert said == ["Hello there."]
    assert json.dumps(said)

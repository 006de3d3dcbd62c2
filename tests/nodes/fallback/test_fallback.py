"""Fallback providers: which one is used, which one rests, and which one is probed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from bargein.fallback import Fallback
from bargein.llm import (
    AnswerBrokenOffError,
    AnswerProgress,
    ChatModelError,
    TextDelta,
    ToolCallRequest,
    Usage,
)
from bargein.server import Metrics
from bargein.speech import SpeechPiece, TextSaid, TurnOver, VoiceBegan, VoiceStyle, WordsHeard
from bargein.testing import ScriptedModel
from tests.nodes.speech.failing import (
    RATE_HZ,
    Fault,
    WordEar,
    WordModel,
    WordVoice,
    sound_of,
    words_of,
)

QUESTION = [{"role": "user", "content": "hello"}]


async def answer_of(model: Any) -> str:
    pieces = [piece async for piece in model.stream(QUESTION)]
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


async def said_by(voice: Any, *clauses: str) -> list[str]:
    """Return the words that a voice says, half words too."""
    pcm = b""
    async with voice.open_context(VoiceStyle()) as context:
        for clause in clauses:
            await context.send(clause)
            await context.flush()
        await context.end()
        while (piece := await context.receive()) is not None:
            pcm += piece.pcm if isinstance(piece, SpeechPiece) else b""
    return words_of(pcm)


# --- models ---------------------------------------------------------------------------------------


async def test_the_next_model_answers_and_the_first_rests(autojump_clock):
    """A failed model is not asked again before a probe succeeds."""
    first, second = WordModel("one", "a"), WordModel("two", "b")
    model = Fallback(first, second)
    first.fault = Fault("drop")
    assert await answer_of(model) == "two "
    assert await answer_of(model) == "two "
    assert first.asked == 1
    first.fault = Fault()
    await trio.sleep(1.1)
    assert first.asked == 2  # by the probe
    assert await answer_of(model) == "one "


async def test_a_probe_waits_longer_each_time(autojump_clock):
    """The waits double, up to a minute; no caller asks meanwhile."""
    first, second = WordModel("one"), WordModel("two")
    model = Fallback(first, second)
    first.fault = Fault("drop")
    await answer_of(model)
    await trio.sleep(3600)
    assert 60 <= first.asked <= 130  # half of each wait is jitter
    assert await answer_of(model) == "two "


async def test_if_all_rest_they_are_asked_all_the_same(autojump_clock):
    """A caller loses nothing by it; the last error is raised if none answers."""
    first, second = WordModel("one"), WordModel("two")
    model = Fallback(first, second)
    first.fault, second.fault = Fault("drop"), Fault("drop")
    with pytest.raises(ChatModelError):
        await answer_of(model)
    second.fault = Fault()
    assert await answer_of(model) == "two "


@pytest.mark.parametrize("kind", ["stall", "drop", "garbage"])
async def test_who_asks_decides_whether_another_model_goes_on(autojump_clock, kind):
    """What was given out stands and ends with a whole word; the error has who may go on."""
    first, second = WordModel("one two three"), WordModel("four five")
    first.fault = Fault(kind, 1)
    pieces = Fallback(first, second).stream(QUESTION)
    assert (await anext(pieces)).text == "one "
    with pytest.raises(AnswerBrokenOffError) as broken:
        await anext(pieces)
    assert second.asked == 0
    assert await answer_of(broken.value.next_model) == "four five "


@pytest.mark.parametrize("kind", ["drop", "garbage"])
async def test_the_last_model_that_breaks_off_raises_its_own_error(autojump_clock, kind):
    """No provider is left to continue the answer."""
    first, second = WordModel("one two three"), WordModel("one two three")
    first.fault, second.fault = Fault("drop"), Fault(kind, 1)
    with pytest.raises(ChatModelError if kind == "drop" else TypeError):
        await answer_of(Fallback(first, second))


@pytest.mark.parametrize(
    ("pieces", "given"),
    [
        (["Good", " mor", "ning", ", all"], ["Good ", "morning, ", "all"]),
        (["Hi"], ["Hi"]),
        (["\u65e9\u4e0a", "\u597d"], ["\u65e9\u4e0a", "\u597d"]),
    ],
)
async def test_text_is_given_out_in_whole_words(autojump_clock, pieces, given):
    """So that another model can go on; Chinese has no spaces to wait for."""
    model = Fallback(ScriptedModel(pieces), WordModel("two"))
    texts = [p.text async for p in model.stream(QUESTION) if isinstance(p, TextDelta)]
    assert texts == given


async def test_a_model_may_take_its_time_to_write_a_call(autojump_clock):
    """Nothing comes of the call of a tool before it is complete."""

    class WritesCall:
        async def stream(self, messages: Any, *, tools: Any = ()) -> Any:
            yield TextDelta("One moment. ")
            yield AnswerProgress("tool_call", "look_up")
            await trio.sleep(9)
            yield ToolCallRequest("c1", "look_up", {}, "{}")
            yield Usage(finish_reason="tool_calls")

    second = WordModel("two")
    pieces = [piece async for piece in Fallback(WritesCall(), second).stream(QUESTION)]
    assert isinstance(pieces[-2], ToolCallRequest)
    assert second.asked == 0


async def test_an_empty_answer_is_a_failure(autojump_clock):
    """A model that says nothing and calls nothing leaves the caller in silence."""

    class Empty:
        async def stream(self, messages: Any, *, tools: Any = ()) -> Any:
            yield Usage(finish_reason="stop")

    assert await answer_of(Fallback(Empty(), WordModel("two"))) == "two "


async def test_a_refused_question_is_no_failure_of_the_model(autojump_clock):
    """Another model may take a question that is too long for one; that one goes on working."""
    first = ScriptedModel(ChatModelError("too long", status=413), "One.")
    model = Fallback(first, WordModel("two"))
    assert await answer_of(model) == "two "
    assert await answer_of(model) == "One."


async def test_a_model_that_stalls_is_given_up_in_time(autojump_clock):
    """The next one is asked after the time that was set."""
    first, second = WordModel("one"), WordModel("two")
    first.fault = Fault("stall")
    model = Fallback(first, second, stalls_after_s=1.0)
    began_s = trio.current_time()
    assert await answer_of(model) == "two "
    assert trio.current_time() - began_s == pytest.approx(1.02)


async def test_cancelling_an_answer_is_no_failure(autojump_clock):
    """A barge-in says nothing about the model."""
    first = WordModel("one two three four")
    model = Fallback(first, WordModel("two"))
    with trio.move_on_after(0.05):
        await answer_of(model)
    assert await answer_of(model) == "one two three four "


# --- voices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["stall", "drop", "garbage"])
@pytest.mark.parametrize("after", [0, 1, 3, 4, 6])
async def test_a_voice_goes_on_behind_the_last_word(autojump_clock, kind, after):
    """Wherever the first one fails, each word is said once and whole."""
    first, second = WordVoice("a"), WordVoice("b")
    first.fault = Fault(kind, after)
    said = await said_by(Fallback(first, second), "one two three, ", "four five six. ", "seven")
    assert said == ["one", "two", "three,", "four", "five", "six.", "seven"]
    assert first.said == said[:after]
    assert second.said == said[after:]


async def test_half_a_word_is_not_heard(autojump_clock):
    """Sound of a word that has no end yet waits for it, and is dropped with its voice."""

    class Halves(WordVoice):
        def open_context(self, style: Any) -> Any:
            return _halves(super().open_context(style))

    @asynccontextmanager
    async def _halves(opening: Any) -> Any:
        async with opening as context:
            whole, left = context.receive, []

            async def receive() -> Any:
                if left:
                    return left.pop()
                piece = await whole()
                if isinstance(piece, SpeechPiece):
                    half = len(piece.pcm) // 4 * 2
                    left.append(SpeechPiece(piece.pcm[half:]))
                    return SpeechPiece(piece.pcm[:half], piece.words)
                return piece

            context.receive = receive
            yield context

    first, second = Halves("a"), WordVoice("b")
    first.fault = Fault("drop", 2)
    assert await said_by(Fallback(first, second), "one two three four") == [
        "one",
        "two",
        "three",
        "four",
    ]


async def test_without_word_times_a_clause_is_said_again(autojump_clock):
    """Nothing is lost, and no more than a clause is said twice."""
    first, second = WordVoice("a", times="none"), WordVoice("b")
    first.fault = Fault("drop", 4)
    voice = Fallback(first, second)
    assert voice.times == "none"
    said = await said_by(voice, "one two three, ", "four five six.")
    assert said == ["one", "two", "three,", "four", "four", "five", "six."]


async def test_a_batch_voice_stands_in_for_one_that_streams(autojump_clock):
    """A local engine takes over from a vendor's voice, resampled to the rate of the first."""

    class Batch:
        sample_rate_hz = RATE_HZ

        async def synthesize(self, text: str) -> Any:
            for word in text.split():
                await trio.sleep(0.01)
                yield SpeechPiece(sound_of(word))

    first = WordVoice("a")
    first.fault = Fault("stall", 1)
    said = await said_by(Fallback(first, Batch()), "one two ", "three")
    assert said == ["one", "two", "three"]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_voice_without_a_sound_has_failed(autojump_clock, streams):
    """It raises nothing; the next one says what it was silent about."""

    class Silent(WordVoice):
        @asynccontextmanager
        async def open_context(self, style: object) -> Any:
            async with super().open_context(style) as context:
                context.send = no_text
                yield context

    async def no_text(text: str) -> None:
        await trio.lowlevel.checkpoint()

    class SilentBatch:
        sample_rate_hz = RATE_HZ

        async def synthesize(self, text: str) -> Any:
            for nothing in ():
                yield nothing

    first: Any = Silent("a") if streams else SilentBatch()
    assert await said_by(Fallback(first, WordVoice("b")), "one two ", "!", "three") == [
        "one",
        "two",
        "!",
        "three",
    ]


@pytest.mark.proof
async def test_a_voice_that_waits_for_the_player_is_not_late(autojump_clock):
    """Its time stands still while nobody takes what it has made."""
    first, second = WordVoice("a"), WordVoice("b")
    text = " ".join(f"word{n}" for n in range(600))
    async with Fallback(first, second).open_context(VoiceStyle()) as context:
        await context.send(text)
        await context.flush()
        await context.end()
        await trio.sleep(300)
        count = 0
        while not isinstance(await context.receive(), TextSaid):
            count += 1
    assert count == 600
    assert second.said == []


async def test_voices_that_all_fail_raise_what_the_last_one_raised(autojump_clock):
    """The answer fails with an error that names a voice."""
    voices = [WordVoice("a"), WordVoice("b")]
    for voice in voices:
        voice.fault = Fault("drop")
    with pytest.raises(Exception, match="b: the line broke"):
        await said_by(Fallback(*voices), "one")


# --- ears -----------------------------------------------------------------------------------------


async def facts_of(ear: Any, text: str, seconds: float = 4.0) -> list[Any]:
    """Return the facts that an ear reports for spoken words followed by a pause."""
    facts = []
    pcm = b"".join(sound_of(word) for word in text.split()) + bytes(int(2 * RATE_HZ * seconds))
    async with ear.open_stream() as stream, trio.open_nursery() as nursery:

        async def receive() -> None:
            while True:
                facts.append(await stream.receive())

        nursery.start_soon(receive)
        for at in range(0, len(pcm), 640):
            await stream.send(pcm[at : at + 640])
            await trio.sleep(0.02)
        nursery.cancel_scope.cancel()
    return facts


def turns_in(facts: list[Any]) -> list[str]:
    return [fact.text for fact in facts if isinstance(fact, TurnOver)]


@pytest.mark.parametrize("kind", ["stall", "drop", "garbage"])
@pytest.mark.parametrize("after", [0, 1, 3])
async def test_the_next_ear_hears_the_utterance_from_its_beginning(autojump_clock, kind, after):
    """Whenever the first one fails, the turn has all its words, once."""
    first, second = WordEar("a"), WordEar("b")
    first.fault = Fault(kind, after)
    facts = await facts_of(Fallback(first, second), "please tell me more about it")
    assert turns_in(facts) == ["please tell me more about it"]


async def test_noise_is_no_failure_of_an_ear(autojump_clock):
    """An ear is blamed only for what another one has heard."""

    class Deaf(WordEar):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.fault = Fault("stall")

    ear = Fallback(Deaf("a"), Deaf("b"))
    await facts_of(ear, "hm hm hm hm")
    shown = Metrics().exposition()
    assert 'bargein_provider_failures_total{kind="ear",provider="Deaf"} 0' in shown
    assert 'bargein_provider_failures_total{kind="ear",provider="Deaf #2"} 0' in shown
    del ear


async def test_an_ear_that_failed_is_probed_with_what_it_failed_on(autojump_clock):
    """It works again once it tells something of that audio."""
    first, second = WordEar("a"), WordEar("b")
    first.fault = Fault("drop", 1)
    ear = Fallback(first, second)
    await facts_of(ear, "one two three")
    await facts_of(ear, "one two three")
    assert second.streams == 2
    first.fault = Fault()
    await trio.sleep(60)
    facts = await facts_of(ear, "four five")
    assert [type(fact) for fact in facts[:2]] == [VoiceBegan, WordsHeard]
    assert second.streams == 2


async def test_an_ear_waits_for_who_listens(autojump_clock):
    """A slow listener gets every fact, and no ear counts as failed because of it."""
    turns = 400
    ears = [TalkativeEar(turns), TalkativeEar(turns)]
    async with Fallback(*ears).open_stream() as stream:
        loud = sound_of("hello")
        for _ in range(100):  # twenty seconds of a caller who is loud
            await stream.send(loud)
            await trio.sleep(0.2)
        assert ears[0].told < 1000
        texts = []
        while len(texts) < turns:
            fact = await stream.receive()
            texts += [fact.text] if isinstance(fact, TurnOver) else []
    assert texts == [str(n) for n in range(turns)]
    assert ears[1].told == 0


async def test_no_frame_is_lost_to_the_end_of_a_turn(autojump_clock):
    """What waits for an ear when it ends a turn is of the next one."""

    class Slow(TalkativeEar):
        def __init__(self) -> None:
            super().__init__(1)
            self.heard = b""

        async def send(self, pcm: bytes) -> None:
            await trio.sleep(0.5)
            self.heard += pcm

        async def receive(self) -> Any:
            await trio.sleep(0.7)
            return await super().receive()

    slow = Slow()
    async with Fallback(slow, TalkativeEar(0)).open_stream() as stream:
        frames = [bytes([n]) * 640 for n in range(10)]
        for frame in frames:
            await stream.send(frame)
        await trio.sleep(10)
    assert slow.heard == b"".join(frames)


class TalkativeEar:
    """Reports one turn after the other, as fast as they are received."""

    sample_rate_hz = RATE_HZ

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self.told = 0

    @asynccontextmanager
    async def open_stream(self) -> Any:
        yield self

    async def send(self, pcm: bytes) -> None:
        await trio.lowlevel.checkpoint()

    async def end_turn(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive(self) -> Any:
        await trio.lowlevel.checkpoint()
        turn, fact = divmod(self.told, 3)
        if turn == self._turns:
            await trio.sleep_forever()
        self.told += 1
        return (VoiceBegan(), WordsHeard(str(turn)), TurnOver(str(turn)))[fact]


async def test_ears_that_all_fail_are_lost(autojump_clock):
    """The error reaches who listens, and the call can say so."""
    ears = [WordEar("a"), WordEar("b")]
    for ear in ears:
        ear.fault = Fault("drop")
    with pytest.raises(ExceptionGroup):
        await facts_of(Fallback(*ears), "one two three")


# --- what is known --------------------------------------------------------------------------------


async def test_the_metrics_show_who_rests(autojump_clock):
    """Each provider has a line that says whether it rests, and one that counts its failures."""
    first, second = WordModel("one", 'the "first"'), WordModel("two", "second")
    model = Fallback(first, second)
    first.fault = Fault("drop")
    await answer_of(model)
    shown = Metrics().exposition()
    label = r'{kind="model",provider="WordModel the \"first\""}'
    assert f"bargein_provider_resting{label} 1" in shown
    assert f"bargein_provider_failures_total{label} 1" in shown
    assert 'bargein_provider_resting{kind="model",provider="WordModel second"} 0' in shown


@pytest.mark.parametrize("wrong", [(), (WordVoice("b"), WordEar("c")), (WordModel,), ("model",)])
def test_what_does_not_stand_in_for_it_is_an_error(wrong):
    """Several of one kind are wanted, and the error says what the kinds are."""
    with pytest.raises((TypeError, ValueError), match="Fallback"):
        Fallback(WordModel("one"), *wrong)


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_stall_takes_time(seconds):
    """No time at all would give up every provider."""
    with pytest.raises(ValueError, match="stalls_after_s"):
        Fallback(WordModel("one"), WordModel("two"), stalls_after_s=seconds)

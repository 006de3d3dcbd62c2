"""Speaking, with a voice that makes silence of the right length, in virtual time."""

import math
from contextlib import aclosing, asynccontextmanager

import pytest
import trio

from bargein import App
from bargein.events import (
    AgentAudio,
    AgentError,
    AgentResponse,
    AgentSpeechCut,
    AnswerEnded,
    EmergencyStop,
    LogMetric,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    WordTiming,
)
from bargein.speech import SpeechPiece, TextSaid, TTSNode
from bargein.testing import open_call

RATE_HZ = 16_000


class SlowVoice:
    """A voice that takes 0.1 s to make a text, and 0.1 s of sound for each of its words."""

    sample_rate_hz = 24_000

    def __init__(self, pieces=1, fails_on="never"):
        self.said = []
        self.cancelled = []
        self.pieces, self.fails_on = pieces, fails_on

    async def synthesize(self, text):
        self.said.append(text)
        try:
            await trio.sleep(0.1)
        except trio.Cancelled:
            self.cancelled.append(text)
            raise
        if self.fails_on in text:
            raise RuntimeError("no such sound")
        for _ in range(self.pieces):
            yield SpeechPiece(bytes(4800 * len(text.split()) // self.pieces))


class Speech:
    """A stack with a voice and no ears."""

    def __init__(self, voice):
        self.voice = voice

    @asynccontextmanager
    async def open(self):
        yield

    def attach(self, call):
        TTSNode(call.bridge(name="voice", is_agent=False), self.voice)


@asynccontextmanager
async def speaking(voice, words):
    async def generate(message):
        for word in words:
            await trio.sleep(0.05)
            yield AgentResponse(content=word)

    async def answer(call):
        bridge = call.bridge(name="agent")
        on_stop = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        on_stop.stream(generate).broadcast()

    app = App(answer, speech=Speech(voice))
    async with open_call(app, own_speech=True, expect_errors=True) as caller:
        yield caller


async def test_the_first_clause_is_said_while_the_rest_is_thought(autojump_clock):
    """Clauses go to the voice one by one, and what is heard is the text to the letter."""
    voice = SlowVoice()
    words = ["Sure thing, ", "one latte ", "for you. ", "Anything else today?"]
    async with speaking(voice, words) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "".join(words)
        assert len(voice.said) > 1
        assert [e.name for e in caller.events(LogMetric)].count("answer.first_audio_s") == 1


async def test_a_barge_in_ends_the_synthesis_at_once(autojump_clock):
    """The clause under way is cancelled, those that wait are never made."""
    voice = SlowVoice()
    async with speaking(voice, ["One two three. ", "Four five six. ", "Seven eight. "]) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.17)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        await trio.sleep(1)
    assert voice.cancelled == [voice.said[-1]]


async def test_clauses_that_wait_of_a_cut_text_are_never_made(autojump_clock):
    """Also of a text that no run has said: the next one is said without waiting for them."""
    voice = SlowVoice()
    async with speaking(voice, []) as caller:
        text = AgentResponse(content="One two three. Four five six. Seven eight. ")
        caller.call.publish(text, source="agent")
        await caller.at(0.05)
        caller.publish(EmergencyStop())
        caller.call.say("Nine.")
        await caller.quiet()
    assert [said.strip() for said in voice.said] == ["One two three.", "Nine."]


async def test_what_was_heard_of_a_cut_answer_is_a_prefix(autojump_clock):
    """A cut in the middle leaves whole words."""
    async with speaking(SlowVoice(pieces=2), ["One two three four five six. "]) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.publish(UserStartedSpeaking())
        (cut,) = caller.events(AgentSpeechCut)
        assert cut.heard + cut.unheard == "One two three four five six. "
        assert cut.heard.split() == ["One", "two", "three"][: len(cut.heard.split())]
        assert 0 < len(cut.heard.split()) <= 3


async def test_a_clause_that_cannot_be_said_is_told_and_the_call_goes_on(autojump_clock):
    """A failing voice costs its clause; what follows a gap does not count as heard."""
    voice = SlowVoice(fails_on="four")
    async with speaking(voice, ["One two three. ", "four five six. ", "Seven. "]) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert len(caller.events(AgentError)) == 1
        assert caller.heard.startswith("One two three.")
        assert "four" not in caller.heard


@pytest.mark.parametrize("pieces_first", [0, 2])
async def test_a_voice_that_hangs_costs_its_clause(autojump_clock, pieces_first):
    """A voice that gives no piece for 10 s has its job cancelled, and speaks on."""

    class Hanging(SlowVoice):
        async def synthesize(self, text):
            if "four" not in text:
                async with aclosing(super().synthesize(text)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            try:
                for _ in range(pieces_first):
                    yield SpeechPiece(bytes(200))
                await trio.sleep_forever()
            finally:
                self.cancelled.append(text)

    voice = Hanging()
    words = ["One two three. ", "four five six. ", "Seven."]
    async with speaking(voice, words) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(9.9)
        assert not caller.events(AgentError)
        assert not voice.cancelled
        await caller.at(11)
        assert voice.cancelled == ["four five six."]
        assert len(caller.events(AgentError)) == 1
        await caller.quiet()
    assert voice.said == ["One two three.", "Seven."]


def quiet_voice(*, streams):
    """Return a voice without a sound for any text, of either kind."""

    class Batch:
        sample_rate_hz = RATE_HZ

        async def synthesize(self, text):
            for nothing in ():
                yield nothing

    class Context:
        def __init__(self):
            self._send, self._receive = trio.open_memory_channel(math.inf)

        async def send(self, text):
            await trio.lowlevel.checkpoint()

        async def flush(self):
            await self._send.send(TextSaid())

        async def end(self):
            await self._send.send(None)

        async def receive(self):
            return await self._receive.receive()

    class Streaming:
        sample_rate_hz = RATE_HZ
        times = "none"

        @asynccontextmanager
        async def open_context(self, style):
            yield Context()

    return Streaming() if streams else Batch()


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("text", ["\u200b", "\N{SLIGHTLY SMILING FACE}", "..."])
async def test_a_text_without_words_needs_no_sound(autojump_clock, text, streams):
    """Voices are silent about it, and the answer is complete."""
    async with speaking(quiet_voice(streams=streams), [text]) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert [ended.outcome for ended in caller.events(AnswerEnded)] == ["completed"]
        assert not caller.errors


@pytest.mark.parametrize("streams", [False, True])
async def test_a_voice_without_a_sound_fails_with_an_error(autojump_clock, streams):
    """The answer does not fail without a reason."""
    async with speaking(quiet_voice(streams=streams), ["Hello."]) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert [ended.outcome for ended in caller.events(AnswerEnded)] == ["failed"]
        (error,) = caller.errors
        assert str(error) == "the voice gave no sound for a text with words"


class YieldsBytes(SlowVoice):
    async def synthesize(self, text):
        yield bytes(4800)


class YieldsArrays(SlowVoice):
    async def synthesize(self, text):
        yield SpeechPiece([0] * 2400)


class YieldsTuples(SlowVoice):
    async def synthesize(self, text):
        yield SpeechPiece(bytes(4800), words=(("Hello.", 0.0, 0.1),))


class IsNoGenerator(SlowVoice):
    async def synthesize(self, text):
        return SpeechPiece(bytes(4800))


class IsNotAsync(SlowVoice):
    def synthesize(self, text):
        yield SpeechPiece(bytes(4800))


@pytest.mark.parametrize(
    ("voice", "told"),
    [
        (YieldsBytes(), "YieldsBytes yields SpeechPiece(pcm), not bytes"),
        (YieldsArrays(), "YieldsArrays yields SpeechPiece(pcm=) with bytes, PCM16, not list"),
        (YieldsTuples(), "YieldsTuples yields SpeechPiece(words=) with WordTimings, not (("),
        (IsNoGenerator(), "IsNoGenerator.synthesize() is an async generator: write async def"),
        (IsNotAsync(), "and yield SpeechPiece(pcm); it returned generator"),
    ],
)
async def test_a_mistake_in_a_voice_names_the_voice(autojump_clock, voice, told):
    """The error says which class is wrong, and what it yields."""
    async with speaking(voice, ["Hello."]) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        (error,) = caller.errors
        assert told in str(error)


async def test_what_two_speakers_say_at_once_is_said_whole(autojump_clock):
    """A fixed text in the middle of an answer takes no word of the answer away."""
    words = ["One two ", "three four ", "five six ", "seven eight. "]
    async with speaking(SlowVoice(), words) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.12)
        assert await caller.call.say("Just a moment please.") == "completed"
        await caller.quiet()
        heard = [entry.heard for entry in caller.call.history.entries]
        assert heard == ["One two three four five six seven eight. ", "Just a moment please."]


async def test_a_cut_between_two_pieces_closes_the_voice(autojump_clock):
    """A cut while a piece is handed on leaves no generator for the garbage collector."""
    closed = []

    class Piecewise(SlowVoice):
        async def synthesize(self, text):
            try:
                for _ in range(100):
                    yield SpeechPiece(bytes(20))
            finally:
                closed.append(text)

    async with speaking(Piecewise(), ["One two three. "]) as caller:
        pieces = []

        def cut_at_the_third(message):
            pieces.append(message)
            if len(pieces) == 3:
                caller.publish(UserStartedSpeaking())

        caller.call.router.add_sink(cut_at_the_third, AgentAudio)
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert len(pieces) == 3
        assert closed == ["One two three."]


class TimedVoice(SlowVoice):
    """A voice that reports its words and the end of each text."""

    done_at_s: float | None = None

    async def synthesize(self, text):
        words = text.split()
        for word in words:
            yield SpeechPiece(bytes(1000), (WordTiming(word, 0.0, 0.5),))
        self.done_at_s = trio.current_time()


async def test_a_voice_that_calls_share_is_free_when_it_has_made_a_clause(autojump_clock):
    """Audio waits for the player, and its engine does not."""
    voice = TimedVoice()
    clause = "One two three four five six seven eight nine ten eleven twelve. "

    async def generate(message):
        yield AgentResponse(content=clause)
        yield AgentResponse(content="And ")
        await trio.sleep(20)  # nothing waits in line behind the clause
        yield AgentResponse(content="so on.")

    async def answer(call):
        agent = call.bridge(name="agent")
        agent.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    app = App(answer, speech=Speech(voice))
    async with open_call(app, own_speech=True) as caller:
        began_s = trio.current_time()
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        assert voice.done_at_s == began_s
        await trio.sleep(7)
        assert caller.heard.strip() == clause.strip()

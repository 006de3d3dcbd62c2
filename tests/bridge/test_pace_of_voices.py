"""How far the audio of a voice runs ahead of what is heard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from bargein import App, Call, Message
from bargein.events import (
    AgentAudio,
    AgentResponse,
    AgentSpeechSent,
    EmergencyStop,
    UserStoppedSpeaking,
    WordTiming,
)

RATE_HZ = 1000
PLAYER_HAS_S = 0.4
"""How much the player is given ahead of what is heard."""


class Player:
    """A caller's side that keeps when it got audio, and reports nothing."""

    audio = True
    sample_rate_hz = RATE_HZ

    def __init__(self) -> None:
        self.got_s = 0.0
        self.told: list[tuple[float, object]] = []

    def send(self, message: Message) -> None:
        self.told.append((trio.current_time(), message.event))

    def play(self, utterance: int, pcm: bytes) -> None:
        self.got_s += len(pcm) / 2 / RATE_HZ

    def clear(self, utterance: int, reason: str) -> None:
        pass

    def at(self, kind: type) -> list[float]:
        return [at_s for at_s, event in self.told if isinstance(event, kind)]

    @property
    def heard(self) -> str:
        return "".join(e.content for _, e in self.told if isinstance(e, AgentSpeechSent))


class Voice:
    """Says each text in pieces, each of which takes its time to be made."""

    def __init__(
        self, pieces: int, piece_s: float, makes_s: float = 0.0, *, tells_words: bool = True
    ) -> None:
        self.pieces = pieces
        self.piece_s = piece_s
        self.makes_s = makes_s
        self.tells_words = tells_words
        self.given_at_s: list[float] = []
        self.ended_at_s: list[float] = []

    def words(self, text: str) -> tuple[WordTiming, ...]:
        """Each word, of a length, in all that is said of a text."""
        if not self.tells_words:
            return ()
        words = text.split()
        word_s = self.pieces * self.piece_s / len(words)
        return tuple(
            WordTiming(word, number * word_s, (number + 1) * word_s)
            for number, word in enumerate(words)
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    def attach(self, call: Call) -> None:
        async def say(message: Message) -> AsyncIterator[AgentAudio]:
            utterance = call.answers.utterance_of(message)
            assert utterance is not None
            try:
                for number in range(self.pieces):
                    await trio.sleep(self.makes_s)
                    self.given_at_s.append(trio.current_time())
                    yield AgentAudio(
                        bytes(2 * int(RATE_HZ * self.piece_s)),
                        RATE_HZ,
                        "" if number else message.event.content,
                        self.words(message.event.content) if not number else (),
                        last=number == self.pieces - 1,
                        utterance=utterance.number,
                    )
            finally:
                self.ended_at_s.append(trio.current_time())

        voice = call.bridge(name="voice", is_agent=False)
        voice.on(AgentResponse, linked=True).stream(say).broadcast()


def says(*texts: str, gap_s: float = 0.0) -> Callable[[Call], object]:
    async def write(message: Message) -> AsyncIterator[AgentResponse]:
        for text in texts:
            yield AgentResponse(content=text)
            await trio.sleep(gap_s)

    async def answer(call: Call) -> None:
        agent = call.bridge(name="agent")
        agent.on(UserStoppedSpeaking).interrupt_on(EmergencyStop).stream(write).broadcast()

    return answer


async def test_a_fast_voice_gives_audio_at_the_pace_of_hearing(autojump_clock):
    """A voice that makes audio in no time is a fifth of a second ahead of the player, and its
    piece: not ten seconds."""
    player, voice = Player(), Voice(pieces=50, piece_s=0.2)
    async with App(says("All of it."), speech=voice).open_call(player) as call:
        call.publish(UserStoppedSpeaking())
        began_s = trio.current_time()
        await trio.sleep(11)
        ahead_s = [0.2 * number - (at_s - began_s) for number, at_s in enumerate(voice.given_at_s)]
        assert len(ahead_s) == 50
        assert max(ahead_s) <= PLAYER_HAS_S + 0.2 + 0.01
        assert player.got_s == pytest.approx(10)
        assert player.heard == "All of it."


async def test_the_first_audio_is_given_at_once(autojump_clock):
    """What the player takes, and a fifth of a second more, waits for nothing."""
    voice = Voice(pieces=50, piece_s=0.1)
    async with App(says("All of it."), speech=voice).open_call(Player()) as call:
        call.publish(UserStoppedSpeaking())
        began_s = trio.current_time()
        await trio.sleep(1)
        assert [at_s - began_s for at_s in voice.given_at_s[:6]] == [0] * 6


async def test_a_voice_hardly_faster_than_speech_leaves_no_gap(autojump_clock):
    """A voice that needs 0.9 s for each second gives its next piece before the last one ends."""
    player, voice = Player(), Voice(pieces=10, piece_s=1.0, makes_s=0.9)
    async with App(says("All of it."), speech=voice).open_call(player) as call:
        call.publish(UserStoppedSpeaking())
        began_s = trio.current_time()
        await trio.sleep(15)
        heard_until_s = [began_s + 0.9 + number for number in range(10)]
        assert all(
            at_s < end_s - 0.05
            for at_s, end_s in zip(voice.given_at_s[1:], heard_until_s[1:], strict=True)
        )
        assert player.got_s == pytest.approx(10)


async def test_a_voice_with_texts_in_line_runs_ahead(autojump_clock):
    """The next text needs a head start, so nothing keeps the one before from its end."""
    player, voice = Player(), Voice(pieces=20, piece_s=0.2)
    async with App(says("One. ", "Two."), speech=voice).open_call(player) as call:
        call.publish(UserStoppedSpeaking())
        began_s = trio.current_time()
        await trio.sleep(0.5)
        assert voice.ended_at_s[0] - began_s < 0.3
        await trio.sleep(9)
        assert player.heard == "One. Two."
        assert player.got_s == pytest.approx(8)


async def test_a_stop_ends_a_voice_that_waits(autojump_clock):
    """A voice that waits for the player ends in the step in which its answer is cut."""
    voice = Voice(pieces=50, piece_s=0.2)
    async with App(says("All of it."), speech=voice).open_call(Player()) as call:
        call.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        stopped_s = trio.current_time()
        call.publish(EmergencyStop(reason="stop_key"))
        await trio.sleep(1)
        assert voice.ended_at_s == [stopped_s]
        assert len(voice.given_at_s) < 12


async def test_a_voice_waits_while_speech_is_held(autojump_clock):
    """A held player takes nothing, so a voice gives nothing more; then it goes on to its end."""
    player, voice = Player(), Voice(pieces=20, piece_s=0.2)
    async with App(says("All of it."), speech=voice).open_call(player) as call:
        call.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        call.hold_speech("test")
        await trio.sleep(0.1)
        given = len(voice.given_at_s)
        await trio.sleep(5)
        assert len(voice.given_at_s) == given
        call.release_speech("test")
        await trio.sleep(5)
        assert len(voice.given_at_s) == 20
        assert player.heard == "All of it."


async def test_a_voice_that_tells_no_words_is_not_delayed(autojump_clock):
    """Its words are found by the length of the whole audio, so that is asked for at once."""
    player, voice = Player(), Voice(pieces=20, piece_s=0.2, tells_words=False)
    async with App(says("All of it."), speech=voice).open_call(player) as call:
        call.publish(UserStoppedSpeaking())
        await trio.sleep(5)
        assert voice.given_at_s[0] == voice.given_at_s[-1]
        assert player.heard == "All of it."


async def test_an_agent_that_gives_its_own_audio_is_not_delayed(autojump_clock):
    """What an agent gives behind its audio, such as a tool's call, does not wait for the player."""
    given_at_s: list[float] = []

    async def speak(message: Message) -> AsyncIterator[AgentResponse | AgentAudio]:
        yield AgentResponse(content="All of it.")
        for number in range(20):
            given_at_s.append(trio.current_time())
            text = "" if number else "All of it."
            yield AgentAudio(bytes(400), RATE_HZ, text, last=number == 19)

    async def answer(call: Call) -> None:
        agent = call.bridge(name="agent")
        agent.on(UserStoppedSpeaking).interrupt_on(EmergencyStop).stream(speak).broadcast()

    class Silent(Voice):
        def attach(self, call: Call) -> None:
            pass

    player = Player()
    async with App(answer, speech=Silent(0, 0)).open_call(player) as call:
        call.publish(UserStoppedSpeaking())
        await trio.sleep(5)
        assert len(given_at_s) == 20
        assert given_at_s[0] == given_at_s[-1]
        assert player.got_s == pytest.approx(4)

"""What the evaluation's callers sound like, and where their lines begin."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trio

from bargein.client import HeardAudio
from bargein.events import WordTiming
from bargein.rehearsal import (
    Microphone,
    Perception,
    agent_has_spoken,
)
from bargein.speech import SpeechPiece

from .evaluation import _at_places, _rooms
from .evaluation._places import Places
from .evaluation._voices import Alone, Rehearsed, Voices
from .tones import pcm, tone

ROOT = Path(__file__).parents[1]
FRAME = 320


def carried(room: Any, sound: bytes, step_s: float = 0.02) -> Any:
    """Send sound through a room, frame by frame from second 100 on."""
    frames = range(0, len(sound), 2 * FRAME)
    return _rooms.sound_of(
        b"".join(room(sound[at : at + 2 * FRAME], 100 + n * step_s) for n, at in enumerate(frames))
    )


def power_at(sound: Any, hz: float, rate_hz: int = 16_000) -> float:
    """Return the share of the power of a sound that lies within 40 Hz of a frequency."""
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)))) ** 2
    near = np.abs(np.fft.rfftfreq(len(sound), 1 / rate_hz) - hz) < 40
    return float(np.sum(spectrum[near]) / np.sum(spectrum))


# --- rooms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("db", [-60, -30, -12])
def test_a_sound_is_brought_to_a_level(db: float) -> None:
    """The level is the root of the mean square, in dB of full scale; a full sine has -3."""
    assert _rooms.level_db(_rooms.at_level(tone(1, 440, 16_000), db)) == pytest.approx(db)
    assert _rooms.level_db(tone(1, 440, 16_000, peak=32_768)) == pytest.approx(-3.01, abs=0.01)
    assert _rooms.level_db(np.zeros(10)) == -math.inf


def test_pink_noise_has_the_same_power_in_each_octave() -> None:
    """From 100 Hz to 6.4 kHz no octave has more than twice the power of another."""
    noise = _rooms.pink_noise(8.0)
    spectrum = np.abs(np.fft.rfft(noise)) ** 2
    hz = np.fft.rfftfreq(len(noise), 1 / 16_000)
    edges = [100 * 2**n for n in range(7)]
    octaves = [np.sum(spectrum[(hz >= low) & (hz < 2 * low)]) for low in edges[:-1]]
    assert max(octaves) < 2 * min(octaves)
    assert np.sum(spectrum[hz > 7_100]) < 1e-6 * np.sum(spectrum)


def test_noise_goes_on_beside_the_voice_at_its_level() -> None:
    """Before its first step there is none; each step has its level; the voice stays as it is."""
    noise = _rooms.pink_noise(0.5)
    steps = [_rooms.Step(1.0, -50), _rooms.Step(2.0, -30)]
    sent = carried(_rooms.beside(noise, steps), bytes(2 * 16_000 * 3))
    levels = [_rooms.level_db(sent[n * 16_000 : (n + 1) * 16_000]) for n in range(3)]
    assert levels[0] == -math.inf
    assert levels[1:] == pytest.approx([-50, -30], abs=0.5)
    voice = pcm(tone(1.0, 440, 16_000))
    assert carried(_rooms.beside(noise, []), voice) == pytest.approx(_rooms.sound_of(voice))


def test_talk_is_everybody_at_once_and_as_loud() -> None:
    """Two speakers are heard in equal parts, however loud they were, for as long as one talks."""
    sound = _rooms.talk(
        [pcm(tone(1.0, 400, 16_000, peak=300)), pcm(tone(0.5, 1_000, 16_000, peak=20_000))]
    )
    assert len(sound) == 16_000
    assert power_at(sound, 400) == pytest.approx(0.5, abs=0.05)
    assert power_at(sound, 1_000) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("db", [-10, -30])
def test_an_echo_is_what_was_played_later_and_softer(db: float) -> None:
    """It comes after its delay, with its loss, at the other sample rate, and only from then on."""
    played = HeardAudio(100.2, 1, bytearray(pcm(tone(1.0, 500, 24_000))))
    room = _rooms.echo(lambda: [played], [_rooms.Step(0.0, db)], delay_s=0.1)
    sent = carried(room, bytes(2 * 16_000 * 2))
    first = int(np.argmax(np.abs(sent) > 20)) / 16_000
    assert first == pytest.approx(0.3, abs=0.002)
    expected = tone(1.0, 500, 16_000) * 10 ** (db / 20)
    middle = sent[round(0.5 * 16_000) : round(1.1 * 16_000)]
    assert np.max(np.abs(middle - expected[: len(middle)])) < 0.03 * np.max(np.abs(expected))
    assert np.max(np.abs(sent[round(1.32 * 16_000) :])) <= 1


def test_an_echo_joins_what_was_played_in_pieces() -> None:
    """Two spans that follow each other leave no seam; between others there is silence."""
    whole = pcm(tone(1.0, 500, 24_000))
    one = [HeardAudio(100.0, 1, bytearray(whole))]
    two = [
        HeardAudio(100.0, 1, bytearray(whole[:24_000])),
        HeardAudio(100.5, 1, bytearray(whole[24_000:])),
    ]
    sent = [
        carried(_rooms.echo(lambda spans=spans: spans, [_rooms.Step(0, -20)]), bytes(32_000))
        for spans in (one, two)
    ]
    assert np.max(np.abs(sent[0] - sent[1])) <= 1


@pytest.mark.parametrize(
    ("hz", "passes"), [(300, True), (1_000, True), (3_000, True), (5_000, False)]
)
def test_a_telephone_carries_what_lies_below_its_edge(hz: float, passes: bool) -> None:
    """A tone below 3.4 kHz comes through as loud as it was, one above does not, nor as an alias."""
    sent = carried(_rooms.telephone(), pcm(tone(1.0, hz, 16_000)))[1_600:-1_600]
    loss_db = _rooms.level_db(sent) - _rooms.level_db(tone(1.0, hz, 16_000))
    if passes:
        assert loss_db == pytest.approx(0, abs=0.5)
        assert power_at(sent, hz) > 0.99
    else:
        assert loss_db < -35


# --- voices ---------------------------------------------------------------------------------------


class Letters:
    """A voice that hums each word for half a second, and counts what it is asked."""

    sample_rate_hz = 16_000

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def synthesize(self, text: str) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked.append(text)
        words = text.split()
        sound = np.concatenate([tone(0.5, 200 + 100 * n, 16_000) for n in range(len(words))])
        times = tuple(WordTiming(word, n / 2, (n + 1) / 2) for n, word in enumerate(words))
        yield SpeechPiece(pcm(sound), times)


async def test_a_hesitation_is_silence_between_two_words() -> None:
    """The sentence is spoken once, as a whole, and is all there around its pauses."""
    voice = Letters()
    sound, begins = await Voices({"ann": voice}).hesitate("ann", "I want ... a tea ... please", 0.3)
    assert voice.asked == ["I want a tea please"]
    assert begins == pytest.approx([1.0, 2.3])
    assert len(sound) / 32_000 == pytest.approx(5 * 0.5 + 2 * 0.3)
    heard = _rooms.sound_of(sound)
    for begin_s in begins:
        start = round(begin_s * 16_000)
        assert not np.any(heard[start : start + 4_800])
        assert np.any(heard[start + 4_800 : start + 5_600])
    whole = _rooms.sound_of(await Voices({"ann": voice}).say("ann", "I want a tea please"))
    assert np.array_equal(heard[:16_000], whole[:16_000])
    assert np.array_equal(heard[-8_000:], whole[-8_000:])


async def test_what_was_said_once_is_kept() -> None:
    """A line is synthesised once for each voice."""
    one, other = Letters(), Letters()
    voices = Voices({"ann": one, "ben": other})
    assert await voices.say("ann", "hello") == await voices.say("ann", "hello")
    await voices.say("ben", "hello")
    assert (one.asked, other.asked) == (["hello"], ["hello"])


async def test_a_text_is_known_by_heart_clause_by_clause() -> None:
    """What was learnt costs the engine nothing; any other text does."""
    voice = Letters()
    agent = Rehearsed(voice)
    await agent.learn("The lamp is lit every evening. Nobody lives there any more.")
    learnt = list(voice.asked)
    assert len(learnt) >= 2
    for clause in (*learnt, "Hello."):
        assert [piece.pcm async for piece in agent.synthesize(clause)]
    assert voice.asked == [*learnt, "Hello."]


async def test_a_text_sounds_the_same_whatever_was_said_before() -> None:
    """Each text has a voice of its own, which is closed behind it."""
    opened: list[Letters] = []
    closed: list[Letters] = []

    @asynccontextmanager
    async def open_voice() -> AsyncIterator[Letters]:
        opened.append(Letters())
        yield opened[-1]
        closed.append(opened[-1])

    joe = Voices({"joe": Alone(open_voice)})
    assert await joe.say("joe", "yes") == await Voices({"joe": Letters()}).say("joe", "yes")
    await joe.say("joe", "no")
    assert [voice.asked for voice in opened] == [["yes"], ["no"]]
    assert closed == opened


# --- where a line begins --------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 3, 11])
def test_a_line_begins_at_its_place_on_the_windows(place: int) -> None:
    """It waits for its cue, and then for the next frame at which its place comes up."""
    places, microphone = Places(), Microphone()
    places.call_began(0.0, SimpleNamespace(microphone=microphone))  # type: ignore[arg-type]
    cue = places.cue(agent_has_spoken(0.2), place)
    due = []
    for frame in range(30):
        if cue.is_due(Perception(spoken_s=frame * 0.02)):
            due.append(frame)
        microphone.pcm += bytes(2 * FRAME)
    assert due == [frame for frame in range(10, 30) if frame % 8 == place % 8]


@pytest.mark.parametrize("place", range(8))
def test_a_word_is_heard_at_its_place(place: int) -> None:
    """In virtual time it begins so many frames after a window, in the hiss of a quiet room."""
    word = tone(0.3, 300, 16_000)
    heard = _at_places.microphone(pcm(word), place)
    starts = int(np.flatnonzero(np.abs(heard) > 4)[0]) - 1  # a sine begins with 0
    assert starts % 512 == (place * FRAME) % 512
    assert starts > 2 * 16_000
    assert np.array_equal(heard[starts : starts + len(word)], np.rint(word))
    assert 0 < np.abs(heard[:starts]).max() <= 4


def test_a_word_at_a_place_is_judged_by_its_longest_hold() -> None:
    """A cut or an answer is told, too."""
    held = [("plays", 0.0, 2.0), ("held", 2.0, 2.2), ("plays", 2.2, 2.5), ("held", 2.5, 2.6)]
    for cuts, asked in (([], 0), ([2.2], 0), ([], 1)):
        call = SimpleNamespace(runs=lambda _: held, cuts=cuts, asked=asked)
        played = _at_places.heard("mhm", call)  # type: ignore[arg-type]
        assert played.gap_ms == pytest.approx(200)
        assert played.is_nothing == (not cuts and not asked)


def test_most_places_are_judged_and_the_worst_is_told() -> None:
    """The bound is for 95 of 100 gaps; a word that is taken for a turn fails whatever its gap."""
    short = [_at_places.Played("okay", 240, True)] * 95
    long = [_at_places.Played("uh-huh", 500, True)]
    row = _at_places.row_of([*short, *long * 4])
    assert (row.figure, row.verdict) == (240, "pass")
    assert "95 of 99" in row.happened
    assert "500 ms after uh-huh" in row.happened
    assert _at_places.row_of([*short, *long * 5]).verdict == "FAIL"
    assert _at_places.row_of([*short, _at_places.Played("mhm", 0, False)]).verdict == "FAIL"
    assert "all 95" in _at_places.row_of(short).happened

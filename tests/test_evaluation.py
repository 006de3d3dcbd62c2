"""The evaluation's own measuring: rooms, voices, rows and verdicts; the real run is a proof."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trio
from PIL import Image

from bargein.client import HeardAudio
from bargein.events import WordTiming
from bargein.rehearsal import (
    CallNotes,
    Held,
    IgnoredSound,
    LatencyParts,
    MeasuredAnswer,
    MeasuredCut,
    Microphone,
    Perception,
    ReceivedClear,
    RecordedLine,
    Rehearsal,
    ScriptLine,
    TurnDecision,
    agent_falls_silent,
    agent_has_spoken,
    record,
)
from bargein.speech import SpeechPiece, Transcript

from .evaluation import _at_places, _found, _rooms, _row
from .evaluation.__main__ import CASES, summary, write
from .evaluation._places import Places
from .evaluation._recogniser import Timed
from .evaluation._row import MeasurementRow
from .evaluation._stage import Take
from .evaluation._voices import Alone, Rehearsed, Voices

ROOT = Path(__file__).parents[1]
FRAME = 320


def tone(seconds: float, hz: float, rate_hz: int, peak: float = 10_000) -> Any:
    """Return a sine as samples."""
    return peak * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate_hz)) / rate_hz)


def pcm(sound: Any) -> bytes:
    """Return samples as PCM16."""
    return np.rint(sound).astype("<i2").tobytes()


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


@pytest.mark.parametrize(
    ("sample", "code"),
    [(0, 0xFF), (8, 0xFE), (-8, 0x7E), (32_767, 0x80), (-32_768, 0x00), (1_000, 0xCE), (-1, 0x7F)],
)
def test_mu_law_codes_are_those_of_the_standard(sample: int, code: int) -> None:
    """G.711's bytes: the bits are inverted, and the first one is the sign."""
    assert _rooms.encode_mu_law(np.array([sample], float))[0] == code


def test_mu_law_keeps_a_sample_within_a_step() -> None:
    """Every sample comes back within half a step, which grows with its size; 644 at the clip."""
    samples = np.arange(-32_768, 32_768, dtype=float)
    back = _rooms.decode_mu_law(_rooms.encode_mu_law(samples))
    assert np.all(np.abs(back - samples) <= (np.abs(samples) + 132) / 32)
    assert np.all(np.diff(back) >= 0)


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


# --- how busy the machine is ----------------------------------------------------------------------


class Slow:
    """A recogniser that takes some time for each of its answers."""

    def __init__(self, *takes_s: float) -> None:
        self.takes_s = [*takes_s]
        self.is_open = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        self.is_open = True
        yield
        self.is_open = False

    async def transcribe(self, pcm: bytes) -> Transcript:
        await trio.sleep(self.takes_s.pop(0))
        return Transcript("mhm")


async def test_the_recogniser_is_timed(autojump_clock: object) -> None:
    """Each answer of a call counts, and what was cancelled, for as long as it was waited for."""
    slow = Slow(0.1, 5.0, 0.3)
    ears = Timed(slow)
    async with ears.open():
        assert slow.is_open
        assert (await ears.transcribe(b"")).text == "mhm"
        with trio.move_on_after(1.0):
            await ears.transcribe(b"")
        assert [took_s for _, took_s in ears.asked] == pytest.approx([0.1, 1.0])
        ears.begin()
        await trio.sleep(1.0)
        began_s = trio.current_time()
        await ears.transcribe(b"")
        assert ears.asked == [(began_s, pytest.approx(0.3))]
    assert not slow.is_open


@pytest.mark.parametrize(("asked_s", "took_s"), [(1.9, 0.3), (2.4, 0.12), (2.7, 0.3)])
def test_a_recogniser_that_is_in_time_for_a_sound_excuses_no_gap(
    asked_s: float, took_s: float
) -> None:
    """Nor does one that is late for words before or after the sound, which ends at 2.5 s."""
    call = replace(take(ignored_sounds=(replace(KEPT, gap_s=0.4),)), asked=[(asked_s, took_s)])
    assert [row.verdict for row in _found.ignored_sound_rows("x", "mhm", call)] == ["FAIL", "FAIL"]


def test_a_gap_on_a_busy_machine_is_told_and_not_judged() -> None:
    """Words end some gaps, and a busy machine has them later; everything else is judged."""
    late = replace(KEPT, gap_s=0.4)
    busy = replace(take(ignored_sounds=(KEPT, late)), asked=[(2.4, 0.24)])
    whole, *rest = _found.ignored_sound_rows("x", "mhm", busy)
    assert (whole.figure, whole.verdict) == (200, "pass")
    assert whole.happened.startswith("1 of 2 left the agent speaking")
    assert [(row.figure, row.verdict) for row in rest] == [(400, "")]
    assert "not judged: the recogniser took 0.24 s" in rest[0].happened
    alone = replace(busy, result=replace(busy.result, ignored_sounds=(late,)))
    assert [row.verdict for row in _found.ignored_sound_rows("x", "mhm", alone)] == ["", ""]
    answered = replace(busy, result=replace(busy.result, ignored_sounds=(replace(late, turns=1),)))
    assert [row.verdict for row in _found.ignored_sound_rows("x", "mhm", answered)] == [
        "FAIL",
        "FAIL",
    ]


# --- what is found in a call ----------------------------------------------------------------------

MHM = RecordedLine(ScriptLine("mhm", agent_has_spoken(1), longest_gap_s=0.3), 2.0, 2.5)
KEPT = IgnoredSound(MHM, utterance=1, gap_s=0.2, gap_from_s=2.1, dead_air_s=0.5)
STOP = RecordedLine(ScriptLine("no wait", agent_has_spoken(1), interrupts=True), 2.0, 2.8)
CUT = MeasuredCut(STOP, utterance=1, silent_at_s=2.1, latency_s=0.1, is_reported=True)


def take(notes: CallNotes | None = None, heard: Any = (), **changes: Any) -> Take:
    """Return a call of 10 s; `heard` is the second, utterance and length of what was heard."""
    spans = [
        HeardAudio(at_s, number, bytearray(pcm(tone(seconds, 300, 24_000))))
        for at_s, number, seconds in heard
    ]
    recording = record(start_s=0, end_s=10, spoke=b"", spoke_at_s=0, heard=spans)
    result = Rehearsal(
        recording=recording, said=(), cuts=(), answers=(), history=[], ended="hangup"
    )
    return Take("case-x", replace(result, **changes), notes or CallNotes(), "A case")


def test_a_row_is_judged_by_its_bound_and_by_all_else() -> None:
    """A row without a bound is told; one that could not be measured breaks its bound."""
    told = MeasurementRow("a", "b", "c", 900)
    assert (told.judged, told.passed, told.verdict) == (False, True, "")
    assert replace(told, bound=900).verdict == "pass"
    assert replace(told, bound=899).verdict == "FAIL"
    assert replace(told, bound=900, holds=False).verdict == "FAIL"
    assert replace(told, holds=False).verdict == "FAIL"
    assert replace(told, bound=900, figure=None).verdict == "FAIL"


def test_the_last_line_counts_what_is_judged() -> None:
    """Rows that are only told count for nothing."""
    rows = [
        MeasurementRow("a", "b", "c", 1),
        MeasurementRow("a", "b", "c", 1, bound=2),
        MeasurementRow("a", "b", "c", 3, bound=2),
    ]
    assert summary(rows, 12.4) == "1 of 2 bounds broken; 12 s"


def test_a_row_is_written_in_columns() -> None:
    """Figure, bound and verdict stand in their columns; long texts go on below themselves."""
    row = MeasurementRow(
        "cough",
        "(a throaty cough, three times in a row)",
        "the agent went on " * 6,
        210.4,
        bound=800,
        decided="silence by false_interruption_timeout_s",
    )
    written = _row.row_lines(row, 130)
    assert all(len(line) <= 130 for line in written)
    assert len({len(line) for line in (written[0],)} | {len(_row.table_heading(130)) + 6}) == 1
    assert written[0].startswith("cough           (a throaty cough, three times in")
    assert written[0].endswith("210 ms   <= 800  pass")
    assert "a row)" in written[1]
    assert written[-1].strip() == "-> silence by false_interruption_timeout_s"


@pytest.mark.parametrize(
    ("changes", "verdict", "figure"),
    [
        ({}, "pass", 200),
        ({"gap_s": 0.31}, "FAIL", 310),
        ({"is_cut": True}, "FAIL", None),
        ({"utterance": None}, "FAIL", None),
        ({"model_calls": 1}, "FAIL", 200),
        ({"turns": 1}, "FAIL", 200),
        ({"lost_s": 0.02}, "FAIL", 200),
    ],
)
def test_an_acknowledgement_is_judged_by_its_gap(
    changes: dict[str, Any], verdict: str, figure: float | None
) -> None:
    """300 ms at most, nothing lost, no turn and no model call; a cut agent has no figure."""
    row = _found.ignored_sound_row("x", take(), replace(KEPT, **changes))
    assert (row.verdict, row.figure, row.bound) == (verdict, figure, 300)


def test_a_cough_is_judged_by_the_silence_that_is_heard() -> None:
    """800 ms at most, with the agent's own pauses in it."""
    row = _found.ignored_sound_row("x", take(), replace(KEPT, dead_air_s=0.81), dead_air=True)
    assert (row.figure, row.bound, row.verdict) == (810, 800, "FAIL")


def test_sounds_of_a_call_have_one_row_and_one_more_for_each_that_failed() -> None:
    """The row of all has the longest gap of those that held; a line never said fails it."""
    bad = replace(KEPT, is_cut=True)
    rows = _found.ignored_sound_rows("x", "mhm, twice", take(ignored_sounds=(KEPT, bad)))
    assert [row.verdict for row in rows] == ["FAIL", "FAIL"]
    assert rows[0].happened.startswith("1 of 2 left the agent speaking")
    rows = _found.ignored_sound_rows("x", "mhm", take(ignored_sounds=(KEPT,)))
    assert [(row.verdict, row.figure) for row in rows] == [("pass", 200)]
    rows = _found.ignored_sound_rows(
        "x", "mhm", take(ignored_sounds=(KEPT,), problems=("never said",))
    )
    assert [row.verdict for row in rows] == ["FAIL"]


@pytest.mark.parametrize(
    ("changes", "texts", "verdict"),
    [
        ({}, ("No wait.",), "pass"),
        ({}, ("No way.",), "FAIL"),
        ({}, (), "FAIL"),
        ({"latency_s": 0.301}, ("No wait.",), "FAIL"),
        ({"latency_s": None}, ("No wait.",), "FAIL"),
        ({"is_reported": False}, ("No wait.",), "FAIL"),
        ({"late_s": 0.1}, ("No wait.",), "FAIL"),
    ],
)
def test_an_interruption_is_judged_by_its_cut_and_its_words(
    changes: dict[str, Any], texts: tuple[str, ...], verdict: str
) -> None:
    """Silence within 300 ms, understood, and nothing of the old answer afterwards."""
    played = take(transcripts=tuple((4.0, text) for text in texts))
    assert _found.cut_row("x", played, replace(CUT, **changes), "wait").verdict == verdict


def test_a_stretch_counts_how_long_the_agent_was_held() -> None:
    """Gaps without a hold are the line's; gaps outside of the stretch are not counted."""
    heard = [(0.5, 1, 0.5), (1.2, 1, 1.0), (2.4, 1, 1.0), (3.9, 1, 1.0), (5.9, 1, 1.0)]
    held = (Held(1.0, 1.2), Held(2.2, 2.4), Held(4.9, 5.9))
    decisions = (
        TurnDecision(2.3, "barge_in", "held", "voice"),
        TurnDecision(2.4, "barge_in", "noise", "hint"),
        TurnDecision(5.5, "barge_in", "echo", "hint"),
    )
    played = take(CallNotes(held=held), heard, decisions=decisions)
    row = _found.stretch_row("x", "noise", played, 1.5, 4.5, 300)
    assert row.figure == pytest.approx(200, abs=1)
    assert (row.verdict, row.decided, row.happened) == ("pass", "noise by hint", "held 1 times")


def test_a_stretch_in_which_the_agent_is_cut_fails() -> None:
    """A cut breaks the bound whatever the gaps; without a bound it is only told."""
    played = take(
        CallNotes(clears=[ReceivedClear(2.0, 1)], generations=[(2.5, 2)]), [(0.5, 1, 1.5)]
    )
    row = _found.stretch_row("x", "talk", played, 1.0, 5.0, 300)
    assert (row.verdict, row.happened) == ("FAIL", "cut 1 times, model calls 1")
    assert _found.stretch_row("x", "talk", played, 1.0, 5.0, None).verdict == ""


def test_an_agent_that_is_heard_in_a_pause_has_cut_in() -> None:
    """A pause counts as cut into if the agent is heard in it or right behind it."""
    sound = pcm(np.concatenate([tone(1, 300, 16_000), np.zeros(8_000), tone(1, 300, 16_000)]))
    line = ScriptLine("I want … a tea", agent_falls_silent(), sound=sound)
    said = (RecordedLine(line, 2.0, 4.5), RecordedLine(line, 6.0, 8.5))
    played = take(heard=[(7.3, 1, 0.5)], said=said)
    pauses = _found.pauses_of(played, [(0.5, [1.0]), (0.5, [1.0])])
    assert [(pause.length_s, pause.cut_in) for pause in pauses] == [(0.5, False), (0.5, True)]


def test_latency_has_a_median_a_ninetieth_percentile_and_parts() -> None:
    """Answers that came before the end, or never, do not count."""
    parts = LatencyParts(0.2, 0.3, 0.1, 0.0, 0.05, 0.1, 0.05)
    said = RecordedLine(ScriptLine("hi", agent_falls_silent()), 1.0, 2.0)
    answers = [MeasuredAnswer(said, n / 10, parts) for n in range(5, 15)]
    rows = _found.latency_rows(
        "x", [*answers, MeasuredAnswer(said, None), MeasuredAnswer(said, -1.0)], "p"
    )
    assert [row.figure for row in rows] == pytest.approx([950, 1400])
    assert rows[0].happened == (
        "10 turns; silence waited for 200, speech to text 300, turn model beside it 100, "
        "model 50, voice 100, line and player 50"
    )
    assert [row.verdict for row in rows] == ["", ""]
    assert _found.latency_rows("x", [], "p")[0].verdict == "FAIL"


def test_each_call_gets_a_picture_and_a_recording(tmp_path: Path) -> None:
    """They have the name of the call; the picture tells what was found."""
    played = take(heard=[(1.0, 1, 2.0)])
    played.rows.append(MeasurementRow("x", "mhm", "went on", 200, bound=300))
    (picture,) = write([played], tmp_path / "out")
    assert picture.name == "case-x.png"
    with Image.open(picture) as image:
        assert image.width == 3200
    assert picture.with_suffix(".wav").stat().st_size > 10 * 24_000 * 4


def test_silence_has_no_samples_that_count() -> None:
    """An empty track has no cut-ins, whatever is asked."""
    said = (
        RecordedLine(
            ScriptLine("a … b", agent_falls_silent(), sound=pcm(np.zeros(16_000))), 1.0, 2.0
        ),
    )
    assert _found.pauses_of(take(said=said), [(0.5, [0.4])])[0].cut_in is False
    assert array("h") == take().result.recording.of(1)


def test_every_case_of_the_issue_is_there() -> None:
    """The cases have the names that the command line takes."""
    assert set(CASES) == {
        "acknowledgement", "places", "cough", "hesitation", "correction", "noise", "talk", "echo",
        "twice", "tool", "muted", "telephone", "answers",
    }  # fmt: skip


def test_an_unknown_case_is_refused() -> None:
    """The error names the cases there are."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.evaluation", "--only", "cough", "sneeze"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 2
    assert "'sneeze'" in run.stderr
    assert "acknowledgement" in run.stderr


@pytest.mark.proof
@pytest.mark.whisper
def test_a_case_is_played_on_real_audio(tmp_path: Path) -> None:
    """One case runs as a program: rows, a picture, a recording, figures; bounds are not judged."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.evaluation", "--only", "cough",
         "--out", str(tmp_path), "--json", str(tmp_path / "figures.json")],
        cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    assert "bounds broken" in run.stdout
    told = json.loads((tmp_path / "figures.json").read_text())
    assert told["rows"][0]["what"] == "(a dry cough, twice)"
    assert all(row["bound"] == 800 for row in told["rows"])
    assert (tmp_path / "cough.png").is_file()
    assert (tmp_path / "cough.wav").is_file()

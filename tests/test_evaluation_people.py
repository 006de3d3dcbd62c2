"""The evaluation on recordings of people: its folder, its sounds, and one run on synthetic ones."""

from __future__ import annotations

import json
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from bargein.rehearsal import cough
from tests.evaluation.people import _endings, _ground
from tests.evaluation.people._folder import RATE, Folder, RecordingsError
from tests.evaluation.people._sound import SPEECH_DB, WINDOW, Surroundings, level, pcm

ROOT = Path(__file__).parent.parent


def write(path: Path, sound: bytes, rate: int = RATE) -> None:
    """Write a WAV file of one channel."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(sound)


def tone(seconds: float, rate: int = RATE) -> bytes:
    """Return a tone with half a second of silence around it."""
    wave_ = 8_000 * np.sin(2 * np.pi * 300 * np.arange(int(seconds * rate)) / rate)
    return pcm(np.concatenate([np.zeros(rate // 2), wave_, np.zeros(rate // 2)]))


def test_a_sample_takes_the_speakers_in_turn(tmp_path: Path) -> None:
    """One who has many recordings counts no more than one who has few."""
    for name in (*(f"ann_{n}" for n in range(9)), "ben_0"):
        write(tmp_path / "coughs" / f"{name}.wav", tone(0.1))
    folder = Folder(tmp_path, most=2, seed=1)
    assert {each.speaker for each in folder.some("coughs")} == {"ann", "ben"}
    assert folder.some("coughs") == Folder(tmp_path, most=2, seed=1).some("coughs")


def test_a_recording_of_another_rate_is_resampled(tmp_path: Path) -> None:
    """It has the length that it had, and the words of the file beside it."""
    write(tmp_path / "digits" / "ann_3.wav", tone(1.0, 8_000), 8_000)
    (tmp_path / "digits" / "ann_3.txt").write_text("three\n")
    [recording] = Folder(tmp_path, most=1, seed=1).some("digits")
    assert len(recording.samples) == pytest.approx(2 * RATE, abs=20)
    assert recording.words == "three"


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    """The error names the folders that are looked for."""
    with pytest.raises(RecordingsError, match="coughs, throats"):
        Folder(tmp_path, most=1, seed=1)


def test_sounds_lie_at_all_places_of_the_detectors_windows() -> None:
    """As many recordings as a window has samples lie at as many places."""
    assert {_ground.place(number) for number in range(WINDOW)} == set(range(WINDOW))
    assert {_ground.place(0, 4, which) for which in range(4)} == {0, 128, 256, 384}


@pytest.mark.parametrize("condition", ["plain", "telephone"])
def test_a_sound_has_its_level_and_its_time(tmp_path: Path, condition: str) -> None:
    """The microphone hears it as loud as callers are, where it is told to begin."""
    write(tmp_path / "orders" / "ann_1.wav", tone(1.0))
    folder = Folder(tmp_path, most=1, seed=1)
    [recording] = folder.some("orders")
    heard, begins_s, ends_s = Surroundings(folder).microphone(
        recording.samples, before_s=2.0, after_s=1.0, place=256, condition=condition
    )
    assert begins_s == pytest.approx(2.5 + 256 / RATE, abs=0.02)
    assert ends_s - begins_s == pytest.approx(1.0, abs=0.03)
    assert level(heard) == pytest.approx(SPEECH_DB, abs=1)


def test_a_pause_is_put_into_the_deepest_gap() -> None:
    """The sentence gets longer by the pause, and loses nothing before it."""
    loud = 8_000 * np.sin(np.arange(RATE) / 5)
    sound = np.concatenate([loud, np.zeros(1_600), loud])
    gap = _endings.middle_gap(sound)
    assert gap is not None
    assert RATE <= gap <= RATE + 1_600
    paused = _endings.with_pause(sound, gap, 0.5)
    assert len(paused) == len(sound) + RATE // 2
    assert _endings.middle_gap(loud) is None


def test_nothing_has_no_figures() -> None:
    """A row without recordings has no share and no quantiles."""
    assert _ground.quantiles([None]) == "-"
    assert _ground.quantiles([0.5, None, 0.5]) == "p50 0.50, p95 0.50 s"
    assert _ground.percent(1, 3) == 33.3
    assert _ground.percent(0, 0) is None


@pytest.mark.proof
@pytest.mark.whisper
def test_a_folder_is_measured(tmp_path: Path) -> None:
    """The program plays a cough at four places, and leaves a row and the facts of each replay."""
    write(tmp_path / "in" / "coughs" / "ann_1.wav", cough(2, voiced=0.0))
    run = subprocess.run(
        [sys.executable, "-m", "tests.evaluation.people", str(tmp_path / "in"),
         "--json", str(tmp_path / "rows.json"), "--replays", str(tmp_path / "replays.jsonl")],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    [row] = json.loads((tmp_path / "rows.json").read_text())
    assert row["what"] == "1 coughs at 4 places"
    assert row["figure"] in (0, 25, 50, 75, 100)
    replays = [json.loads(line) for line in (tmp_path / "replays.jsonl").read_text().splitlines()]
    assert [each["place"] for each in replays] == [0, 128, 256, 384]

"""A folder of recordings: which kinds there are, who speaks, and which of them are played."""

from __future__ import annotations

import wave
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bargein.speech import resample

RATE = 16_000

Samples = NDArray[np.float64]

KINDS = {
    "coughs": "coughs",
    "throats": "throat clearing",
    "laughs": "laughs",
    "sneezes": "sneezes",
    "sighs": "sighs",
    "noses": "nose blowing",
    "orders": "sentences that interrupt, whole and with a pause put in",
    "readers": "longer speech with the speaker's own pauses",
    "digits": "single digits, each with its word in a .txt",
    "words": "short words such as 'no' and 'stop', each in a .txt",
    "noise": "noise to mix in",
    "rooms": "impulse responses of rooms",
}
"""The folders that are looked for; each may be missing, and its rows are left out then."""


class RecordingsError(Exception):
    """The recordings cannot be used as they are."""


@dataclass(frozen=True)
class Recording:
    """One file."""

    path: Path

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def speaker(self) -> str:
        """What stands in the name before its first underscore."""
        return self.name.partition("_")[0]

    @property
    def words(self) -> str:
        """What is said, as a file of the same name that ends in .txt has it; empty without one."""
        text = self.path.with_suffix(".txt")
        return text.read_text(encoding="utf-8").strip() if text.exists() else ""

    @cached_property
    def samples(self) -> Samples:
        """The sound: mono, 16 kHz, -32768 to 32767."""
        try:
            with wave.open(str(self.path)) as file:
                channels, width, rate, *_ = file.getparams()
                data = file.readframes(file.getnframes())
        except (wave.Error, EOFError) as error:
            raise RecordingsError(f"{self.path} is no WAV file of PCM: {error}") from error
        if width != 2:
            raise RecordingsError(f"{self.path} has {8 * width} bits a sample; convert it to 16")
        mono = np.frombuffer(data, "<i2").reshape(-1, channels).mean(1)
        if rate != RATE:
            pcm = resample(np.rint(mono).astype("<i2").tobytes(), rate, RATE)
            mono = np.frombuffer(pcm, "<i2").astype(np.float64)
        return mono


class Folder:
    """A folder of recordings, of which a sample is played."""

    def __init__(self, path: Path, most: int, seed: int) -> None:
        """Look what is there.

        Args:
            path: The folder.
            most: So many recordings of a kind are played.
            seed: Chooses them.

        Raises:
            RecordingsError: There is no folder of a known name in it.
        """
        self.path, self.most, self.seed = path, most, seed
        if not any((path / kind).is_dir() for kind in KINDS):
            raise RecordingsError(
                f"{path} has none of the folders {', '.join(KINDS)}; see "
                "tests/evaluation/people/README.md"
            )

    def all(self, kind: str) -> list[Recording]:
        """Return every recording of a kind, by name."""
        return [Recording(path) for path in sorted((self.path / kind).glob("*.wav"))]

    def some(
        self, kind: str, *, most: int = 0, of: Callable[[Recording], bool] = lambda _: True
    ) -> list[Recording]:
        """Return the sample of a kind: the speakers in turn, so that each counts about the same.

        Args:
            kind: Which.
            most: Other than that of the folder.
            of: Which may be taken.
        """
        order = np.random.default_rng(self.seed)
        by_speaker: dict[str, list[Recording]] = {}
        for recording in filter(of, self.all(kind)):
            by_speaker.setdefault(recording.speaker, []).append(recording)
        speakers = [by_speaker[name] for name in sorted(by_speaker)]
        for each in speakers:
            order.shuffle(each)
        order.shuffle(speakers)
        longest = max(map(len, speakers), default=0)
        turns = [each[n] for n in range(longest) for each in speakers if n < len(each)]
        return turns[: most or self.most]

"""Copies public recordings into a folder for the evaluation.

It reads checkouts of the repositories that README.md lists, and copies one half of the speakers: if
you tune on half 0, judge only by half 1. With ``--learners``, people who learn English say the
orders and read. LibriSpeech's FLAC files need the package ``soundfile``.
"""

from __future__ import annotations

import argparse
import json
import sys
import wave
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copyfile

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SOUNDS = {
    "coughs": "coughing",
    "throats": "throat-clearing",
    "laughs": "laughing",
    "sneezes": "sneezing",
    "sighs": "sighing",
    "noses": "nose-blowing",
}
SECOND_HALF_OF_DIGITS = ("george", "jackson", "lucas")

LONG_S = 5.5
"""From this length on, a learner's sentence counts as longer speech."""

Found = tuple[Path, str, str]
"""A file, its name in the folder without an ending, and its words."""


def _is_of(who: str, half: int) -> bool:
    return zlib.crc32(who.encode()) % 2 == half


def _sounds(source: Path, half: int, label: str) -> Iterator[Found]:
    for path in sorted((source / "dataset" / label).glob("*.wav")):
        if _is_of(path.stem.split("_")[0], half):
            yield path, path.stem, ""


def _orders(source: Path, half: int) -> Iterator[Found]:
    """Yield orders with the words of their slots; split by clip, because speakers are not named."""
    labels = json.loads((source / "data/label/label.json").read_text(encoding="utf-8"))
    for path in sorted((source / "data/speech/clean").glob("*.wav")):
        if _is_of(path.stem, half):
            slots = labels.get(path.name, {}).get("slots", {}).values()
            yield path, path.stem, " ".join(slot.strip() for slot in slots)


def _digits(source: Path, half: int) -> Iterator[Found]:
    for path in sorted((source / "recordings").glob("*.wav")):
        digit, who, number = path.stem.split("_")
        if (who in SECOND_HALF_OF_DIGITS) == bool(half):
            yield path, f"{who}_{digit}_{number}", DIGITS[int(digit)]


def _readers(source: Path, half: int) -> Iterator[Found]:
    for folder in sorted((source / "audio_data/librispeech_test-other").iterdir()):
        if folder.is_dir() and _is_of(folder.name, half):
            for path in sorted(folder.glob("*.flac"))[:8]:
                yield path, path.stem.replace("-", "_", 1), ""


def _learners(source: Path, half: int, *, long: bool) -> Iterator[Found]:
    """Yield sentences of three words or more; digits and spelling are left out."""
    texts = {}
    for part in ("train", "test"):
        for line in (source / part / "text").read_text(encoding="utf-8").splitlines():
            name, *words = line.lower().split()
            texts[name] = words
    for path in sorted((source / "WAVE").glob("*/*.WAV")):
        words, who = texts.get(path.stem, []), path.parent.name.removeprefix("SPEAKER")
        spells = any(len(word) == 1 and word not in "ai" for word in words)
        if len(words) < 3 or spells or sum(word in DIGITS for word in words) > 1:
            continue
        with wave.open(str(path)) as file:
            is_long = file.getnframes() >= LONG_S * file.getframerate()
        if is_long == long and _is_of(who, half):
            yield path, f"{who}_{path.stem}", " ".join(words)


def _files(source: Path, *patterns: str) -> Iterator[Found]:
    for pattern in patterns:
        for path in sorted(source.glob(pattern)):
            yield path, path.stem, ""


def _copy(path: Path, into: Path) -> None:
    if path.suffix.lower() == ".wav":
        copyfile(path, into)
        return
    import soundfile  # type: ignore[import-not-found, unused-ignore]  # for FLAC alone

    samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
    with wave.open(str(into), "wb") as file:
        file.setparams((samples.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes(samples.tobytes())


def gather(sources: Path, into: Path, half: int, *, learners: bool = False) -> dict[str, int]:
    """Copy the recordings, and return their number for each folder.

    Args:
        sources: A folder with checkouts named like their repositories.
        into: The folder to create.
        half: 0 or 1.
        learners: Whether people who learn English say the orders and read.
    """
    throat = sources / "Nonverbal-Vocalization-Dataset"
    orders, rooms = sources / "speech-to-intent-benchmark", sources / "speechbrain"
    kinds: dict[str, tuple[Path, Callable[[], Iterator[Found]]]] = {
        kind: (throat, lambda label=label: _sounds(throat, half, label))  # type: ignore[misc]
        for kind, label in SOUNDS.items()
    }
    digits, readers = sources / "free-spoken-digit-dataset", sources / "Resemblyzer"
    kinds |= {
        "orders": (orders, lambda: _orders(orders, half)),
        "digits": (digits, lambda: _digits(digits, half)),
        "readers": (readers, lambda: _readers(readers, half)),
        "noise": (orders, lambda: _files(orders, "data/noise/kitchen.wav")),
        "rooms": (rooms, lambda: _files(rooms, "tests/samples/RIRs/rir*.wav")),
    }
    if learners:
        english = sources / "speechocean762"
        kinds["orders"] = english, lambda: _learners(english, half, long=False)
        kinds["readers"] = english, lambda: _learners(english, half, long=True)
    counts = {}
    for kind, (source, find) in kinds.items():
        if not source.is_dir():
            print(f"{kind}: {source} is missing", file=sys.stderr)
            continue
        (into / kind).mkdir(parents=True, exist_ok=True)
        counts[kind] = 0
        for path, name, words in find():
            _copy(path, into / kind / f"{name}.wav")
            if words:
                (into / kind / f"{name}.txt").write_text(words + "\n", encoding="utf-8")
            counts[kind] += 1
    return counts


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation.people.gather")
    parser.add_argument("sources", type=Path, help="has checkouts of the repositories")
    parser.add_argument("into", type=Path, help="the folder of recordings to be made")
    parser.add_argument("--half", type=int, choices=(0, 1), default=0, help="(%(default)s)")
    parser.add_argument("--learners", action="store_true",
                        help="take people who learn English for orders and readers")  # fmt: skip
    given = parser.parse_args()
    for kind, count in gather(
        given.sources, given.into, given.half, learners=given.learners
    ).items():
        print(f"{kind}: {count}")


if __name__ == "__main__":
    main()

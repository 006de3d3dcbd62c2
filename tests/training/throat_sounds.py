"""Trains the ear for coughs, sneezes and laughs, on people, and tells how well it does.

    python -m tests.training.throat_sounds sounds CHECKOUTS FOLDER   # needs soundfile, 1.2 or newer
    python -m tests.training.throat_sounds train FOLDER              # writes the weights

CHECKOUTS has checkouts of the repositories of `SOURCES`, whose licences allow weights that ship to
be learnt from them: tests/training/README.md names the licences, and whom to name.  Every sound is
kept as it is some time after its onset and as an ear shows it, which may be sooner, and is heard
near the microphone and in a room.  Five networks
that each know four fifths of the speakers tell how well one does on the others, and set the
thresholds; the one that ships knows all.  What ``bargein eval`` plays is not among the recordings.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import numpy as np
import trio

from bargein import Bridge, Message
from bargein.events import UserAudio
from bargein.nodes.speech._throat_sounds import AFTER_S, HIDDEN, LOOKED_AT, features
from bargein.speech import BackchannelDetector, Hearing, SileroModel, resample

from .backchannels import RATE_HZ, WINDOW, in_a_room, over_telephone, slopes, write_network

SOURCES = {
    "cough": ("dataset", "raw/*.mp3"),
    "sneeze": ("ESC-10", "006*/*.ogg"),
    "laugh": ("EmoGator", "data/mp3/*-02-*.mp3"),
    "reader": ("Resemblyzer", "audio_data/librispeech_train-clean-100/*.flac"),
    "word": ("wake-word-benchmark", "audio/*/*"),
    "learner": ("speechocean762", "WAVE/*/*.WAV"),
}
"""For each kind, the repository and its files."""

TIMES = {"cough": 4, "sneeze": 20, "laugh": 2, "reader": 3, "word": 1, "learner": 2}
"""How often each recording is heard, each time in another way."""

MOST = {"cough": 3, "sneeze": 3, "laugh": 3, "reader": 8, "word": 1, "learner": 2}
"""How many beginnings of each time count."""

SHOWN = {"cough": 4, "sneeze": 4, "laugh": 4, "reader": 16, "word": 2, "learner": 3}
"""How many of those count that an ear shows; all of them begin a voice, so there are more."""

SPEECH = ("reader", "word", "learner")

SHARE = {"cough": 42, "sneeze": 42, "laugh": 42, "reader": 50, "word": 30, "learner": 70}
"""How many sounds of each kind a batch has; learners of English are the hardest to tell."""

NETWORKS = 3
"""How many networks have their scores averaged: one alone hears this kind or that one badly."""

WEAKEST_DB = (-46.0, -36.0)
"""How weak a recording may be heard, in dB of full scale; the latter holds for every other time of
coughs, because no voice begins with most of the weaker ones."""

BREAK_S = 0.5
"""After so much silence a sound is another one."""

FOLDS = 5

FALSE_ALARMS = {0.5: 0.013, 0.7: 0.006}
"""Which share of the beginnings of speech is taken for no speech, from which probability on."""


def speaker_of(kind: str, path: Path) -> str:
    """Return whose recording it is, as far as its name tells."""
    name = path.stem
    parts = {
        "laugh": name[:6],
        "reader": name.split("-")[0],
        "sneeze": name.split("-")[1:2],
        "learner": path.parent.name.removeprefix("SPEAKER"),
    }
    return f"{kind}:{parts.get(kind, f'{path.parent.name}{name}')}"


def is_learnt_from(path: Path) -> bool:
    """Return whether a learner of English is of half 0; half 1 is kept to judge by."""
    return zlib.crc32(path.parent.name.removeprefix("SPEAKER").encode()) % 2 == 0


# --- sounds -----------------------------------------------------------------------------------


def make_sounds(checkouts: Path, folder: Path) -> None:
    """Keep what is heard around the onsets of all recordings."""
    folder.mkdir(parents=True, exist_ok=True)
    model = SileroModel()
    for kind in SOURCES:
        kept: dict[str, list[Any]] = {"kinds": [], "who": [], "sounds": []}
        for path, sound in recordings(checkouts, kind):
            rng = random.Random(zlib.crc32(f"{kind}{path.name}".encode()))
            for time in range(TIMES[kind]):
                weakest_db = WEAKEST_DB[kind == "cough" and time % 2]
                heard = as_heard(sound, rng, weakest_db)
                voice = Voice(heard, model)
                pieces = beginnings(heard, voice)[: MOST[kind]]
                pieces += trio.run(shown, heard, voice)[: SHOWN[kind]]
                for piece in pieces:
                    kept["kinds"].append(kind)
                    kept["who"].append(speaker_of(kind, path))
                    kept["sounds"].append(piece)
        np.savez(folder / f"{kind}.npz", **{name: np.array(part) for name, part in kept.items()})
        print(kind, len(kept["kinds"]), flush=True)


def recordings(checkouts: Path, kind: str) -> Iterator[tuple[Path, np.ndarray]]:
    """Yield the path and the samples, at our rate, of each recording of a kind that can be read."""
    import soundfile  # type: ignore[import-not-found, unused-ignore]

    repository, pattern = SOURCES[kind]
    for path in sorted((checkouts / repository).glob(pattern)):
        if kind == "learner" and not is_learnt_from(path):
            continue
        try:
            samples, rate = soundfile.read(str(path), dtype="int16", always_2d=True)
        except soundfile.LibsndfileError as error:
            print(path, error)
            continue
        yield path, at_our_rate(samples.mean(1), rate)


def at_our_rate(samples: np.ndarray, rate: int) -> np.ndarray:
    """Return a recording at 16 kHz."""
    pcm = np.clip(samples, -32768, 32767).astype("<i2").tobytes()
    return np.frombuffer(resample(pcm, rate, RATE_HZ), "<i2").astype(float)


def as_heard(sound: np.ndarray, rng: random.Random, weakest_db: float = -36.0) -> np.ndarray:
    """Return the first 16 s of a recording as some microphone gives it, behind noise.

    Level, colour, noise and line are random, so that nothing is learnt of a corpus' microphones.
    """
    noise = np.random.default_rng(rng.randrange(1 << 30))
    sound = sound[rng.choice([0, rng.randint(0, 320)]) : 16 * RATE_HZ]
    sound = sound + rng.uniform(-0.6, 0.6) * np.concatenate([[0], sound[:-1]])
    if rng.random() < 0.15:
        low_pass = np.sinc(np.arange(-24, 25) * rng.uniform(0.5, 0.9)) * np.hanning(49)
        sound = np.convolve(sound, low_pass, "same")
    level = 32768 * 10 ** (rng.uniform(weakest_db, -12) / 20)
    loud = sound[abs(sound) > 0.1 * abs(sound).max(initial=1.0)]
    sound = sound * level / max(1.0, np.sqrt(np.mean(loud**2)) if len(loud) else 1.0)
    heard = np.concatenate([np.zeros(rng.randint(6400, 8000)), sound, np.zeros(RATE_HZ)])
    hiss = noise.standard_normal(len(heard))
    if rng.random() < 0.5:
        hiss = np.convolve(hiss, 0.9 ** np.arange(30), "same")
    hiss *= max(2.0, level * 10 ** (-rng.choice([60, 60, 60, 40, 30, 20, 15]) / 20)) / hiss.std()
    heard = np.clip(heard + hiss, -32768, 32767)
    return over_telephone(heard) if rng.random() < 0.25 else heard.astype("<i2")


class Voice:
    """What the voice detector says of each window of a sound; one ear can hear it again."""

    frame_samples = WINDOW

    def __init__(self, heard: np.ndarray, model: SileroModel) -> None:
        """Let the voice detector hear the sound."""
        vad = model.new_call()
        starts = range(0, len(heard) - WINDOW + 1, WINDOW)
        self.probabilities = [vad.probability(heard[at : at + WINDOW].tobytes()) for at in starts]
        self._left = iter(self.probabilities)

    def probability(self, _: bytes) -> float:
        """Return what the voice detector said of the next window."""
        return next(self._left)


def beginnings(heard: np.ndarray, voice: Voice) -> list[np.ndarray]:
    """Return what the detector gets `AFTER_S` after each onset, however soon the voice stops."""
    after = round(AFTER_S * RATE_HZ)
    return [as_shown(heard[: onset + after]) for onset, _ in stretches(voice)]


def as_shown(found: np.ndarray) -> np.ndarray:
    """Return the last samples of a sound, as many as the detector looks at."""
    piece = np.zeros(LOOKED_AT, "<i2")
    found = found[-LOOKED_AT:]
    piece[LOOKED_AT - len(found) :] = found
    return piece


class Shown:
    """A `SoundOfVoice` that keeps what the ear shows it."""

    kind: Literal["noise"] = "noise"
    after_s = AFTER_S

    def __init__(self) -> None:
        """Start without a sound."""
        self.sounds: list[np.ndarray] = []

    def probability(self, pcm: bytes) -> float:
        """Keep a sound, and find nothing in it."""
        self.sounds.append(as_shown(np.frombuffer(pcm, "<i2")))
        return 0.0


class Nobody:
    """A bridge to no call: all that an ear asks it to do does nothing."""

    def __getattr__(self, _: str) -> Callable[..., Nobody]:
        """Return a method that returns the bridge."""
        return lambda *_args, **_named: self


async def shown(heard: np.ndarray, voice: Voice) -> list[np.ndarray]:
    """Return what an ear shows the detector of each voice that begins.

    It may ask sooner than `AFTER_S`, because a voice begins softly.
    """
    detector = Shown()
    sounds = (detector, BackchannelDetector("early"), BackchannelDetector("late"))
    hearing = Hearing(cast(Bridge, Nobody()), vad=voice, sounds=sounds)
    hearing.hear(cast(Message, SimpleNamespace(event=UserAudio(pcm=heard.tobytes()), at_s=0.0)))
    return detector.sounds


def stretches(voice: Voice) -> list[tuple[int, int]]:
    """Return the samples between which a voice goes on; those soon after another one are left out.

    An onset is told at the end of its second voiced window, as by the ear.
    """
    voiced = [probability >= 0.5 for probability in voice.probabilities]
    edges = [False, *(a and b for a, b in pairwise(voiced)), False]
    found: list[tuple[int, int]] = []
    silent_since = -round(BREAK_S * RATE_HZ)
    began = 0
    for number, (before, now) in enumerate(pairwise(edges)):
        at = (number + 2) * WINDOW
        if now and not before:
            began = at if at - silent_since > BREAK_S * RATE_HZ or not found else 0
        elif before and not now:
            silent_since = at
            if began:
                found.append((began, at))
    return found


# --- training ---------------------------------------------------------------------------------


def train(folder: Path) -> None:
    """Fit the network, print how well it does, and write its weights."""
    files = [np.load(path) for path in sorted(folder.glob("*.npz"))]
    kinds, who, sounds = (
        np.concatenate([file[name] for file in files]) for name in ("kinds", "who", "sounds")
    )
    rng = np.random.default_rng(1)
    parts = np.array_split(sounds.astype(np.float32), 50)
    near = [features(part / 32768) for part in parts]
    seen = np.concatenate([*near, *(features(in_a_room(part, rng) / 32768) for part in parts)])
    kinds, who = np.tile(kinds, 2), np.tile(who, 2)
    fold = np.array([zlib.crc32(str(name).encode()) % FOLDS for name in who])
    heard = np.zeros(len(seen))
    for number in range(FOLDS):
        inner, offsets, outer, offset = fit(seen, kinds, np.nonzero(fold != number)[0])
        unheard = fold == number
        heard[unheard] = np.tanh(seen[unheard] @ inner + offsets) @ outer + offset
    # The line through both thresholds, so that the probabilities mean what they say.
    speech = heard[np.isin(kinds, SPEECH)]
    at = {p: float(np.quantile(speech, 1 - share)) for p, share in FALSE_ALARMS.items()}
    scale = float(np.log(0.7 / 0.3)) / (at[0.7] - at[0.5])
    for where, half in zip(("near", "in rooms"), np.split(np.arange(len(seen)), 2), strict=True):
        print(where)
        report((heard[half] - at[0.5]) * scale, kinds[half], who[half])
    inner, offsets, outer, offset = fit(seen, kinds, np.arange(len(seen)))
    inner_step = float(abs(inner).max() / 127)
    # What rounding takes from a neuron on average, its offset gives back.
    offsets = offsets + seen.mean(0) @ (inner - np.round(inner / inner_step) * inner_step)
    layers = (inner, offsets, outer * scale)
    steps = [float(abs(values).max() / 127) for values in layers]
    whole = [np.round(v / step).astype(np.int8) for v, step in zip(layers, steps, strict=True)]
    write(
        np.concatenate([part.ravel() for part in whole]),
        steps,
        (float(offset[0]) - at[0.5]) * scale,
    )


def fit(seen: np.ndarray, kinds: np.ndarray, learned: np.ndarray) -> list[np.ndarray]:
    """Return a network of one hidden layer whose score is the mean of `NETWORKS` smaller ones."""
    fitted = [fit_one(seen, kinds, learned, seed) for seed in range(NETWORKS)]
    inner, offsets, outer, offset = zip(*fitted, strict=True)
    return [
        np.concatenate(inner, 1),
        np.concatenate(offsets),
        np.concatenate(outer) / NETWORKS,
        np.mean(offset, 0),
    ]


def fit_one(
    seen: np.ndarray, kinds: np.ndarray, learned: np.ndarray, seed: int
) -> list[np.ndarray]:
    """Return a network of one hidden layer, fitted with Adam (Kingma and Ba, 2015).

    `SHARE` says how much of each kind a batch has.
    """
    rng, rounds, hidden = np.random.default_rng(seed), 2000, HIDDEN // NETWORKS
    mean, spread = seen[learned].mean(0), seen[learned].std(0) + 1e-6
    inputs = ((seen - mean) / spread).astype(np.float32)
    wanted = (~np.isin(kinds, SPEECH)).astype(np.float32)
    of_kind = {kind: learned[kinds[learned] == kind] for kind in SOURCES}
    shapes = ((seen.shape[1], hidden), (hidden,), (hidden,), (1,))
    parts = [rng.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5 for shape in shapes]
    parts[1][:], parts[3][:] = 0, 0
    moments = [[np.zeros_like(part), np.zeros_like(part)] for part in parts]
    for step in range(1, rounds + 1):
        batch = np.concatenate([rng.choice(of_kind[kind], count) for kind, count in SHARE.items()])
        noisy = inputs[batch] + 0.25 * rng.standard_normal((len(batch), inputs.shape[1]))
        gradients = slopes(parts, noisy.astype(np.float32), wanted[batch])
        rate = 4e-3 * (1 - step / rounds) + 1e-5
        for part, slope, moment in zip(parts, gradients, moments, strict=True):
            moment[0] += 0.1 * (slope - moment[0])
            moment[1] += 0.001 * (slope**2 - moment[1])
            scale = np.sqrt(moment[1] / (1 - 0.999**step)) + 1e-8
            part -= rate * moment[0] / (1 - 0.9**step) / scale
    inner, offsets, outer, offset = parts
    inner = inner / spread[:, None]
    return [inner, offsets - mean @ inner, outer, offset]


def report(score: np.ndarray, kinds: np.ndarray, who: np.ndarray) -> None:
    """Print which share of each kind is taken for no speech, of speakers that were not heard."""
    for kind in SOURCES:
        found, people = score[kinds == kind], len(set(who[kinds == kind]))
        shares = [f"{np.mean(found > np.log(p / (1 - p))):.3f} at {p}" for p in (0.5, 0.7, 0.9)]
        print(f"{kind}: {len(found)} sounds of {people}: {', '.join(shares)}")


ABOUT = (
    "Weights of `ThroatSoundDetector`, written by ``tests/training/throat_sounds.py``. They were "
    "learnt from recordings by K. J. Piczak (ESC-10, CC BY 3.0, clips of Freesound), F. W. Buhl "
    "(EmoGator), V. Panayotov and others (LibriSpeech, CC BY 4.0), J. Zhang and others "
    "(speechocean762, CC BY 4.0), Picovoice, and people who gave theirs to the public domain; "
    "tests/training/README.md names all."
)


def write(values: np.ndarray, steps: list[float], offset: float) -> None:
    """Write the weights."""
    write_network("throat-sound", ABOUT, values, steps, offset)


if __name__ == "__main__":
    command, *folders = sys.argv[1:]
    if command == "sounds":
        make_sounds(Path(folders[0]), Path(folders[1]))
    else:
        train(Path(folders[0]))

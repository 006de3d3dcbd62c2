"""Measures sounds and words of the caller while the agent speaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._measure import MeasurementSetup, at, percent, place, quantiles, words_of
from ._measurement_table import MeasurementRow
from ._recordings import RATE, RecordingFile, Samples
from ._replay import FRAME_S, ReplayResult, replay
from ._replay_engines import Engines
from ._sound_levels import CONDITIONS, WINDOW, frames_db, pcm, trim

BEFORE_S = 2.5
"""How long the agent speaks before a sound: longer than the echo detector needs to warm up."""

PLACES = 4
"""At how many places on the detector's windows each sound without words is played."""

TALKS_ON_S = 0.1
"""The agent talked on if it was heard for longer than this between its first hold and the cut."""


@dataclass(frozen=True)
class SoundOverAgent:
    """What a sound did to a speaking agent; times count from the sound's first 10 ms."""

    recording: RecordingFile
    replay: ReplayResult
    begins_s: float
    cut_s: float | None
    silent_s: float | None
    """When the agent was last heard before the cut."""
    talked_on_s: float
    pipecat: bool = False
    livekit: bool = False

    @property
    def rule(self) -> str:
        """The rule by which it was an interruption; empty if it was none."""
        rules = (d.rule for d in self.replay.decisions if d.decision == "interruption")
        return next(rules, "")


def sound_over_agent(
    setup: MeasurementSetup, recording: RecordingFile, sound: Samples, kind: str, **how: Any
) -> SoundOverAgent:
    """Play a sound over an agent who tells a story."""
    microphone, begins_s, _ = setup.surroundings.microphone(
        sound, before_s=BEFORE_S, after_s=2.0, **how
    )
    result = replay(setup.engines, microphone)
    cut_s = next(iter(result.cuts), None)
    until_s = result.length_s if cut_s is None else cut_s
    speech: list[float] = []
    if kind in NO_WORDS:
        speech = probabilities(setup.engines, microphone)
    found = SoundOverAgent(
        recording,
        result,
        begins_s,
        None if cut_s is None else cut_s - begins_s,
        None if cut_s is None else result.plays_until_s(cut_s) - begins_s,
        result.talked_on_s(begins_s, until_s),
        pipecat_cuts(speech),
        livekit_pauses(speech),
    )
    setup.note(
        {
            "kind": kind,
            "name": recording.name,
            "said": recording.words,
            **how,
            "cut_s": found.cut_s,
            "silent_s": found.silent_s,
            "talked_on_s": round(found.talked_on_s, 2),
            "dead_s": round(result.dead_air_s(begins_s), 2),
            "texts": result.texts,
            "no_word": kind in NO_WORDS,
            "talks_on_above_s": TALKS_ON_S,
            "begins_s": round(begins_s, 3),
            "step_s": FRAME_S,
            "loudspeaker": result.runs(begins_s),
            "microphone_db": [round(db) for db in frames_db(microphone, round(FRAME_S * RATE))],
            "decisions": [
                (round(d.at_s - begins_s, 2), d.about, d.decision, d.rule, d.values)
                for d in result.decisions
            ],
        }
    )
    return found


NO_WORDS = {"coughs": 3, "throats": 3, "laughs": 20, "sneezes": 20, "sighs": 20, "noses": 20}
"""Sounds without words, and the percentage of each that may cut the agent."""

SILENCE_GOALS_MS = {50: 240, 95: 540}
"""How long the agent may be silent after a sound that is let go, at these percentiles: as long as
it was after coughs when people's were first measured."""


def measure_no_words(setup: MeasurementSetup) -> list[MeasurementRow]:
    """Measure how often coughs, laughs and other throat sounds cut the agent."""
    rows, silences = list[MeasurementRow](), list[float]()
    for kind, goal in NO_WORDS.items():
        sample = setup.folder.some(kind)
        found = [
            sound_over_agent(
                setup, each, trim(each.samples), kind, place=place(number, PLACES, which)
            )
            for number, each in enumerate(sample)
            for which in range(PLACES)
        ]
        if not found:
            continue
        cut = [each for each in found if each.cut_s is not None]
        anywhere = {each.recording for each in cut}
        held = sum(each.replay.was_held(each.begins_s) for each in found)
        spared = [each for each in found if each.cut_s is None]
        dead = [d for each in spared if (d := each.replay.dead_air_s(each.begins_s))]
        silences += dead
        happened = (
            f"held {percent(held, len(found))} %, at their worst place "
            f"{percent(len(anywhere), len(sample))} % cut it; silence after the others "
            f"{quantiles(dead)}; Pipecat's rule cuts "
            f"{percent(sum(each.pipecat for each in found), len(found))} %, LiveKit's pauses "
            f"{percent(sum(each.livekit for each in found), len(found))} %"
        )
        what = f"{len(sample)} {kind} at {PLACES} places"
        figure = percent(len(cut), len(found))
        rows.append(MeasurementRow(kind, what, happened, figure, "%", goal, decided=_rules(cut)))
    if silences:
        what = f"{len(silences)} sounds without words that are let go: silence"
        rows += [
            MeasurementRow("no words", f"{what}, p{share}", "", at(share, silences), "ms", goal)
            for share, goal in SILENCE_GOALS_MS.items()
        ]
    return rows


def _rules(cut: Sequence[SoundOverAgent]) -> str:
    counts = Counter(each.rule or "before the voice stopped" for each in cut)
    return ", ".join(f"{rule} {count}" for rule, count in counts.most_common())


CUT_GOALS_MS = {50: 900, 95: 1200}
"""When the cut comes at the latest on a quiet line, at these percentiles."""
TALKS_ON_GOALS = {"plain": 2.0, "telephone": 2.0, "noise": 5.0, "babble": 5.0}


def measure_barge_ins(setup: MeasurementSetup) -> list[MeasurementRow]:
    """Measure how soon the agent falls silent when people interrupt, in every condition."""
    rows: list[MeasurementRow] = []
    for condition in filter(setup.surroundings.has, CONDITIONS):
        for kind in ("orders", "readers"):
            sample = setup.folder.some(kind)
            found = [
                sound_over_agent(
                    setup,
                    each,
                    trim(each.samples[: 4 * RATE] if kind == "readers" else each.samples),
                    kind,
                    condition=condition,
                    place=place(number),
                )
                for number, each in enumerate(sample)
            ]
            if found:
                rows += _barge_in_rows(kind, condition, found)
    return rows


def _barge_in_rows(
    kind: str, condition: str, found: Sequence[SoundOverAgent]
) -> Iterator[MeasurementRow]:
    what = f"{len(found)} {kind}, {condition}"
    missed = percent(sum(each.cut_s is None for each in found), len(found))
    before = [each for each in found if each.cut_s is not None and each.cut_s < 0]
    found = [each for each in found if each not in before]
    happened = f"cut {quantiles(each.cut_s for each in found)}"
    if before:
        happened += f"; {len(before)} times what is around them cut it before they began"
    yield MeasurementRow("barge-in", f"{what}: missed", happened, missed, "%", 0)
    if not found:
        return
    on = [each for each in found if each.talked_on_s > TALKS_ON_S]
    lasts = quantiles(each.talked_on_s for each in on)
    first = Counter(_why_resumed(each) for each in on)
    why = ", ".join(f"{rule} {count}" for rule, count in first.most_common())
    goal = TALKS_ON_GOALS.get(condition)
    share = percent(len(on), len(found))
    yield MeasurementRow(
        "barge-in", f"{what}: talks on over them", f"for {lasts}", share, "%", goal, why
    )
    silent = [each.silent_s for each in found]
    worst = at(95, silent)
    bound = 500 if condition == "plain" else None
    yield MeasurementRow("barge-in", f"{what}: inaudible", quantiles(silent), worst, "ms", bound)
    if condition == "plain":
        cuts = [each.cut_s for each in found]
        for share, most_ms in CUT_GOALS_MS.items():
            yield MeasurementRow(
                "barge-in", f"{what}: the cut, p{share}", "", at(share, cuts), "ms", most_ms
            )


def _why_resumed(each: SoundOverAgent) -> str:
    """Return the first decision that let the agent resume."""
    return next(
        (
            f"{d.decision} {d.rule}"
            for d in each.replay.decisions
            if d.about == "barge_in" and d.values.get("final") is False
        ),
        "?",
    )


def measure_short_words(setup: MeasurementSetup) -> list[MeasurementRow]:
    """Measure how often a single word over the agent has no effect."""
    rows = []
    for kind in ("digits", "words"):
        sample = setup.folder.some(kind, most=3 * setup.folder.most)
        found = [
            sound_over_agent(setup, each, trim(each.samples), kind, place=place(number))
            for number, each in enumerate(sample)
        ]
        right = [each for each in found if _is_right(setup, each.recording)]
        swallowed = [each for each in right if not each.replay.starts]
        by = Counter(_last_rule(each) for each in swallowed)
        if right:
            what = f"{len(right)} of {len(found)} {kind} that the recogniser has right"
            also = sum(not each.replay.starts for each in found)
            happened = f"of all {percent(also, len(found))} % swallowed"
            figure = percent(len(swallowed), len(right))
            told = ", ".join(f"{rule} {count}" for rule, count in by.most_common())
            rows.append(MeasurementRow("short words", what, happened, figure, "%", 5, told))
    return rows


def _is_right(setup: MeasurementSetup, recording: RecordingFile) -> bool:
    """Whether the recogniser understands the word in a quiet room, with silence as in a call."""
    microphone, *_ = setup.surroundings.microphone(
        trim(recording.samples), before_s=0.35, after_s=0.25
    )
    heard = words_of(setup.engines.hear(pcm(microphone)).text)
    return words_of(recording.words)[:1] == heard[:1] and len(heard) == 1


def _last_rule(each: SoundOverAgent) -> str:
    rules = [d.rule for d in each.replay.decisions if d.about == "barge_in"]
    return rules[-1] if rules else "not heard"


# --- the default rules of other frameworks -----------------------------------------------------
#
# Pipecat (VADParams: confidence 0.7, start_secs 0.2): six windows in a row interrupt for good.  Its
# loudness gate is left out, which favours neither side for sounds as loud as speech.
# LiveKit (silero plug-in: 0.5 and 0.35, 0.05 s to start, 0.55 s of silence to end, min_duration
# 0.5 s): speech pauses once a voice has lasted 0.5 s, counting short silences; if no transcript
# comes, it resumes 2.0 s after the end.


WINDOW_S = WINDOW / RATE


def probabilities(engines: Engines, microphone: Samples) -> list[float]:
    """Return the voice detector's probability of speech for each window."""
    vad, sound = engines.new_vad(), pcm(microphone)
    step = 2 * vad.frame_samples
    return [vad.probability(sound[at : at + step]) for at in range(0, len(sound) - step + 1, step)]


def pipecat_cuts(speech: Sequence[float]) -> bool:
    """Whether Pipecat's rule cuts the agent."""
    run = 0
    for probability in speech:
        run = run + 1 if probability >= 0.7 else 0
        if run >= round(0.2 / WINDOW_S):
            return True
    return False


def livekit_pauses(speech: Sequence[float]) -> bool:
    """Whether LiveKit's rule pauses the agent's speech."""
    above = below = voiced_s = 0.0
    speaking = False
    for probability in speech:
        voiced_s += WINDOW_S * speaking
        if speaking and voiced_s >= 0.5:
            return True
        if probability >= 0.5 or (speaking and probability > 0.35):
            above, below = above + WINDOW_S, 0.0
            if not speaking and above >= 0.05:
                speaking, voiced_s = True, above
        else:
            below, above = below + WINDOW_S, 0.0
            speaking = speaking and below < 0.55
    return False

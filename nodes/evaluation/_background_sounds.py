"""Measures sounds in the caller's room: another talker, babble, and the agent's own echo."""

from __future__ import annotations

from ._measure import MeasurementSetup, percent, place, quantiles, words_of
from ._measurement_table import MeasurementRow
from ._recordings import RATE, RecordingFile
from ._replay import Echo, replay
from ._sound_levels import SPEECH_DB, at_level, hiss, pcm, trim

BELOW_DB = 20


def measure_another_talker(setup: MeasurementSetup) -> list[MeasurementRow]:
    """Measure somebody who talks in the room after the caller's first turn, 20 dB softer."""
    first = setup.folder.some("orders", most=10)
    talkers = setup.folder.some("readers", most=10)
    cut = begun = asked = 0
    for number, (order, talker) in enumerate(zip(first, talkers, strict=False)):
        microphone, _, ends_s = setup.surroundings.microphone(
            trim(order.samples), before_s=1.0, after_s=14.0, place=place(number)
        )
        talk = at_level(trim(talker.samples[: 10 * RATE]), SPEECH_DB - BELOW_DB)
        since = int((ends_s + 3.0) * RATE)
        microphone[since : since + len(talk)] += talk
        result = replay(setup.engines, microphone, from_start=False)
        late_s = since / RATE
        cut += any(at_s > late_s for at_s in result.cuts)
        begun += any(at_s > late_s for at_s in result.starts)
        asked += sum(at_s > late_s for at_s in result.stops)  # each of them asks the model
        setup.note({"kind": "talker", "name": talker.name, "since_s": late_s,
                     "cuts": result.cuts, "starts": result.starts, "stops": result.stops,
                     "texts": result.texts})  # fmt: skip
    count = min(len(first), len(talkers))
    if not count:
        return []
    what = f"{count} who talk {BELOW_DB} dB below the caller"
    happened = f"{cut} cut it, {begun} began turns"
    return [
        MeasurementRow(
            "another talker", what, happened, asked / count, "", 0, "model calls for each"
        )
    ]


SOFTER_DB = (0, 6, 9)


def measure_same_caller(setup: MeasurementSetup) -> list[MeasurementRow]:
    """Measure callers who interrupt the answer to them, as loud as before or softer."""
    by: dict[str, list[RecordingFile]] = {}
    for each in setup.folder.some("readers", most=100):
        by.setdefault(each.speaker, []).append(each)
    pairs = [(each[n], each[n + 1]) for each in by.values() for n in range(0, len(each) - 1, 2)]
    rows = []
    for softer_db in SOFTER_DB:
        missed, found = 0, pairs[: setup.folder.most]
        for number, (first, second) in enumerate(found):
            microphone, _, ends_s = setup.surroundings.microphone(
                trim(first.samples[: 3 * RATE]), before_s=1.0, after_s=8.0, place=place(number)
            )
            talk = at_level(trim(second.samples[: 4 * RATE]), SPEECH_DB - softer_db)
            since = int((ends_s + 3.5) * RATE) + place(number + 1)
            microphone[since : since + len(talk)] += talk
            result = replay(setup.engines, microphone, from_start=False)
            cut = next((s for s in result.cuts if s > since / RATE), None)
            missed += cut is None
            setup.note({"kind": "same caller", "name": second.name, "softer_db": softer_db,
                         "cut_s": cut and cut - since / RATE})  # fmt: skip
        if found:
            what = f"{len(found)} callers again, {softer_db} dB softer: missed"
            rows.append(
                MeasurementRow("same caller", what, "", percent(missed, len(found)), "%", 0)
            )
    return rows


BEFORE_S, AFTER_S = 0.35, 0.2
"""What the recogniser gets around an order that it is given whole, in seconds: as much as the ear
gives it."""


def _missing(want: list[str], heard: list[str]) -> int:
    return sum(word not in heard for word in want)


def measure_in_babble(setup: MeasurementSetup) -> list[MeasurementRow]:
    """Measure orders in babble that goes on after them.

    The recogniser also gets each order whole: what it misses there, turn taking did not lose.
    """
    if setup.surroundings.babble is None:
        return []
    rows = []
    for condition in ("plain", "babble"):
        sample = setup.folder.some("orders")
        ended = split = wrong = wrong_whole = words = 0
        delays: list[float | None] = []
        for number, each in enumerate(sample):
            microphone, begins_s, ends_s = setup.surroundings.microphone(
                trim(each.samples), before_s=1.0, after_s=5.0, condition=condition,
                place=place(number),
            )  # fmt: skip
            result = replay(setup.engines, microphone, says="Yes.", from_start=False)
            stop = next((s for s in result.stops if s > ends_s - 0.05), None)
            ended += stop is not None or result.is_over  # sounds may follow its words, and no turn
            delays.append(None if stop is None else stop - ends_s)
            split += any(begins_s < s <= ends_s - 0.05 for s in result.stops)
            spoken = microphone[int((begins_s - BEFORE_S) * RATE) : int((ends_s + AFTER_S) * RATE)]
            whole = setup.engines.hear(pcm(spoken)).text
            want, heard = words_of(each.words), words_of(" ".join(result.texts))
            wrong, words = wrong + _missing(want, heard), words + len(want)
            wrong_whole += _missing(want, words_of(whole))
            setup.note({"kind": "in babble", "condition": condition, "name": each.name,
                         "ends_s": ends_s, "stops": result.stops, "texts": result.texts,
                         "want": want, "whole": whole})  # fmt: skip
        if sample:
            what = f"{len(sample)} orders, {condition}: turns that do not end"
            happened = f"{quantiles(delays)}; {split} split; {percent(wrong, words)} % of the "
            happened += f"words missing ({percent(wrong_whole, words)} % given whole)"
            figure = percent(len(sample) - ended, len(sample))
            rows.append(MeasurementRow("babble", what, happened, figure, "%", 0))
            what = f"{len(sample)} orders, {condition}: words that turn taking loses"
            lost = percent(wrong - wrong_whole, words)
            rows.append(MeasurementRow("babble", what, "", lost, "%", 0))
    return rows


ECHO_DB = (-6.0, -12.0, -20.0)


def measure_echoes(setup: MeasurementSetup) -> list[MeasurementRow]:
    """Measure an agent whose echo reaches the microphone through several rooms."""
    rows = []
    for number, response in enumerate(setup.surroundings.rooms, 1):
        cuts, holds = [], []
        for level, gain_db in enumerate(ECHO_DB):
            result = replay(
                setup.engines,
                hiss(15 * RATE),
                echo=Echo(response, gain_db),
                voice=number * len(ECHO_DB) + level,  # what passes for a caller varies with it
            )
            cuts.append(len(result.cuts))
            holds.append(sum(d.decision == "held" for d in result.decisions))
            setup.note({"kind": "echo", "room": number, "gain_db": gain_db,
                         "cuts": result.cuts, "texts": result.texts,
                         "decisions": [(d.at_s, d.decision, d.rule) for d in result.decisions],
                         })  # fmt: skip
        what = f"room {number}, echo of {', '.join(f'{db:.0f}' for db in ECHO_DB)} dB"
        happened = f"cuts in 15 s each: {cuts}; holds: {holds}"
        rows.append(MeasurementRow("echo", what, happened, sum(cuts), "", 0))
    return rows


def measure_barge_ins_over_echo(setup: MeasurementSetup) -> list[MeasurementRow]:
    """Measure people who interrupt an agent whose echo reaches the microphone."""
    rows = []
    sample = setup.folder.some("orders", most=(setup.folder.most + 1) // 2)
    for room, response in enumerate(setup.surroundings.rooms, 1):
        early, cuts = 0, list[float | None]()
        for number, each in enumerate(sample):
            microphone, begins_s, _ = setup.surroundings.microphone(
                trim(each.samples), before_s=5.0, after_s=2.0, place=place(number)
            )
            result = replay(setup.engines, microphone, echo=Echo(response, ECHO_DB[1]))
            cut_s = next((s for s in result.cuts if s > begins_s), None)
            early += any(s <= begins_s for s in result.cuts)
            cuts.append(None if cut_s is None else cut_s - begins_s)
            setup.note({"kind": "barge-in over echo", "room": room, "name": each.name,
                         "cut_s": cuts[-1], "cuts": result.cuts,
                         "texts": result.texts})  # fmt: skip
        if sample:
            what = f"{len(sample)} orders over an echo of {ECHO_DB[1]:.0f} dB, room {room}: missed"
            happened = f"cut {quantiles(cuts)}; {early} times the echo cut before"
            missed = percent(sum(cut is None for cut in cuts), len(cuts))
            rows.append(MeasurementRow("echo", what, happened, missed, "%", 0))
    return rows

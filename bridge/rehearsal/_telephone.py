"""What a rehearsal by telephone does and measures in its own way: no sample is compared there."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence

import trio

from ..audio.pcm import samples, to_pcm
from ..audio.resample import resample
from ..client import FRAME_S
from ._microphone import Microphone
from ._recording import RATE_HZ, Recording
from ._recording_measurements import CallNotes
from ._rehearsal_line import CallerInCall, RehearsalLine
from ._rehearsal_result import Check, IgnoredSound
from ._script import ScriptLine
from ._simulated_caller import RehearsalListener, SimulatedCaller

MARK_S = 0.2
"""The longest distance of two marks of a telephone: no cut is known to less."""


async def call_on(
    line: RehearsalLine,
    url: str,
    script: Sequence[tuple[ScriptLine, bytes]],
    listener: RehearsalListener,
    answer_s: float,
) -> tuple[CallerInCall, SimulatedCaller, float]:
    """Call a server on a line, follow a script, and return when the call began, among others.

    See ``make_call()``.
    """
    microphone = Microphone()
    port = int(url.rpartition(":")[2].partition("/")[0])
    async with line.call(port, microphone.next_frame) as caller:
        simulated = SimulatedCaller(caller, microphone, listener)
        start_s = trio.current_time() - FRAME_S
        listener.call_began(start_s, simulated)
        await simulated.run(script, answer_s)
    return caller, simulated, start_s


def at_our_rate(
    audio: dict[int, array[int]], line: RehearsalLine | None
) -> Mapping[int, array[int]]:
    """Return what was synthesised for each utterance, at 24 kHz."""
    if line is None:
        return audio
    return {
        number: samples(resample(to_pcm(track), line.rate_hz, RATE_HZ))
        for number, track in audio.items()
    }


def unheard_s(
    recording: Recording,
    utterance: int,
    notes: CallNotes,
    exactly: Callable[[Recording, int], float],
) -> float:
    """Return how many seconds of an utterance were not heard, where none need be the same sample.

    What is said again behind a hold counts once too often, and what marks cannot tell not at all;
    nor does anything of an utterance that was cut later, whose check is that of the cut.
    """
    if notes.is_exact:
        return exactly(recording, utterance)
    if any(each.utterance == utterance for each in notes.clears):
        return 0.0
    missing = len(recording.generated.get(utterance, ())) - len(recording.of(utterance))
    return missing / RATE_HZ if missing / RATE_HZ > MARK_S else 0.0


def all_words_were_heard(ignored: IgnoredSound) -> Check:
    """Check that a telephone played all of the agent's speech, some of it perhaps again."""
    name = f"{ignored.said.line.shown} costs no word of the agent's speech"
    ok = ignored.utterance is not None and not ignored.is_cut and ignored.lost_s == 0
    return Check(name, ok, "cut" if ignored.is_cut else f"{ignored.lost_s * 1000:.0f} ms lost")

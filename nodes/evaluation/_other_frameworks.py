"""Applies the default rules of Pipecat and LiveKit to the same voice detector's probabilities.

Pipecat (VADParams: confidence 0.7, start_secs 0.2): six windows in a row interrupt for good.  Its
loudness gate is left out, which favours neither side for sounds as loud as speech.
LiveKit (silero plug-in: 0.5 and 0.35, 0.05 s to start, 0.55 s of silence to end, min_duration
0.5 s): speech pauses once a voice has lasted 0.5 s, counting short silences; if no transcript
comes, it resumes 2.0 s after the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._recordings import RATE, Samples
from ._replay_engines import Engines
from ._sound import WINDOW, pcm

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

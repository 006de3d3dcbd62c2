"""Finds where the time between a line and its answer went.

The speech stack reports it by ``LogMetric`` events of these names:

    listening.stt_s, listening.end_of_turn_s   the work of the two models, which begin together
    answer.first_text_s, answer.first_audio_s  counted from the end of the turn
    speaking.first_piece_s                     the voice's work on a clause, up to its first audio
"""

from __future__ import annotations

from collections.abc import Sequence

from ._observer import Metric
from ._result import LatencyParts, RecordedLine

FIRST_AUDIO = "answer.first_audio_s"
"""The last metric reported before an answer is heard."""


def find_parts(
    said: RecordedLine, heard_at_s: float, start_s: float, metrics: Sequence[Metric]
) -> LatencyParts | None:
    """Return the parts of a latency, or ``None`` if the speech stack does not report them.

    Args:
        said: The line; its times are seconds of the recording.
        heard_at_s: The first audible sample of its answer, in seconds of the recording.
        start_s: When the recording began, in seconds of trio's clock.
        metrics: All numbers that the call reported, in order.
    """
    told: dict[str, float] = {}
    answer: dict[str, float] = {}
    audio_at_s = 0.0
    for metric in metrics:
        if said.from_s < metric.at_s - start_s <= heard_at_s:
            told[metric.name] = metric.value
            if metric.name == FIRST_AUDIO:
                # A copy, because the next clause may report its figures before this one is heard.
                # The last one counts, because a line that became two turns had one answer cut.
                answer, audio_at_s = dict(told), metric.at_s - start_s
    try:
        return _parts(answer, audio_at_s - said.until_s, heard_at_s - audio_at_s)
    except KeyError:
        return None


def _parts(told: dict[str, float], until_audio_s: float, playback_s: float) -> LatencyParts:
    transcription_s, end_of_turn_s = told["listening.stt_s"], told["listening.end_of_turn_s"]
    first_text_s, first_piece_s = told["answer.first_text_s"], told["speaking.first_piece_s"]
    return LatencyParts(
        silence_s=until_audio_s - told[FIRST_AUDIO] - max(transcription_s, end_of_turn_s),
        transcription_s=transcription_s,
        end_of_turn_s=end_of_turn_s,
        first_text_s=first_text_s,
        first_clause_s=told[FIRST_AUDIO] - first_text_s - first_piece_s,
        first_piece_s=first_piece_s,
        playback_s=playback_s,
    )

"""What is due with utterances: that one begins, ends, is sent next, or has lost its voice."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ._utterance import Utterance

TICK_S = 0.2
"""How soon it is looked again whether a word was heard, where that cannot be foreseen."""

FORESEEN_S = 0.5
"""How far ahead it is foreseen that no word is heard: what gets known meanwhile may change it."""

START_REPORT_S = 0.3
"""How long a player may take to report the first sound before the clock is believed."""

DONE_REPORT_S = 0.5
"""How long a reporting player may take to say that it has finished, past the expected end."""

VOICE_S = 10.0
"""How long a voice may take for the next audio of a text that is complete.  A worker process that
has to be started anew takes a few seconds."""

CLOSE_S = 1e-9
"""What sums of times are off by; nothing that is heard."""


def has_started(utterance: Utterance, now_s: float, *, reports: bool) -> bool:
    """Whether the first sound of an utterance has reached the caller.

    Args:
        utterance: The utterance, with nothing in front of it.
        now_s: The time.
        reports: Whether the player has reported anything, ever.
    """
    if utterance.is_reported:
        return True
    late_s = START_REPORT_S if reports else 0.0
    return now_s >= utterance.starts_at_s + late_s


def is_heard(utterance: Utterance, now_s: float) -> bool:
    """Whether the last sound of an utterance has reached the caller."""
    if not utterance.is_all_sent:
        return False
    if utterance.done_reported or not utterance.sent_ms:
        return True
    late_s = DONE_REPORT_S if utterance.is_reported else 0.0
    return utterance.ends_at_s + late_s <= now_s + CLOSE_S


def voice_until_s(utterance: Utterance) -> float:
    """Return when the voice of the front utterance counts as failed; infinite if it does not."""
    awaited = utterance.text_complete and not utterance.audio_complete
    if not awaited or utterance.waiting:
        return math.inf
    ends_at_s = utterance.ends_at_s if utterance.sent_ms else 0.0
    return max(utterance.waits_since_s, ends_at_s) + VOICE_S


def looks_at_s(utterance: Utterance) -> tuple[float, ...]:
    """Return the times at which an utterance may have begun or ended."""
    if utterance.starts_at_s == math.inf:
        return ()
    starts_s, ends_s = utterance.starts_at_s, utterance.ends_at_s
    begins = starts_s, starts_s + START_REPORT_S
    # The end of a voice that is not complete moves with each chunk; nothing happens at it.
    return (*begins, ends_s, ends_s + DONE_REPORT_S) if utterance.audio_complete else begins


def next_word_s(utterance: Utterance, now_s: float) -> float:
    """Return when the next word of an utterance may have been heard; infinite before it is sent."""
    if utterance.starts_at_s == math.inf:
        return math.inf
    quiet_until_s = utterance.quiet_until_s()
    return min(quiet_until_s, now_s + FORESEEN_S) if quiet_until_s > now_s else now_s + TICK_S


def next_to_send(utterances: Iterable[Utterance]) -> Utterance | None:
    """Return the utterance whose audio goes to the player next; ``None`` while that has to wait.

    Args:
        utterances: Those that are not over, in order.
    """
    first = None
    for utterance in utterances:
        first = first or utterance
        if first is not utterance and (not first.runs or first.runs != utterance.runs):
            return None
        if utterance.waiting:
            return utterance
        if not utterance.is_all_sent:
            return None  # its voice is not ready with it
    return None

"""Decides when an utterance starts, ends, is sent, or has lost its voice."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ._utterance import Utterance

TICK_S = 0.2
"""How many seconds until the next check for heard words, if the next one cannot be foreseen."""

FORESEEN_S = 0.5
"""How many seconds ahead word forecasts count; later knowledge may change them."""

START_REPORT_S = 0.3
"""How many seconds a player may take to report the first sound before the clock counts."""

DONE_REPORT_S = 0.5
"""How many seconds after the expected end a reporting player may take to report its end."""

PLAYER_S = 30.0
"""How many seconds a player may owe a report before the rest of what it plays is given up: as long
as a goodbye may take.  A hold, as for a lost line, stops this time."""

VOICE_S = 10.0
"""How many seconds a voice may take for the next audio of a complete text.  A worker process that
must be restarted takes a few seconds."""

CLOSE_S = 1e-9
"""The tolerance for rounding errors in sums of times, in seconds; nobody can hear it."""


def has_started(utterance: Utterance, now_s: float, *, reports: bool) -> bool:
    """Whether the first sound of an utterance has reached the caller.

    Args:
        utterance: The utterance, with nothing in front of it.
        now_s: The time.
        reports: Whether the player has ever reported anything.
    """
    if utterance.played.is_reported:
        return True
    if not utterance.played.may_start_unreported:
        return False
    late_s = START_REPORT_S if reports else 0.0
    return now_s >= utterance.played.starts_at_s + late_s


def is_heard(utterance: Utterance, now_s: float) -> bool:
    """Whether the last sound of an utterance has reached the caller."""
    if not utterance.is_all_sent:
        return False
    if utterance.done_reported or not utterance.played.sent_ms:
        return True
    if utterance.played.owes_report:
        return False
    late_s = DONE_REPORT_S if utterance.played.is_reported else 0.0
    return utterance.played.ends_at_s + late_s <= now_s + CLOSE_S


def voice_until_s(utterance: Utterance) -> float:
    """Return when the voice of the front utterance counts as failed; infinite if it does not."""
    awaited = utterance.text_complete and not utterance.audio_complete
    if not awaited or utterance.waiting or utterance.played.owes_report:
        return math.inf  # a voice may wait until its earlier audio is heard
    ends_at_s = utterance.played.ends_at_s if utterance.played.sent_ms else 0.0
    return max(utterance.waits_since_s, ends_at_s) + VOICE_S


def player_until_s(utterance: Utterance) -> float:
    """Return when the player of the front utterance counts as failed; infinite if it does not."""
    return (
        utterance.played.unreported_since_s() + PLAYER_S
        if utterance.played.owes_report
        else math.inf
    )


def changes_at_s(utterance: Utterance) -> tuple[float, ...]:
    """Return the times at which an utterance may have started or ended."""
    if utterance.played.starts_at_s == math.inf:
        return ()
    starts_s, ends_s = utterance.played.starts_at_s, utterance.played.ends_at_s
    begins = starts_s, starts_s + START_REPORT_S
    # While the audio is incomplete, its end moves with each chunk; nothing happens there.
    return (*begins, ends_s, ends_s + DONE_REPORT_S) if utterance.audio_complete else begins


def next_word_s(utterance: Utterance, now_s: float) -> float:
    """Return when the next word of an utterance may be heard; infinite before it is sent."""
    if utterance.played.starts_at_s == math.inf:
        return math.inf
    quiet_until_s = utterance.quiet_until_s()
    return min(quiet_until_s, now_s + FORESEEN_S) if quiet_until_s > now_s else now_s + TICK_S


def next_to_send(utterances: Iterable[Utterance]) -> Utterance | None:
    """Return the utterance whose audio is sent next; ``None`` while it must wait.

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
            return None  # its voice has not finished it
    return None

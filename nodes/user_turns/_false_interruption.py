"""Lets the agent go on after a false interruption: a sound that held it but does not interrupt."""

from __future__ import annotations

from ._sound_verdict import CLOSE_S, Sound, Verdict
from ._turn_taking_state import TurnTakingState
from ._undecided_sound import OVERRUN, UndecidedSound


def conclude(
    state: TurnTakingState, undecided: UndecidedSound, sound: Sound, verdict: Verdict
) -> None:
    """Decide that a sound does not interrupt: it was nothing, or its words are kept for later."""
    answer_s = undecided.voice.since_s + state.settings.answer_within_s
    is_acknowledgement = verdict.decision == "acknowledgement" and not sound.is_voiced
    if is_acknowledgement and state.now_s < answer_s - CLOSE_S:
        if not undecided.let_go:
            let_go(state, undecided, verdict)
        state.ask_by(answer_s)  # if the agent is about to fall silent, it is an answer
        return
    if verdict.decision in ("acknowledgement", "echo", "noise") or not sound.text:
        drop(state, undecided, verdict)
        return
    state.decide("barge_in", "kept", verdict.rule, verdict.values, sound.text)
    state.keep(undecided, verdict.rule, until_idle=True)


def let_go(state: TurnTakingState, undecided: UndecidedSound, verdict: Verdict) -> None:
    """Let the agent go on for now; the sound may still become an interruption."""
    if undecided.let_agent_resume(verdict.decision):
        state.decide("barge_in", verdict.decision, verdict.rule, {**verdict.values, "final": False})
    state.release(undecided)


def drop(state: TurnTakingState, undecided: UndecidedSound, verdict: Verdict) -> None:
    """Decide that a sound was nothing."""
    decision = verdict.decision
    if decision not in ("acknowledgement", "echo"):
        decision = "noise"  # without words, and over
    state.decide(
        "barge_in", decision, verdict.rule or "words", verdict.values, undecided.transcript.text
    )
    if decision == "noise":
        state.note_noise()
    failure = undecided.transcript.failure
    may_be_words = not undecided.transcript.text and failure.reason != "no_words"
    if may_be_words and undecided.blocked != OVERRUN:  # that was told when its turn was ended
        state.publish(failure)
    state.drop(undecided)

"""Decides what a sound is: a turn, an interruption, nothing, or words to keep for later."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ._barge_in import HoldThenDecide
from ._false_interruption import conclude, drop, let_go
from ._settings import TurnSettings
from ._sound_verdict import CLOSE_S, Sound, Verdict
from ._turn_start import StartOnVoice
from ._turn_taking_state import TurnTakingState
from ._undecided_sound import OVERRUN, UndecidedSound

SERIES_HOLDS_S = 2.0
"""How long sounds that follow each other may hold the agent before voice alone no longer does, in
seconds: no sentence takes that long to show words or to last."""

SERIES_TIMEOUTS = 3
"""How many timeouts of a sound they may hold it for, if that is longer: one sound does not use up
the time of a series."""

SOONEST_S = 0.005
"""In how many seconds a strategy is asked again at the earliest: one that asks for "now" for ever
must not keep the processor busy."""


def decide_on_sound(state: TurnTakingState, undecided: UndecidedSound) -> None:
    """Decide what can be decided about a sound now."""
    if not undecided.agent_was_busy and not state.view.is_idle:
        undecided.note_agent("")
    _bound_voice(state, undecided)
    _mute(state, undecided)
    sound = _sound(state, undecided)
    if undecided.blocked:
        _decide_blocked(state, undecided, sound)
    elif state.view.is_idle:
        _decide_start(state, undecided, sound)
    else:
        _decide_barge_in(state, undecided, sound)
    if state.undecided is undecided and not undecided.voice.is_on:
        # At the latest then nothing more is known of it; what waits for longer says until when.
        known_at_s = undecided.voice.sign_s + state.settings.words_within_s
        if known_at_s > state.now_s + CLOSE_S:
            state.ask_by(known_at_s)
    if state.undecided is undecided:
        state.said_around(undecided)  # the agent may fall silent before the words are known


def _sound(state: TurnTakingState, undecided: UndecidedSound) -> Sound:
    voice, now_s = undecided.voice, state.now_s
    waited_s = now_s - voice.sign_s
    no_more = not voice.is_on and waited_s >= state.settings.words_within_s - CLOSE_S
    heard = undecided.transcript
    words_known = no_more or (heard.fresh and heard.is_known)
    # Our own strategy compares words with what the agent says, and nothing else.
    asks = heard.segments or type(state.settings.barge_in) is not HoldThenDecide
    return Sound(
        now_s=now_s,
        voiced_s=voice.voiced_s(now_s),
        voiced_before_s=voice.before_s,
        is_voiced=voice.is_on,
        silent_s=voice.silent_s(now_s),
        held_s=undecided.held_s(now_s),
        hint=undecided.hint,
        hint_is_old=undecided.hinted_s < voice.began_s,
        text=heard.text,
        confidence=heard.confidence if heard.segments else None,
        unhinted_confidence=heard.unhinted_confidence if heard.segments else None,
        words_known=words_known,
        since_noise_s=voice.began_s - state.noise_s,
        since_turn_s=state.since_turn_s(voice),
        words_tentative=bool(heard.segments) and not words_known and heard.is_tentative,
        words_are_old=heard.is_old and not words_known,
        waited_s=waited_s,
        agent=state.view,
        saying=state.said_around(undecided) if asks else undecided.saying,
    )


def _bound_voice(state: TurnTakingState, undecided: UndecidedSound) -> None:
    """Count a voice that never stops as stopped."""
    voice, settings = undecided.voice, state.settings
    if not voice.is_on:
        return
    limits_s = [] if settings.longest_turn_s is None else [voice.began_s + settings.longest_turn_s]
    if undecided.transcript.fresh and undecided.transcript.is_known:
        limits_s.append(voice.sign_s + settings.voice_lost_s)
    at_s = min(limits_s, default=math.inf)
    if state.now_s >= at_s - CLOSE_S:
        voice.lose(state.now_s)
    else:
        state.ask_by(at_s)


# --- while nothing interrupts -----------------------------------------------------------------


def blocking_rule(state: TurnTakingState) -> str:
    """Return the rule that keeps the caller's voice from interrupting now; empty for none."""
    view, mute = state.view, state.settings.mute
    if view.is_idle:
        return ""
    if "first_message" in mute and view.first_message:
        return "mute first_message"
    if "tool" in mute and view.state == "tool":
        return "mute tool"
    return "interruptible" if view.is_audible and not view.may_be_cut else ""


def _mute(state: TurnTakingState, undecided: UndecidedSound) -> None:
    """Find out whether the sound may interrupt; words from a time when it must not are kept."""
    rule = blocking_rule(state)
    is_now = undecided.voice.is_on or not undecided.voice.was_heard
    if rule and is_now and undecided.blocked not in (rule, OVERRUN):
        state.decide("barge_in", "muted", rule, {"state": state.view.state})
        undecided.block(rule)
        state.release(undecided)
    elif undecided.blocked == OVERRUN:
        if state.view.is_idle and undecided.transcript.text:
            undecided.block("")
    elif (
        undecided.blocked
        and not rule
        and (state.view.is_idle or undecided.voice.is_on or undecided.blocked == "interruptible")
    ):
        undecided.block("")


def _decide_blocked(state: TurnTakingState, undecided: UndecidedSound, sound: Sound) -> None:
    if not sound.is_over:
        return
    verdict = _judge(state, sound)
    if verdict.decision in ("acknowledgement", "echo", "noise") or not sound.text:
        drop(state, undecided, verdict)
        return
    state.decide("barge_in", "kept", undecided.blocked, verdict.values, sound.text)
    state.keep(undecided, undecided.blocked, until_idle=undecided.blocked != "interruptible")


# --- while the agent is idle ------------------------------------------------------------------


def _decide_start(state: TurnTakingState, undecided: UndecidedSound, sound: Sound) -> None:
    if sound.is_over and undecided.agent_was_busy and not _is_answer(state, undecided, sound):
        return
    if sound.text and sound.is_over:
        _start_or_ignore(state, undecided, sound)
    elif sound.is_voiced or not undecided.agent_was_busy:
        _ask_start(state, undecided, sound)


def _is_answer(state: TurnTakingState, undecided: UndecidedSound, sound: Sound) -> bool:
    """Whether words that began while the agent was busy are an answer; if not, they are dropped."""
    verdict = _judge(state, sound)
    if verdict.decision == "echo" or not sound.text:
        drop(state, undecided, verdict)
        return False
    late_s = state.silent_at_s - undecided.voice.since_s
    if verdict.decision == "acknowledgement" and late_s > state.settings.answer_within_s:
        drop(state, undecided, verdict)
        return False
    return True


def _ask_start(state: TurnTakingState, undecided: UndecidedSound, sound: Sound) -> None:
    strategy, settings = state.settings.start, state.settings
    unlike = any(sound.seems(kind, settings.hint_above) for kind in ("noise", "echo"))
    if unlike and undecided.agent_was_busy and not sound.text:
        return  # its words will tell
    begins = state.ask(
        "start", lambda: strategy.begins(sound), lambda: StartOnVoice().begins(sound)
    )
    if begins:
        _start(state, undecided, sound, type(strategy).__name__)
        return
    if sound.is_over and not sound.text:
        drop(state, undecided, _judge(state, sound))
        return
    after_s = state.ask("start", lambda: strategy.ask_after_s, lambda: None)
    if sound.is_voiced and after_s is not None and after_s > sound.voiced_s:
        state.ask_by(undecided.voice.began_s + after_s)


def _start_or_ignore(state: TurnTakingState, undecided: UndecidedSound, sound: Sound) -> None:
    strategy = state.settings.start
    ignores: Callable[[Sound], bool] = getattr(strategy, "ignores", lambda sound: False)
    has_key = state.key_is_down or undecided.forced_s is not None
    if has_key or not state.ask("start", lambda: ignores(sound), lambda: False):
        _start(state, undecided, sound, "words")
        return
    values = {"voiced_s": round(sound.voiced_s, 3)}
    state.decide("start", "ignored", type(strategy).__name__, values, sound.text)
    state.drop(undecided)


def _start(state: TurnTakingState, undecided: UndecidedSound, sound: Sound, rule: str) -> None:
    values = {"voiced_s": round(sound.voiced_s, 3), "overlapped": undecided.agent_was_busy}
    state.decide("start", "turn", rule, values, sound.text)
    state.start_turn(undecided)


# --- while the agent speaks or works ----------------------------------------------------------


def _decide_barge_in(state: TurnTakingState, undecided: UndecidedSound, sound: Sound) -> None:
    verdict = _judge(state, sound)
    if verdict.decision == "acknowledgement" and verdict.final and state.view.awaits_caller:
        verdict = Verdict("interruption", "awaits_caller", {"state": state.view.state})
    if verdict.decision == "interruption":
        state.decide("barge_in", "interruption", verdict.rule, verdict.values, sound.text)
        state.start_turn(undecided)
    elif not _awaits_more(verdict) and (sound.is_over or verdict.final):
        conclude(state, undecided, sound, verdict)
    else:
        _hold_or_release(state, undecided, sound, verdict)
        state.ask_by(state.now_s + max(verdict.ask_in_s, SOONEST_S))


def _awaits_more(verdict: Verdict) -> bool:
    """Whether a strategy waits for more of a sound even though its words so far are known."""
    return verdict.decision == "undecided" and verdict.ask_in_s < math.inf


def _hold_or_release(
    state: TurnTakingState, undecided: UndecidedSound, sound: Sound, verdict: Verdict
) -> None:
    held_s, limit_s = state.held_before_s(undecided), _series_holds_s(state.settings)
    if verdict.decision != "undecided":
        let_go(state, undecided, verdict)
    elif held_s >= limit_s:
        state.continue_series()
        series = {"held_s": round(held_s, 3), "series_holds_s": limit_s}
        let_go(state, undecided, Verdict("unclear", "series_holds_s", series, final=False))
    elif sound.is_voiced and state.view.is_audible and not undecided.let_go:
        if undecided.held_at_s is None:
            values = {"state": state.view.state}
            state.decide("barge_in", "held", "voice", values)
        state.hold(undecided)


def _series_holds_s(settings: TurnSettings) -> float:
    timeout_s = max(settings.false_interruption_timeout_s, settings.speech_timeout_s)
    return max(SERIES_HOLDS_S, SERIES_TIMEOUTS * timeout_s)


def _judge(state: TurnTakingState, sound: Sound) -> Verdict:
    settings = state.settings
    return state.ask(
        "barge_in",
        partial(settings.barge_in.judge, sound, settings),
        lambda: HoldThenDecide().judge(sound, settings),
    )

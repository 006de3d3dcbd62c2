"""Turn taking of a call: passes facts to the core and carries out its decisions."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

import trio

from bargein.bridge.events import (
    AgentStartedSpeaking,
    AgentStoppedSpeaking,
    CustomReceived,
    DTMFInput,
    StateChanged,
    TalkKeyChanged,
    TurnDecided,
    TurnScored,
    UserAudio,
    UserStartedSpeaking,
    UserTranscriptionReceived,
    VoiceHint,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.routes import Message
from bargein.routes.logs import get_logger

from ._nudges import Nudges
from ._settings import TurnSettings
from ._settings_overlays import ChangeTurns, Overlay, SettingsInForce
from ._sound_verdict import AgentView, LiveView
from ._turn_taking_core import Input, MicrophoneLost, TalkKey, TimePassed, TurnCore
from ._turn_taking_state import Act, HoldSpeech, PublishEvent, ReleaseSpeech, ReportFailure

if TYPE_CHECKING:
    from bargein.bridge import Call

log = get_logger()

HOLD_REASON = "barge_in"
"""The reason for holding the agent's speech, as in ``AgentSpeechHeld``."""


class TurnTaking:
    """Decides when the caller's turns begin and end, and what interrupts the agent.

    One instance serves all calls; what it learns about a caller stays within the call.
    """

    def __init__(self, settings: TurnSettings | None = None, *overlays: Overlay) -> None:
        """Choose the settings.

        Args:
            settings: The settings that apply unless an overlay changes them; ``None`` for the
                defaults.
            overlays: Made by ``when()``; if several apply, the last one counts.

        Raises:
            TypeError: `settings` or an overlay has another type.
        """
        if settings is not None and not isinstance(settings, TurnSettings):
            raise TypeError(f"TurnTaking(settings=) is TurnSettings or None, not {settings!r}")
        for overlay in overlays:
            if not isinstance(overlay, Overlay):
                raise TypeError(f"TurnTaking() takes overlays made by when(), not {overlay!r}")
        self._settings = settings or TurnSettings()
        self._overlays = overlays

    def attach(self, call: Call) -> None:
        """Start turn taking in a call: make the caller's turns from the events of its ears.

        Args:
            call: A call, with or without audio, that has no other turn taker.

        Raises:
            ValueError: The call already has a turn taker.
        """
        _CallTurnTaking(call, SettingsInForce(self._settings, self._overlays))


class _CallTurnTaking:
    """Turn taking of one call."""

    def __init__(self, call: Call, settings: SettingsInForce) -> None:
        self._settings = settings
        self._core = TurnCore()
        self._nudges = Nudges()
        self._waiting: deque[Input] = deque()
        self._busy = False
        self._first_sound_s = math.inf
        self._first_message_over = False
        self._last_frame_s = self._key_down_s = -math.inf
        bridge = self._bridge = call.bridge(name="turns", is_agent=False)
        self._agent_status = bridge.agent_status
        bridge.on([VoiceStarted, VoiceStopped, VoiceHint, VoiceWords, TurnScored]).map(self._heard)
        bridge.on(TalkKeyChanged).map(self._talk_key)
        bridge.on(UserAudio).map(self._frame)
        bridge.on([StateChanged, AgentStartedSpeaking, AgentStoppedSpeaking]).map(self._agent)
        bridge.on(ChangeTurns).map(self._change)
        by_hand = [UserStartedSpeaking, UserTranscriptionReceived, DTMFInput, CustomReceived]
        bridge.on(by_hand).map(self._user)
        self._handle(TimePassed())

    # --- facts ---------------------------------------------------------------------------------

    def _heard(self, message: Message) -> None:
        self._handle(message.event)

    def _talk_key(self, message: Message) -> None:
        self._key_down_s = message.at_s
        self._handle(TalkKey(message.event.down))

    def _frame(self, message: Message) -> None:
        self._last_frame_s = message.at_s

    def _agent(self, message: Message) -> None:
        if isinstance(message.event, AgentStartedSpeaking):
            self._first_sound_s = min(self._first_sound_s, message.at_s)
        elif isinstance(message.event, AgentStoppedSpeaking):
            self._first_message_over = True
        self._handle(TimePassed())

    def _user(self, message: Message) -> None:
        self._nudges.user_is_there()
        self._handle(TimePassed())

    def _change(self, message: Message) -> None:
        self._settings.change(message.event.overlay)
        log.info("turns_changed", names=sorted(message.event.overlay.changes))
        self._handle(TimePassed())

    def _on_timer(self) -> None:
        if trio.current_time() >= self._lost_at_s():
            log.info("microphone_lost", call_id=self._bridge.call_id)
            self._handle(MicrophoneLost())
        else:
            self._handle(TimePassed())

    # --- decisions -----------------------------------------------------------------------------

    def _handle(self, fact: Input) -> None:
        """Decide and act; facts that this causes in the same step are handled afterwards."""
        self._waiting.append(fact)
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting:
                self._decide(self._waiting.popleft())
        finally:
            self._busy = False
            self._wait()

    def _decide(self, fact: Input) -> None:
        now_s, view = trio.current_time(), self._view()
        settings = self._settings.at(view) if self._settings.overlays else self._settings.base
        acts = self._core.decide(fact, now_s, view, settings)
        for act in acts:
            self._do(act)
        # Nudges and log lines come last, so that no barge-in waits for them.
        user_speaks = not self._core.is_quiet
        due = self._nudges.due(now_s, view, settings, user_speaks=user_speaks)
        nudges = [PublishEvent(event) for event in due]
        for act in nudges:
            self._do(act)
        for act in (*acts, *nudges):
            if isinstance(act, PublishEvent) and isinstance(act.event, TurnDecided):
                _log_decision(act.event, act.words)

    def _do(self, act: Act) -> None:
        match act:
            case HoldSpeech():
                self._bridge.hold_speech(HOLD_REASON)
            case ReleaseSpeech():
                self._bridge.release_speech(HOLD_REASON)
            case ReportFailure(error=error):
                self._bridge.report_error(error)
            case PublishEvent(event=event):
                # The caller's actions are not the output of a run, so no interruption may drop
                # them.
                self._bridge.publish_detached(event)

    def _wait(self) -> None:
        at_s = min(self._core.ask_by_s, self._nudges.ask_by_s, self._lost_at_s())
        self._bridge.call_at(at_s, self._on_timer)

    # --- the microphone ------------------------------------------------------------------------

    def _lost_at_s(self) -> float:
        """When a continuing voice, or a pressed key, counts as lost without audio."""
        waits = self._core.is_voiced or self._core.key_is_down
        if math.isinf(self._last_frame_s) or not waits:
            return math.inf
        settings = self._settings
        now = settings.at(self._view()) if settings.overlays else settings.base
        since_s = max(self._last_frame_s, self._key_down_s if self._core.key_is_down else -math.inf)
        return since_s + now.microphone_lost_s

    # --- the agent -----------------------------------------------------------------------------

    def _view(self) -> AgentView:
        return LiveView(
            self._agent_status, self._first_sound_s, is_first=not self._first_message_over
        )


def _log_decision(decided: TurnDecided, words: str) -> None:
    log.info(
        "turn_decided",
        about=decided.about,
        decision=decided.decision,
        rule=decided.rule,
        values=decided.values,
        **({"pii_words": words} if words else {}),
    )

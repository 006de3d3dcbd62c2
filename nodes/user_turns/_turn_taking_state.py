"""All that turn taking knows at one moment, and what it has decided in this step."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import structlog

from bargein.bridge.events import TurnDecided, UserStartedSpeaking, VoiceSettled, VoiceWords
from bargein.bridge.text_validation import is_blank
from bargein.routes import Event
from bargein.routes.containment import as_error

from ._agent_view import AgentView
from ._settings import TurnSettings
from ._transcript_merge import is_old_news, rest_of
from ._turn_actions import Act, Failed, Hold, Publish, Release, Values
from ._undecided_sound import UndecidedSound
from ._user_turn import UserTurn
from ._voice_timing import Voice

log = structlog.get_logger()

T = TypeVar("T")

PAUSES_KEPT = 16
"""How many silences of a caller an endpointing strategy is shown."""

CUT_OFF_S = 1.0
"""Who interrupts an answer this soon after their own last word was not done: so little of it was
heard that it cannot be what they object to."""

PAUSE_AFTER_END_S = 2.0
"""A caller who goes on this soon after the end of a turn, and before the agent says anything, had
not ended it."""


@dataclass(slots=True)
class TurnTakingState:
    """What is known, and what is to be done."""

    settings: TurnSettings = field(default_factory=TurnSettings)
    view: AgentView = field(default_factory=AgentView)
    now_s: float = 0.0
    undecided: UndecidedSound | None = None
    turn: UserTurn | None = None
    kept: list[str] = field(default_factory=list)
    """What was said when it must not interrupt."""
    kept_rule: str = ""
    """Why it must not."""
    kept_until_idle: bool = False
    """Whether it has to wait until the agent is done, not only until it may be cut."""
    silent_at_s: float = -math.inf
    """When the agent fell silent; infinite while it speaks or works."""
    noise_s: float = -math.inf
    """When a sound was last found to be a noise."""
    ended_at_s: float = -math.inf
    """When the last sound or turn was decided."""
    last_silence_s: float = -math.inf
    """When the voice of the last turn stopped; infinitely long ago if it was ended by force."""
    last_text: str = ""
    """Its words, discarded or not."""
    unfinal: dict[int, str] = field(default_factory=dict)
    """Words that were told though they were not final, by segment."""
    stray_stop_s: float = -math.inf
    """When a stop came without a start."""
    owes_stop: bool = False
    """Whether a voice went on when it was decided: its stop is still to come."""
    key_is_down: bool = False
    """Whether the key is down that the caller talks by."""
    pauses_s: deque[float] = field(default_factory=lambda: deque(maxlen=PAUSES_KEPT))
    """The silences of this caller that were no end."""
    look_at_s: float = math.inf
    """When to look again though nothing happens."""
    acts: list[Act] = field(default_factory=list)
    """What is to be done in this step, in order."""

    def begin_step(self, now_s: float, view: AgentView, settings: TurnSettings) -> None:
        """Begin a step at a time, with the agent and the settings of that time."""
        self.now_s, self.view, self.settings, self.acts = now_s, view, settings, []
        if not view.is_idle:
            self.silent_at_s = math.inf
        elif math.isinf(self.silent_at_s):
            self.silent_at_s = now_s

    def forget_times(self) -> None:
        """Forget the times that mattered, before they are found anew."""
        self.look_at_s = math.inf

    def look_at(self, at_s: float) -> None:
        """Have this looked at again at a time, at the latest."""
        self.look_at_s = min(self.look_at_s, at_s)

    def publish(self, event: Event) -> None:
        """Have an event published."""
        self.acts.append(Publish(event))

    def decide(
        self,
        about: Literal["start", "end", "barge_in", "nudge"],
        decision: str,
        rule: str,
        values: Values,
        words: str = "",
    ) -> None:
        """Have a decision told."""
        event = TurnDecided(about=about, decision=decision, rule=rule, values=dict(values))
        self.acts.append(Publish(event, words))

    def note_noise(self) -> None:
        """Record that the sound was a noise."""
        self.noise_s = self.now_s

    def hold(self, undecided: UndecidedSound) -> None:
        """Hold the agent's speech, if it is not held yet."""
        if undecided.hold_agent(self.now_s):
            self.acts.append(Hold())

    def release(self, undecided: UndecidedSound) -> None:
        """Release the agent's speech, if it is held."""
        if undecided.release_agent():
            self.acts.append(Release())

    # --- the sound ------------------------------------------------------------------------------

    def open_sound(self, voice: Voice) -> UndecidedSound:
        """Begin to follow a sound that is no turn yet."""
        self.undecided = UndecidedSound(voice)
        return self.undecided

    def overrun(self, voice: Voice, rule: str) -> None:
        """Follow a voice that goes on after its turn was ended by force; a rule blocks it."""
        self.undecided = UndecidedSound(voice, blocked=rule)
        self.last_silence_s = -math.inf

    def start_voice(self) -> float:
        """Record the start of a voice; return when a stop came that had none, long ago if none."""
        stray_s, self.stray_stop_s = self.stray_stop_s, -math.inf
        self.unfinal, self.owes_stop = {}, False
        return stray_s

    def move_key(self, *, down: bool) -> None:
        """Record that the key that the caller talks by was pressed or released."""
        self.key_is_down = down

    def stop_voice(self) -> None:
        """Record the stop of a voice that nothing follows: it was owed, or has no start yet."""
        if not self.owes_stop:
            self.stray_stop_s = self.now_s
        self.owes_stop = False

    def note_stray_stop(self) -> None:
        """Record a stop that came without its start."""
        self.stray_stop_s = self.now_s

    def new_words(self, words: VoiceWords, *, is_late: bool) -> str:
        """Return what of some words was not told already, before they were final.

        Args:
            words: The words.
            is_late: Whether the sound that they are of is decided.
        """
        content = "" if is_blank(words.content) else words.content.strip()
        told = self.unfinal.get(words.segment, "")
        if told:
            if words.final:
                del self.unfinal[words.segment]
            return rest_of(content, told)
        # An interim transcript that comes after its turn brings nothing new.
        is_old = is_late and not words.final and is_old_news(content, self.last_text)
        return "" if is_old else content

    # --- the turn -------------------------------------------------------------------------------

    def add_pause(self, pause_s: float) -> None:
        """Record a silence of this caller that was no end."""
        self.pauses_s.append(pause_s)

    def said_around(self, undecided: UndecidedSound) -> str:
        """Return what the agent said around a sound; kept, as it may have fallen silent since."""
        if not self.view.is_idle:
            undecided.note_agent(self.view.saying)
        return undecided.saying

    def begin_turn(self, undecided: UndecidedSound) -> None:
        """Make a sound a turn: from now on the agent is cut."""
        pause_s = undecided.voice.began_s - self.last_silence_s
        goes_on = 0 < pause_s <= PAUSE_AFTER_END_S
        if goes_on and pause_s > CUT_OFF_S and self.said_around(undecided):
            goes_on = False
        if goes_on:
            self.pauses_s.append(pause_s)
        before = self.take_kept()
        self.undecided = None
        self.turn = UserTurn(
            self.now_s,
            undecided.voice,
            undecided.transcript,
            before,
            undecided.score,
            undecided.is_over,
            interrupted=not self.view.is_idle,
            forced_s=undecided.forced_s,
        )
        if goes_on:
            self.turn.pauses_s.append(pause_s)
        self.publish(UserStartedSpeaking())
        self.release(undecided)

    def end_turn(self, turn: UserTurn, text: str) -> None:
        """End a turn whose words were told; empty where nobody understood any."""
        self.turn = None
        # Who says again what nobody understood does not go on with a turn.
        self.last_silence_s = turn.voice.since_s if text else -math.inf
        segments = turn.transcript.segments
        self.unfinal = {n: part.content for n, part in segments.items() if not part.final}
        self.settle(turn.voice, text)

    def keep(self, undecided: UndecidedSound, rule: str, *, until_idle: bool) -> None:
        """Keep the words of a sound until they may be a turn."""
        self.kept.append(undecided.transcript.text)
        self.kept_rule = rule
        self.kept_until_idle = self.kept_until_idle or until_idle
        self.drop(undecided)

    def take_kept(self) -> str:
        """Return the words that were kept, and keep them no more."""
        text, self.kept = " ".join(self.kept), []
        self.kept_until_idle = False
        return text

    def drop(self, undecided: UndecidedSound) -> None:
        """End a sound that is no turn."""
        self.release(undecided)
        self.settle(undecided.voice, undecided.transcript.text)
        self.undecided = None

    def settle(self, voice: Voice, text: str) -> None:
        """Record that what was heard is decided."""
        self.owes_stop = voice.is_on or voice.owes_stop
        self.ended_at_s = self.now_s
        self.last_text = text
        self.publish(VoiceSettled())

    def ask(self, what: str, question: Callable[[], T], instead: Callable[[], T]) -> T:
        """Ask a strategy; one that fails is logged, and the default one is asked instead.

        Args:
            what: Names the strategy in the log.
            question: Asks it.
            instead: Asks the default one.
        """
        try:
            return question()
        except BaseException as caught:  # noqa: ASYNC103 - see as_error()
            error = as_error(caught)
            self.acts.append(Failed(error))
            log.exception("turn_strategy_failed", strategy=what, exc_info=error)
            return instead()

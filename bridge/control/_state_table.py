"""The states of a call in one literal table: when each applies, what verbs do, and what may follow.

``find()`` names the state, ``refusal()`` says why a verb does nothing in it, and ``check_step()``
checks a change of state.

Rules:
1. The states are exclusive: the first row that applies is the state.
2. A verb weaker than the one under way is superseded, whatever its cell says.
3. A state may follow another only if that row lists it; an illegal change is never made, and fails
   the test in which it was attempted.
4. An agent whose voice is held by anything but the verb pause is still ``speaking``: a hold is not
   a state, because the answer continues, and a turn that is only considered leaves no trace in the
   states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, get_args

from bargein.routes import BargeinError

from .._verbs import STRENGTH, VERBS, AnswerPhase, Verb
from ..events import CallState

if TYPE_CHECKING:
    from ._call_state import StateKeeper

STATES: tuple[CallState, ...] = get_args(CallState)


class Cell(NamedTuple):
    """What a verb does in a state."""

    to: CallState | None
    """The state that follows at once; ``None`` if the verb always does nothing."""
    reason: str = ""
    """Why it does nothing."""
    when: Callable[[StateKeeper], bool] = lambda _: True
    """Whether it does something; ``None`` means always."""


class StateRow(NamedTuple):
    """One state."""

    applies: Callable[[StateKeeper], object] | None
    """Whether it applies; ``None`` means only in its phase."""
    verbs: dict[Verb, Cell]
    then: tuple[CallState, ...]
    """The states that may follow, for whatever reason."""
    also: Callable[[StateKeeper], object] | None = None
    """What else must apply, if that does."""
    phase: AnswerPhase | None = None
    """It also applies while the answer being generated is in this phase."""


_IDLE = Cell(None, "nothing is running")
_PLAYS = Cell(None, "nothing is paused")
_ENDS = Cell(None, "the work is being stopped")
_OVER = Cell(None, "the call is over")

_AT_REST: dict[Verb, Cell] = {
    "pause": _IDLE,
    "resume": _PLAYS,
    "redirect": Cell("thinking"),
    "cancel": Cell("stopping", _IDLE.reason, lambda now: now.control.targets.has_leftovers),
    "background": _IDLE,
    "barge_in": Cell("idle", _IDLE.reason, lambda now: bool(now.control.targets.undelivered)),
    "emergency_stop": Cell("stopping", _IDLE.reason, lambda now: now.control.targets.has_work),
    "shutdown": Cell("stopping"),
}
_AT_TURN: dict[Verb, Cell] = {
    **_AT_REST,
    "barge_in": _AT_REST["barge_in"]._replace(to="listening"),
}
_AT_WORK: dict[Verb, Cell] = {
    "pause": Cell("pausing"),
    "resume": _PLAYS,
    "redirect": Cell("thinking"),
    "cancel": Cell("stopping"),
    "background": Cell("idle", "all of it is generated", lambda now: now.control.targets.can_move),
    "barge_in": Cell(
        "listening",
        "what is being said is not interruptible",
        lambda now: now.control.targets.can_be_cut,
    ),
    "emergency_stop": Cell("stopping"),
    "shutdown": Cell("stopping"),
}
_AT_PAUSE: dict[Verb, Cell] = {**_AT_WORK, "resume": Cell("thinking")}
_STOPPING: dict[Verb, Cell] = {
    "pause": _ENDS,
    "resume": _ENDS,
    "redirect": Cell("thinking"),
    "cancel": Cell("stopping"),
    "background": _ENDS,
    "barge_in": _ENDS,
    "emergency_stop": Cell("stopping"),
    "shutdown": Cell("stopping"),
}
_WORKS: tuple[CallState, ...] = (
    "thinking", "speaking", "tool", "waiting_permission", "waiting_input",
)  # fmt: skip
_ANY: tuple[CallState, ...] = (
    *_WORKS, "idle", "listening", "pausing", "paused", "stopping", "closed",
)  # fmt: skip
_UNPAUSED: tuple[CallState, ...] = (*_WORKS, "idle", "listening", "stopping", "closed")

_PAUSED = attrgetter("context.is_paused")

TABLE: dict[CallState, StateRow] = {
    "closed": StateRow(attrgetter("is_closed"), dict.fromkeys(VERBS, _OVER), ()),
    "pausing": StateRow(_PAUSED, _AT_PAUSE, _ANY, also=attrgetter("control.pause_waits")),
    "paused": StateRow(_PAUSED, {**_AT_PAUSE, "pause": Cell("paused")}, _ANY),
    "speaking": StateRow(
        lambda now: (
            now.answers.playout.is_audible
            or (now.context.router.async_sinks.waiting and now.control.targets.is_delivering)
        ),
        _AT_WORK,
        _ANY,
    ),
    "waiting_permission": StateRow(None, _AT_WORK, _ANY, phase="permission"),
    "waiting_input": StateRow(None, _AT_WORK, _ANY, phase="input"),
    "tool": StateRow(None, _AT_WORK, _ANY, phase="tool"),
    "thinking": StateRow(attrgetter("is_next"), _AT_WORK, _ANY, phase="thinking"),
    "stopping": StateRow(attrgetter("control.is_stopping"), _STOPPING, _UNPAUSED),
    "listening": StateRow(attrgetter("user_speaks"), _AT_TURN, _UNPAUSED),
    "idle": StateRow(lambda now: True, _AT_REST, _UNPAUSED),
}
"""The state machine; its rows are in the order in which they are tried."""


class IllegalStepError(BargeinError):
    """A change of state that is not in the table; a fault of bargein."""

    def __init__(self, state: str, to: str, verb: str = "") -> None:
        by = f" by {verb!r}" if verb else ""
        super().__init__(f"no step from state {state!r} to {to!r}{by}")
        self.state = state
        self.to = to
        self.verb = verb


illegal_steps: deque[IllegalStepError] = deque(maxlen=16)
"""The last illegal changes that calls of this process tried; the pytest plug-in fails the tests."""


def find(now: StateKeeper) -> CallState:
    """Return the state of a call."""
    phase: AnswerPhase | None = None
    for state, row in TABLE.items():
        if row.phase is not None:
            phase = phase or now.work()  # computed once, when the first row needs it
            if phase == row.phase:
                return state
        if row.applies is not None and row.applies(now) and (row.also is None or row.also(now)):
            return state
    raise AssertionError("the last row always applies")


def refusal(now: StateKeeper, verb: Verb) -> str:
    """Return why a verb would do nothing now; empty if it would do something."""
    state, way = find(now), now.control.under_way
    cell = TABLE[state].verbs[verb]
    weaker = way is not None and verb != "resume" and STRENGTH[verb] < STRENGTH[way]
    if weaker and state != "closed":
        return f"superseded_by {way}"
    return "" if cell.to is not None and cell.when(now) else cell.reason


def check_step(state: CallState, to: CallState, verb: Verb | None = None) -> None:
    """Check that one state may follow another.

    Raises:
        IllegalStepError: It may not.
    """
    if to not in TABLE[state].then:
        raise IllegalStepError(state, to, verb or "")

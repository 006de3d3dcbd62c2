"""What a verb is: where it leads from each state, what it does, and what people read about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from ..._verbs import Verb
from ...events import CallState, ControlRequested, EmergencyStop
from ...history._entries import Directive

if TYPE_CHECKING:
    from bargein.routes import Message

    from .._verb_use import Cuts, VerbTargets, VerbUse

STATES: tuple[CallState, ...] = get_args(CallState)

Settles = Literal["at_once", "when_still", "when_stopped", "when_closed"]
"""When a verb has taken effect: once all that it stopped is over, for most."""


class Cell(NamedTuple):
    """What a verb does in a state."""

    to: CallState | None
    """The state that follows at once; ``None`` if the verb always does nothing."""
    reason: str = ""
    """Why it does nothing."""
    when: Callable[[VerbTargets], bool] | None = None
    """Whether it does something; ``None`` means always."""


IDLE = Cell(None, "nothing is running")
PLAYS = Cell(None, "nothing is paused")
ENDS = Cell(None, "the work is being stopped")
OVER = Cell(None, "the call is over")


def cells(
    *,
    idle: Cell,
    listening: Cell | None = None,
    at_work: Cell,
    pausing: Cell | None = None,
    paused: Cell | None = None,
    stopping: Cell = ENDS,
) -> dict[CallState, Cell]:
    """Return the cells of a verb.

    Args:
        idle: What it does while the agent has nothing to do.
        listening: While the caller speaks; ``None`` for the same as `idle`.
        at_work: While an answer is under way.
        pausing: While a pause waits for a tool; ``None`` for the same as `at_work`.
        paused: While everything stands still; ``None`` for the same as `pausing`.
        stopping: While cancelled work ends.
    """
    pausing = pausing or at_work
    own = {
        "idle": idle,
        "listening": listening or idle,
        "pausing": pausing,
        "paused": paused or pausing,
        "stopping": stopping,
        "closed": OVER,
    }
    return {state: own.get(state, at_work) for state in STATES}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageButton:
    """What the page shows of a verb."""

    name: str = ""
    """Empty for the title of the verb."""
    busy: str
    """Its name until the server has answered."""
    did: str = ""
    """The line of the transcript once it has done something; empty for none."""
    icon: str
    """The path of an SVG of 24 by 24."""
    key: str = ""
    """Its key on the keyboard."""
    place: Verb | None = None
    """The verb whose button it takes, when that one makes no sense; ``None`` for its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbRow:
    """One verb."""

    verb: Verb
    cells: dict[CallState, Cell]
    act: Callable[[VerbUse, Message], None]
    """Lets it take effect, in the step in which it is used."""
    cuts: Cuts = "nothing"
    settles: Settles = "when_stopped"
    text: Literal["nothing", "note", "text"] = "nothing"
    """The text that it takes: an optional note for the model, or words of the caller, which are
    input even where the verb does nothing."""
    directive: Directive = ""
    to_tools: Verb | None = None
    """The verb that tools see in its place; ``None`` for itself."""
    for_callers: bool = False
    """Whether every caller may use it on its own call, without the right ``control``."""
    event: Callable[[], EmergencyStop] | None = None
    """Makes the event that uses it, if that is not ``ControlRequested``."""

    title: str = ""
    """Its name for people; empty for the verb in words."""
    does: str
    """What ``describe()`` says that it does."""
    in_background: str = ""
    """What ``describe()`` adds while something works in the background."""
    done: str
    """What the console says once it was used."""
    command: str = ""
    """Its command at the console; empty for none."""
    button: PageButton | None = None
    """``None`` for a verb that the page has not."""

    @property
    def stops(self) -> bool:
        """Whether it ends all work on the answer, so that nothing new starts until that is over."""
        return self.cuts in ("work", "everything")

    @property
    def name(self) -> str:
        return self.title or self.verb.replace("_", " ").capitalize()

    @property
    def as_tools_see(self) -> Verb:
        return self.to_tools or self.verb

    def shown(self) -> dict[str, object]:
        """Return what the page is told of it, for JSON."""
        assert self.button is not None
        name = self.button.name or self.name
        return {**asdict(self.button), "name": name, "silences": self.cuts != "nothing"}

    def request(self, text: str) -> ControlRequested | EmergencyStop:
        return self.event() if self.event else ControlRequested(verb=self.verb, text=text)

    def does_nothing(self, reason: str) -> str:
        """Return the line that says that it would do nothing."""
        return f"{self.name}: nothing would happen; {reason}."

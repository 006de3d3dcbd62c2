"""What stages and handlers get: the envelope around an event, and the facts about a cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ._events import alias_of
from ._run_outcome import Phase

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    from ._run import Run

    E_co = DefaultTypeVar("E_co", covariant=True, default=Any)
else:
    E_co = TypeVar("E_co", covariant=True)


class Message(Generic[E_co]):
    """An event, together with who published it and when.

    To a type checker, ``Message[OrderPlaced]`` carries an ``OrderPlaced``, and a plain ``Message``
    carries any event.

    Attributes:
        event: The event itself.
        source: The name of its publisher.
        id: Its number within the router, from 1.
        at_s: When it was published, in seconds of trio's clock.
        run: The run that published it, or ``None`` if no run did.
        tag: The last value given to ``carry()``; ``None`` before.
    """

    __slots__ = ("at_s", "event", "id", "run", "source", "tag")

    tag: Any

    def __init__(
        self, event: E_co, source: str = "", id: int = 0, at_s: float = 0.0, run: Run | None = None
    ) -> None:
        self.event = event
        self.source = source
        self.id = id
        self.at_s = at_s
        self.run = run
        self.tag = None

    def carry(self, tag: Any) -> None:
        """Attach a value for the layer above; routes never read it."""
        self.tag = tag

    def carry_instead(self, event: Any) -> None:
        """Replace the event, of which only a part is new to those who get it next."""
        self.event = cast("E_co", event)

    def leave_run(self) -> None:
        """Detach it from its run, which this very message cut."""
        self.run = None

    @property
    def is_stale(self) -> bool:
        """Whether a run in this message's ancestry was cut."""
        return self.run is not None and self.run.is_stale

    @property
    def alias(self) -> str:
        """The alias of the event's class."""
        return alias_of(type(self.event))

    def __repr__(self) -> str:
        return f"<Message {self.id} {self.alias} from {self.source!r} at {self.at_s:.3f} s>"


@dataclass(frozen=True, slots=True)
class Interruption:
    """The facts about a run that was cut; immutable."""

    run: int
    """The number of the run within its router."""
    route: str
    """The chain as written."""
    source: str
    """The bridge that declared the chain."""
    cause: Message | None
    """The message that cut it, or ``None`` if no message did."""
    reason: str
    """The rule that cut it, as text for people: ``interrupt_on(UserStartedSpeaking)``."""
    phase: Phase
    at_s: float
    """When it was cut, in seconds of trio's clock."""
    elapsed_s: float
    """Seconds from the run's start to the cut."""
    generated: str = ""
    """All the text that the answer had generated; set for handlers of a call's routes."""
    heard: str = ""
    """How much of it the caller heard; always a prefix."""
    tools: tuple[Any, ...] = ()
    """The tools of the answer, each with a ``name`` and an ``outcome``, which is ``None`` while the
    tool runs."""

"""The receipt that each use of a verb returns: what the verb did."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

import trio

from .._verbs import AnswerPhase, Verb
from ._running_tools import StillRunning, Work


@dataclass(frozen=True, slots=True)
class StoppedWork:
    """A tool, or an answer in the background, that an interrupt stopped."""

    id: str
    """The id of its call."""
    tool: str
    for_operator: bool = False
    """Whether it asks the operator; callers of a server do not see it."""


class Settled:
    """Whether all work that a verb stopped is over; ``await receipt.settled``.

    Cancelling the wait is safe.
    """

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def __bool__(self) -> bool:
        return self._event.is_set()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._event.wait().__await__()

    def set(self) -> None:
        """Mark it as settled; only its receipt does this."""
        self._event.set()


class Receipt:
    """What a verb did.

    Attributes:
        id: Its number within the call, from 1.
        verb: The verb.
        answer: The answer it acted on; ``None`` if none was running.
        phase: What that answer was doing.
        reason: Why it did nothing; empty if it was accepted.
        upgraded_from: The weaker verb under way that it replaced; ``None`` if there was none.
        stopped: The tools it stopped.
        still_running: The tools it did not stop, with their deadlines.
        returned: Input that waited behind the answer and will not be answered, in order.
        settled: Await it to wait until everything that the verb stopped is over; true from then
            on.
    """

    __slots__ = (
        "answer",
        "id",
        "phase",
        "reason",
        "returned",
        "settled",
        "still_running",
        "stopped",
        "upgraded_from",
        "verb",
    )  # fmt: skip

    def __init__(
        self, id: int, verb: Verb, answer: int | None, phase: AnswerPhase, reason: str = ""
    ) -> None:
        self.id = id
        self.verb: Verb = verb
        self.answer = answer
        self.phase: AnswerPhase = phase
        self.reason = reason
        self.upgraded_from: Verb | None = None
        self.stopped: tuple[StoppedWork, ...] = ()
        self.still_running: tuple[StillRunning, ...] = ()
        self.returned: tuple[str, ...] = ()
        self.settled = Settled()
        if reason:
            self.settle()

    @property
    def accepted(self) -> bool:
        """Whether it did anything."""
        return not self.reason

    def settle(self) -> None:
        """Record that everything that the verb stopped is over."""
        self.settled.set()

    def aim_at(self, answer: int | None) -> None:
        """Record the answer that it actually acted on."""
        self.answer = answer

    def supersede(self, weaker: Receipt) -> None:
        """Replace a weaker verb under way."""
        self.upgraded_from = weaker.verb
        if self.answer is None:
            self.answer = weaker.answer

    def give_back(self, inputs: Iterable[str]) -> None:
        """Record queued input that will not be answered."""
        self.returned += tuple(inputs)

    def took(self, work: Work, still: StillRunning | None) -> None:
        """Record what happened to a tool; replaces an earlier record of it."""
        self.stopped = tuple(one for one in self.stopped if one.id != work.id)
        self.still_running = tuple(one for one in self.still_running if one.id != work.id)
        if still is None:
            self.stopped += (StoppedWork(work.id, work.name, work.for_operator),)
        else:
            self.still_running += (still,)

    def __repr__(self) -> str:
        what = "accepted" if self.accepted else f"noop({self.reason})"
        if self.upgraded_from:
            what = f"upgraded({self.upgraded_from})"
        return f"<Receipt {self.id} {self.verb} of answer {self.answer} {what}>"

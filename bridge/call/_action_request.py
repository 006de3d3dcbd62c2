"""One request of an agent to the caller's line, from its publication to its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import trio

from bargein.routes import Message, Run

from .._line_abilities import Consult
from ..answers._answer import lineage
from ..events import CallActionCompleted, CallActionFailed, DTMFOutput, TransferCall

CallActionOutcome = CallActionCompleted | CallActionFailed

TRANSFER_S = 30.0
"""How many seconds a transfer may take: as long as Twilio's ``<Dial>`` rings by default."""
CONSULT_S = 180.0
"""How many seconds a transfer may take whose colleague is asked first: they answer within half a
minute, and a caller who hears music for longer than three hangs up."""
DTMF_S = 5.0
"""How many seconds a key may take: a tone lasts 0.1 to 0.5 s, and signalling adds to that."""


@dataclass(slots=True, eq=False)
class ActionRequest:
    """One request, from its publication to its answer."""

    event: TransferCall | DTMFOutput
    outcome: CallActionOutcome | None = None
    answered: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    begun: trio.Event = field(default_factory=trio.Event)
    """Set once the line is asked: its limit counts from then."""
    consult: Consult | str = ""
    """Talks to the colleague before the transfer, or what they are told; empty asks nobody."""
    was_spoken_over: bool = False
    """Whether the caller has spoken since it was announced."""
    message: Message | None = None
    """The message that requested it; ``None`` before it is queued."""
    unsettled_runs: tuple[Run, ...] = ()
    """The runs that it keeps from settling while it waits."""

    def wait(self, message: Message) -> None:
        """Queue it, and keep the runs that requested it interruptible."""
        self.message, self.unsettled_runs = message, tuple(lineage(message.run))
        for run in self.unsettled_runs:
            run.keep()

    def stop_waiting(self) -> bool:
        """Leave the queue, and return whether it should still be executed."""
        is_cut = self.message is not None and self.message.is_stale
        unsettled_runs, self.unsettled_runs = self.unsettled_runs, ()
        for run in unsettled_runs:
            run.release()
        return not is_cut

    @property
    def action(self) -> Literal["transfer", "dtmf"]:
        return "transfer" if isinstance(self.event, TransferCall) else "dtmf"

    @property
    def limit_s(self) -> float:
        if not isinstance(self.event, TransferCall):
            return DTMF_S
        return CONSULT_S if self.consult else TRANSFER_S

    @property
    def asks_again(self) -> bool:
        """Whether a caller who speaks is asked again."""
        return isinstance(self.event, TransferCall) and self.event.if_interrupted == "ask"

    def speak_over(self) -> None:
        """Record that the caller speaks; one who is to be asked again is not transferred."""
        self.was_spoken_over = True
        if self.asks_again and self.begun.is_set():
            self.scope.cancel(reason="the caller speaks")

    @property
    def words(self) -> str:
        """What the line cannot do, as text for the reason of a failure."""
        if not isinstance(self.event, TransferCall):
            return "press keys"
        return "ask a colleague before a transfer" if self.consult else "transfer calls"

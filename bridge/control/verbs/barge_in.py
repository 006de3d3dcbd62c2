"""The agent falls silent and listens, as when a caller talks over it."""

from __future__ import annotations

from bargein.routes import Message

from .._verb_use import VerbUse
from ._verb_row import IDLE, Cell, PageButton, VerbRow, cells


def _barge_in(use: VerbUse, message: Message) -> None:
    targets = use.targets
    for run in targets.heard_runs if targets.target() is not None else targets.undelivered:
        if not run.is_protected:
            run.cut(message, reason="barge_in")


ROW = VerbRow(
    verb="barge_in",
    cells=cells(
        # What is over may still wait in an async sink, to be heard; who speaks then keeps the turn.
        idle=Cell("idle", IDLE.reason, lambda now: bool(now.undelivered)),
        listening=Cell("listening", IDLE.reason, lambda now: bool(now.undelivered)),
        at_work=Cell(
            "listening", "what is being said is not interruptible", lambda now: now.can_be_cut
        ),
    ),
    act=_barge_in,
    cuts="speech",
    for_callers=True,  # talking over the agent does as much
    does="the agent falls silent and listens",
    done="silenced",
    button=PageButton(
        name="Stop speaking",
        busy="Stopping…",
        key="Esc",
        icon="M11 5 6.5 9H3v6h3.5L11 19V5Zm5 4.5 5 5m0-5-5 5",
    ),
)

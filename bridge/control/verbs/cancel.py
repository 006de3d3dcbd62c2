"""The work ends, each tool by its policy; without an answer, the work in the background."""

from __future__ import annotations

from bargein.routes import Message

from .._verb_use import VerbUse
from ._verb_row import IDLE, Cell, PageButton, VerbRow, cells


def _cancel(use: VerbUse, message: Message) -> None:
    background = use.targets.background_work()
    use.answers.cut_moving(message)
    use.return_input(use.context.floor.heard)
    use.cut(message)
    use.interrupt(*background)


ROW = VerbRow(
    verb="cancel",
    cells=cells(
        # Tools in their grace period and jobs end, too, and until then nothing new starts.
        idle=Cell("stopping", IDLE.reason, lambda now: now.has_leftovers),
        at_work=Cell("stopping"),
        stopping=Cell("stopping"),  # what was left out the first time
    ),
    act=_cancel,
    cuts="work",
    directive="ask",
    for_callers=True,
    does="the work ends",
    done="interrupted",
    command="cancel",
    button=PageButton(
        busy="Cancelling…",
        did="Cancelled.",
        key="Esc Esc",
        icon="M8 6h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2V8a2 2 0 0 1 2-2Z",
    ),
)

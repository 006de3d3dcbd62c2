"""The work ends, and then the call; nothing new is accepted any more."""

from __future__ import annotations

from bargein.routes import Message

from .._verb_use import VerbUse
from ._verb_row import Cell, VerbRow, cells


def _shut_down(use: VerbUse, message: Message) -> None:
    use.context.close()
    use.answers.cuts.end_as("shutdown")
    use.answers.cut_moving(message)
    use.return_input(use.everybody)
    use.cut(message, background=True)
    use.interrupt(*use.context.running_tools)


_CLOSES = Cell("stopping")  # in each state: the call is to end, and does so once its work is over

ROW = VerbRow(
    verb="shutdown",
    cells=cells(idle=_CLOSES, at_work=_CLOSES, stopping=_CLOSES),
    act=_shut_down,
    cuts="everything",
    settles="when_closed",
    to_tools="cancel",  # they have until its deadline
    title="Shut down",
    does="the work ends and the call is closed",
    done="the work ends",
)

"""Everything continues where a pause stopped it; the one verb that is never under way."""

from __future__ import annotations

from bargein.routes import Message

from .._verb_use import VerbUse
from ._verb_row import PLAYS, Cell, PageButton, VerbRow, cells


def _resume(use: VerbUse, message: Message) -> None:
    answer = use.targets.target()
    use.receipt.aim_at(answer.number if answer else None)
    step = answer.step if answer is not None else 0
    use.answers.memory.note_resumed(step, message.event.text.strip())
    if answer is not None:
        answer.resume("pause", message.at_s)
    use.targets.release()


ROW = VerbRow(
    verb="resume",
    cells=cells(
        idle=PLAYS,
        at_work=PLAYS,
        pausing=Cell("thinking"),  # or to what it was doing: the state is found anew
    ),
    act=_resume,
    settles="at_once",
    text="note",
    does="everything continues where it stopped",
    done="goes on",
    command="resume",
    button=PageButton(busy="Resuming…", did="Resumed.", icon="M8 5.5v13l11-6.5z", place="pause"),
)

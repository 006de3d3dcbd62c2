"""The answer continues unheard, and delivers its result later."""

from __future__ import annotations

from bargein.routes import Message

from .._verb_use import VerbUse
from ._verb_row import IDLE, Cell, PageButton, VerbRow, cells


def _move(use: VerbUse, message: Message) -> None:
    answer = use.targets.target()
    assert answer is not None  # the table says so
    works = use.targets.works(answer)
    use.answers.move_to_background(answer)
    for work in works:
        work.notify_background()
    use.targets.release()


ROW = VerbRow(
    verb="background",
    cells=cells(
        idle=IDLE,
        # The floor is free for the next input; what is said already cannot be moved.
        at_work=Cell("idle", "all of it is generated", lambda now: now.can_move),
    ),
    act=_move,
    does="the work continues unheard, and its result comes later",
    done="continues in the background",
    command="background",
    button=PageButton(
        busy="Moving…",
        did="Moved to the background.",
        icon="M12 4v9m-4-4 4 4 4-4M5 15v2.5A2.5 2.5 0 0 0 7.5 20h9a2.5 2.5 0 0 0 2.5-2.5V15",
        key="B",
    ),
)

"""Everything stands still, and nothing new starts, until ``resume`` or a verb that stops."""

from __future__ import annotations

from bargein.routes import Message

from .._verb_use import VerbUse
from ._verb_row import IDLE, Cell, PageButton, VerbRow, cells


def _pause(use: VerbUse, message: Message) -> None:
    use.targets.stand()
    answer = use.targets.target()
    if answer is not None:
        answer.stand("pause", message.at_s)
        use.answers.cuts.note_pause(answer, message)
    for work in use.targets.works(answer):
        if use.pause_tools == "cancel":
            use.interrupt(work)
        elif use.pause_tools == "detach":
            work.to_background()


ROW = VerbRow(
    verb="pause",
    cells=cells(
        idle=IDLE,
        at_work=Cell("pausing"),  # a tool goes on; without one, the state is found to be paused
        paused=Cell("paused"),
    ),
    act=_pause,
    settles="when_still",
    to_tools="cancel",  # where the app lets a pause end them
    does="speech stands still, and no further step starts",
    in_background="nothing starts in the background either",
    done="paused; /resume continues",
    command="pause",
    button=PageButton(
        name="Pause", busy="Pausing…", did="Paused.", icon="M9 5.5v13M15 5.5v13", key="P"
    ),
)

"""Everything ends, jobs too, whatever rules, conditions and grace periods say."""

from __future__ import annotations

from bargein.routes import Message

from ...events import EmergencyStop
from .._verb_use import VerbUse
from ._verb_row import IDLE, Cell, PageButton, VerbRow, cells


def _stop(use: VerbUse, message: Message) -> None:
    use.answers.cut_moving(message)
    use.return_input(use.everybody)
    for source in use.everybody:
        use.router.cut_all("emergency stop", source, message)
    use.answers.stop_all(message)
    use.interrupt(*use.context.running_tools)
    use.targets.release()


def _event() -> EmergencyStop:
    return EmergencyStop()


ROW = VerbRow(
    verb="emergency_stop",
    cells=cells(
        idle=Cell("stopping", IDLE.reason, lambda now: now.has_work),  # of agents nobody hears, too
        at_work=Cell("stopping"),
        stopping=Cell("stopping"),  # it takes the grace that a cancel has left
    ),
    act=_stop,
    cuts="everything",
    directive="ask",
    for_callers=True,
    event=_event,
    does="everything ends at once",
    done="everything stopped",
    command="stop",
    button=PageButton(
        name="Stop now",
        busy="Stopping…",
        did="Stopped.",
        icon="M8 6h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2V8a2 2 0 0 1 2-2Z",
        place="cancel",
    ),
)

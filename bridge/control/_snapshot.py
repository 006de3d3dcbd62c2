"""Takes the snapshot of a call for watchers."""

from __future__ import annotations

from ..events import PermissionRequested
from ._call_feed import Snapshot, ToolView
from ._call_state import StateKeeper
from ._questions import Questions
from ._running_tools import WorkRoom
from ._tool_permissions import Permissions


def snapshot_at(
    now_s: float,
    keeper: StateKeeper,
    work: WorkRoom,
    permissions: Permissions,
    questions: Questions,
) -> Snapshot:
    """Return what a call is doing.

    Args:
        now_s: The time, in seconds of trio's clock.
        keeper: The state, the answers and the verbs of the call.
        work: The running tools.
        permissions: The permission questions of tools.
        questions: The questions of tools to the caller.
    """
    turn = keeper.control.target()
    return Snapshot(
        state=keeper.state,
        number=keeper.number,
        since_s=keeper.since_s,
        elapsed_s=now_s - keeper.since_s,
        turn=turn.number if turn else None,
        phase=turn.seen_phase if turn else "idle",
        step=turn.step if turn else 0,
        steps=turn.steps if turn else None,
        label=turn.label if turn else "",
        step_list=tuple(step.view(now_s) for step in turn.step_list) if turn else (),
        text=turn.generated if turn else "",
        active_s=turn.active_s(now_s) if turn else 0.0,
        total_s=now_s - turn.started_at_s if turn else 0.0,
        caps=turn.caps() if turn else {},
        tools=tuple(
            ToolView(
                w.id,
                w.name,
                w.policy,
                0.0 if w.started_at_s is None else now_s - w.started_at_s,
                w.for_operator,
            )
            for w in work
        ),
        backgrounded=len(work.jobs),
        permissions=tuple(
            PermissionRequested(id=q.id, name=q.name, arguments=dict(q.arguments), by=q.by)
            for q in permissions.pending
        ),
        question=questions.open,
        listening_error=keeper.listening_error,
    )

"""Tools that run in processes of their own: commands, and Python functions in workers."""

from nodes.processes import Ladder, StopReport, stop_process

from ._command import CommandTool, command_tool
from ._errors import (
    CommandError,
    ProcessError,
    WorkerCallError,
    WorkerDiedError,
    WorkerError,
    WorkerInterruptedError,
    WorkerStartError,
)
from ._run import CommandResult, OutputLimits, run_command
from ._worker import CallReport, PythonWorker, WorkerState

__all__ = [
    "CallReport",
    "CommandError",
    "CommandResult",
    "CommandTool",
    "Ladder",
    "OutputLimits",
    "ProcessError",
    "PythonWorker",
    "StopReport",
    "WorkerCallError",
    "WorkerDiedError",
    "WorkerError",
    "WorkerInterruptedError",
    "WorkerStartError",
    "WorkerState",
    "command_tool",
    "run_command",
    "stop_process",
]

"""Tools in processes of their own: commands, and Python functions in workers."""

from bargein.nodes.processes import Ladder, StopReport, stop_process

from ._command_tool import CommandTool, command_tool
from ._errors import (
    CommandError,
    ProcessError,
    WorkerCallError,
    WorkerDiedError,
    WorkerError,
    WorkerStartError,
)
from ._python_worker import PythonWorker, WorkerCall
from ._run_command import CommandResult, OutputLimits, run_command

__all__ = [
    "CommandError",
    "CommandResult",
    "CommandTool",
    "Ladder",
    "OutputLimits",
    "ProcessError",
    "PythonWorker",
    "StopReport",
    "WorkerCall",
    "WorkerCallError",
    "WorkerDiedError",
    "WorkerError",
    "WorkerStartError",
    "command_tool",
    "run_command",
    "stop_process",
]

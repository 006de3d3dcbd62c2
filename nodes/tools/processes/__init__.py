"""Tools in processes of their own: commands, and Python functions in workers."""

from .._errors import (
    CommandError,
    ProcessError,
    WorkerCallError,
    WorkerDiedError,
    WorkerError,
    WorkerStartError,
)
from ._command_tool import CommandTool, command_tool
from ._python_worker import PythonWorker, WorkerCall
from ._run_command import CommandResult, OutputLimits, run_command

__all__ = [
    "CommandError",
    "CommandResult",
    "CommandTool",
    "OutputLimits",
    "ProcessError",
    "PythonWorker",
    "WorkerCall",
    "WorkerCallError",
    "WorkerDiedError",
    "WorkerError",
    "WorkerStartError",
    "command_tool",
    "run_command",
]

"""Errors of commands and worker processes.

ProcessError
├── CommandError         a command cannot be started
├── WorkerError          a worker process cannot do its work
│   ├── WorkerStartError     the process does not start
│   └── WorkerDiedError      the process ended in the middle of a call
└── WorkerCallError      the function in the worker raised
"""

from __future__ import annotations

from bargein.routes import BargeinError

from .._errors import RaisedInProcessError


class ProcessError(BargeinError, RuntimeError):
    """Something is wrong with a process that a tool runs in."""


class CommandError(ProcessError):
    """A command cannot be started."""


class WorkerError(ProcessError):
    """A worker process cannot do its work."""


class WorkerStartError(WorkerError):
    """A worker process does not start."""


class WorkerDiedError(WorkerError):
    """A worker process ended in the middle of a call; the effect of the call is unknown."""


class WorkerCallError(ProcessError, RaisedInProcessError):
    """The function in the worker raised.

    Attributes:
        class_name: The name of the exception's class.
        text: Its message.
        traceback_text: Its traceback, as Python prints it.
        state_lost: Whether the worker is a new process without the variables of earlier calls,
            which may be the cause.
        is_for_model: Whether it was a `ToolError`, whose text is for the model.
    """

    def __init__(
        self,
        class_name: str,
        text: str,
        traceback_text: str,
        state_lost: bool = False,
        is_for_model: bool = False,
    ) -> None:
        super().__init__(class_name, text, traceback_text, state_lost, is_for_model)
        self.is_for_model = is_for_model
        self.class_name = class_name
        self.text = text
        self.traceback_text = traceback_text
        self.state_lost = state_lost

    def __str__(self) -> str:
        said = f"{self.class_name}: {self.text}" if self.text else self.class_name
        lost = " (the worker was replaced: what earlier calls kept in its variables is lost)"
        return said + lost * self.state_lost

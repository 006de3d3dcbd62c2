"""The errors of child processes.

ChildError
├── EngineLoadError    the engine in the process cannot load
├── JobError           the engine failed at a job; the process keeps running
├── PoolClosedError    the pool is not open
└── ProcessLostError   the process died, hangs, or breaks the protocol
"""

from __future__ import annotations

from bargein.routes import BargeinError


class ChildError(BargeinError):
    """A child process did not do what it was asked."""


class EngineLoadError(ChildError):
    """The engine in a process cannot load; the message is the engine's."""


class JobError(ChildError):
    """The engine failed at a job; the message is the engine's."""


class PoolClosedError(ChildError):
    """The pool is not open, or was closed in the middle of a job."""


class ProcessLostError(ChildError):
    """A process died, hangs, or breaks its protocol.

    Attributes:
        name: The name of the process.
        problem: What is wrong with it.
        stderr: The last lines of its standard error; they may quote people.
        limit: The setting that it exceeded, such as ``"silence_s"``; empty if there was none.
    """

    def __init__(self, name: str, problem: str, stderr: str = "", limit: str = "") -> None:
        super().__init__(name, problem)
        self.name = name
        self.problem = problem
        self.stderr = stderr
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}"

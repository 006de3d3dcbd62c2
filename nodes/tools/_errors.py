"""Errors of tools.

ToolDefinitionError      a tool is declared wrongly; raised by the declaration
ToolError                a tool tells the model what went wrong
├── BadArgumentsError    a model called a tool with wrong arguments
└── CommitOverrunError   a commit section did not end by its deadline
RaisedInProcessError     a tool's function raised in a process of its own
"""

from __future__ import annotations

from bargein.routes import BargeinError, SafeText


class ToolDefinitionError(SafeText, BargeinError, TypeError):
    """A tool is declared wrongly; raised by the declaration that makes the mistake."""


class ToolError(BargeinError):
    """A tool tells the model what went wrong: its text is the result of the tool.

    Of any other exception of a tool the model, and so its vendor, gets only the class: its text may
    hold paths, keys or rows of a database.
    """


class BadArgumentsError(ToolError, ValueError):
    """A tool was called with wrong arguments; the message tells the model how to correct them."""


class CommitOverrunError(ToolError, TimeoutError):
    """A commit section did not end by its deadline; its effect is unknown."""

    def __init__(self, tool: str, deadline_s: float) -> None:
        super().__init__(tool, deadline_s)
        self.tool = tool
        self.deadline_s = deadline_s

    def __str__(self) -> str:
        return f"the commit section of {self.tool!r} was not over after {self.deadline_s} s"


class RaisedInProcessError(BargeinError):
    """A tool's function raised in a process of its own.

    Attributes:
        class_name: The name of the exception's class.
        text: Its message.
        is_for_model: Whether it was a `ToolError`, whose text is for the model.
    """

    class_name: str
    text: str
    is_for_model: bool

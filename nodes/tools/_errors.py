"""Errors of tools.

ToolDefinitionError      a tool is declared wrongly; raised by the declaration
BadArgumentsError        a model called a tool with wrong arguments
CommitOverrunError       a commit section did not end by its deadline
"""

from __future__ import annotations

from bargein.routes import BargeinError, SafeText


class ToolDefinitionError(SafeText, BargeinError, TypeError):
    """A tool is declared wrongly; raised by the declaration that makes the mistake."""


class BadArgumentsError(BargeinError, ValueError):
    """A tool was called with wrong arguments; the message tells the model how to correct them."""


class CommitOverrunError(BargeinError, TimeoutError):
    """A commit section did not end by its deadline; its effect is unknown."""

    def __init__(self, tool: str, deadline_s: float) -> None:
        super().__init__(tool, deadline_s)
        self.tool = tool
        self.deadline_s = deadline_s

    def __str__(self) -> str:
        return f"the commit section of {self.tool!r} was not over after {self.deadline_s} s"

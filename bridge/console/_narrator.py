"""Turns the events of a call into lines: what the agent says, its tools, how answers end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from .._verbs import JobEnd, ToolOutcome
from ..commands._terminal_text import clean, one_line
from ..events import (
    AgentError,
    AgentHandoff,
    AgentResponse,
    AgentSpeechCut,
    AnswerEnded,
    CallActionFailed,
    CallEnded,
    CapWarning,
    InputReturned,
    JobFinished,
    PermissionAnswered,
    QuestionClosed,
    ToolCall,
    ToolOutput,
    ToolProgress,
    ToolResult,
    TranscriptionFailed,
    UserTranscriptionReceived,
)
from ._lines import ConsoleLine, Display, Style, seconds

ARGUMENT_COLUMNS = 60
"""How many characters of a tool's arguments its line shows; a permission question shows all."""

_OUTCOMES: dict[ToolOutcome, tuple[str, Style, str]] = {
    "not_started": ("✗ ", "dim", "not started"),
    "cancelled_before_effect": ("✗ ", "warn", "cancelled before it had any effect"),
    "effect_unknown": ("✗ ", "warn", "stopped; it may have partially executed"),
    "completed": ("✓ ", "good", ""),
    "completed_after_interrupt": ("✓ ", "warn", "completed after the interrupt"),
    "backgrounded": ("→ ", "dim", "continues in the background"),
    "timed_out": ("✗ ", "bad", "took too long; it may have partially executed"),
    "denied": ("✗ ", "warn", "denied"),
    "withdrawn": ("✗ ", "dim", "withdrawn; it did not run"),
}

_JOB_ENDS: dict[JobEnd, str] = {"failed": "failed", "capped": "stopped at its cap"}
"""What is said of a job whose outcome is not what matters about it."""


@dataclass(slots=True)
class NarratedTool:
    """A running tool."""

    name: str
    arguments: str
    progress: str = ""


class Narrator:
    """Turns the events of one call into lines.

    Attributes:
        tools: The tools without an outcome yet, by the id of their call.
    """

    def __init__(self, display: Display, *, live: bool, voice: bool = False) -> None:
        """Start without tools.

        Args:
            live: Whether running tools are shown elsewhere until they have an outcome.
            voice: Whether the user's words come from a microphone.
        """
        self.tools: dict[str, NarratedTool] = {}
        self._display = display
        self._live = live
        self._voice = voice

    def narrate(self, event: Any) -> None:
        """Show an event; never waits."""
        match event:
            case AgentResponse(content=content):
                self._display.write(clean(content))
            case ToolCall() | ToolProgress() | ToolOutput() | ToolResult():
                self._narrate_tool(event)
            case UserTranscriptionReceived(final=True, content=content) if self._voice:
                self._display.show(ConsoleLine(clean(content), "user", "> "))
            case _:
                if isinstance(event, AnswerEnded | JobFinished):
                    self._display.end()
                line = _line_of(event)
                if line is not None:
                    self._display.show(line)
        self._display.refresh()

    def _narrate_tool(self, event: ToolCall | ToolProgress | ToolOutput | ToolResult) -> None:
        if isinstance(event, ToolCall):
            arguments = one_line(arguments_text(event.arguments), ARGUMENT_COLUMNS)
            self.tools[event.id] = NarratedTool(one_line(event.name, 40), arguments)
            if not self._live:
                self._display.show(
                    ConsoleLine(f"{one_line(event.name, 40)}({arguments})", "dim", "→ ")
                )
            return
        if isinstance(event, ToolResult):
            self._display.show(self._outcome_line(event))
            return
        tool = self.tools.get(event.id)
        if tool is not None:
            tool.progress = _progress(event) or tool.progress

    def _outcome_line(self, result: ToolResult) -> ConsoleLine:
        tool = self.tools.pop(result.id, NarratedTool(one_line(result.name, 40), ""))
        mark, style, words = _OUTCOMES[result.outcome]
        if result.error and result.outcome == "completed":
            mark, style, words = "✗ ", "bad", f"failed: {' '.join(clean(result.content).split())}"
        parts = [f"{tool.name}({tool.arguments})", words, seconds(result.ran_s)]
        text = " · ".join(part for part in parts if part)
        return ConsoleLine(_with_detail(text, clean(result.detail)), style, mark)


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a tool for a person, on one line, cleaned."""
    parts = []
    for name, value in arguments.items():
        try:
            text = json.dumps(value, ensure_ascii=False, default=repr)
        except ValueError:  # they contain themselves
            text = repr(value)
        parts.append(f"{name}={text}")
    return clean(", ".join(parts)).replace("\n", " ")


def _progress(event: ToolProgress | ToolOutput) -> str:
    lines = clean(event.text).strip().splitlines()
    text = one_line(lines[-1], ARGUMENT_COLUMNS) if lines else ""
    if isinstance(event, ToolOutput) or event.fraction is None:
        return text
    return f"{event.fraction:.0%} {text}".strip()


def _with_detail(text: str, detail: str) -> str:
    return f"{text}\n{indent(detail, '  ')}" if detail else text


def _line_of(event: Any) -> ConsoleLine | None:
    match event:
        case AgentError(message=message, detail=detail):
            return ConsoleLine(clean(_with_detail(message, detail)), "bad", "✗ ")
        case AgentHandoff(target=target):
            return ConsoleLine(f"{one_line(target, 40)} takes over", "dim", "→ ")
        case AgentSpeechCut(unheard=unheard) if unheard.strip():
            return ConsoleLine(f"never heard: “{one_line(unheard, 200)}”", "dim", "■ ")
        case CallActionFailed(action=action, reason=reason):
            what = "not passed on" if action == "transfer" else "the key was not pressed"
            return ConsoleLine(f"{what}: {one_line(reason, 80)}", "warn", "! ")
        case CapWarning(which=which, used=used, limit=limit):
            return ConsoleLine(f"{used:g} of {limit:g} {cap_name(which)} used", "warn", "! ")
        case InputReturned(content=content):
            return ConsoleLine(f"not answered: “{one_line(content, 200)}”", "dim", "■ ")
        case JobFinished(name=name, outcome=outcome, ended=ended):
            bad = (ended, outcome) != ("completed", "completed")
            words = _JOB_ENDS.get(ended) or _OUTCOMES[outcome][2] or "is done"
            text = f"{one_line(name, 40)} {words}, in the background"
            return ConsoleLine(text, "warn" if bad else "good", "✗ " if bad else "✓ ")
        case PermissionAnswered(name=name, verdict="withdrawn"):
            return ConsoleLine(f"{one_line(name, 40)} no longer asks", "dim", "? ")
        case QuestionClosed(outcome="timed_out"):
            return ConsoleLine("nobody has answered", "dim", "? ")
        case QuestionClosed(name=name, outcome="interrupted" | "withdrawn"):
            return ConsoleLine(f"{one_line(name, 40)} no longer asks", "dim", "? ")
        case TranscriptionFailed(reason=reason, error=error) if reason != "no_words":
            why = f"failed: {error}" if error else "gave no words in time"
            return ConsoleLine(f"not understood; the recogniser {one_line(why, 80)}", "warn", "! ")
        case AnswerEnded(outcome="capped", capped=capped):
            return ConsoleLine(f"stopped at its cap on {cap_name(capped)}", "warn", "■ ")
        case AnswerEnded(outcome="failed"):
            return ConsoleLine("the answer failed; the conversation continues", "bad", "■ ")
        case CallEnded(reason=reason) if reason != "ended":  # the reason when the person leaves
            return ConsoleLine(f"the call is over: {one_line(reason, 80)}", "dim", "■ ")
    return None


_CAPS = {"wall_s": "seconds", "tool_calls": "tool calls"}


def cap_name(which: str) -> str:
    return _CAPS.get(which, which)

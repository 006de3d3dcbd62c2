"""The slash commands of the console."""

from __future__ import annotations

import difflib
import os.path
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .._verbs import Verb
from ..call._call_handle import Handle
from ._lines import ConsoleLine

_COMMAND = re.compile(r"/([A-Za-z]+)(?:\s+(.*))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command.

    Attributes:
        name: The word after the slash.
        verb: The verb it uses; ``None`` for a command of the console itself.
        takes: Whether it takes no text, an optional one, or a required one.
        help: What it does, if no verb describes it.
    """

    name: str
    verb: Verb | None
    takes: Literal["nothing", "note", "text"] = "nothing"
    help: str = ""

    @property
    def usage(self) -> str:
        """How it is typed."""
        return f"/{self.name}" + {"nothing": "", "note": " [note]", "text": " TEXT"}[self.takes]


COMMANDS = (
    SlashCommand("pause", "pause"),
    SlashCommand("resume", "resume", "note"),
    SlashCommand("redirect", "redirect", "text"),
    SlashCommand("background", "background"),
    SlashCommand("cancel", "cancel"),
    SlashCommand("stop", "emergency_stop"),
    SlashCommand("help", None, help="shows this"),
    SlashCommand("quit", None, help="leaves; queued messages are not sent"),
)
_BY_NAME = {command.name: command for command in COMMANDS}


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command with its text."""

    command: SlashCommand
    text: str = ""


def read_command(entry: str) -> TypedCommand | str | None:
    """Parse an entry as a command.

    Args:
        entry: What was typed.  Only a slash before a word makes it a command: a path is not one,
            and two slashes make anything a text.

    Returns:
        The command, or what is wrong with it, for a person; ``None`` if it is not a command.
    """
    match = _COMMAND.fullmatch(entry.strip())
    if match is None:
        return None
    name, text = match[1].lower(), (match[2] or "").strip()
    command = _BY_NAME.get(name)
    if command is None:
        near = difflib.get_close_matches(name, _BY_NAME, 1)
        meant = f"; did you mean /{near[0]}?" if near else ""
        there = " ".join(f"/{known.name}" for known in COMMANDS)
        return f"there is no command /{name}{meant} There are {there}; // sends a slash"
    if command.takes == "text" and not text:
        return f"/{name} needs a text: {command.usage}"
    if command.takes == "nothing" and text:
        return f"/{name} takes no text; to say something, leave out the command"
    return TypedCommand(command, text)


def complete_command(entry: str) -> tuple[str, list[str]]:
    """Complete the name of a command.

    Args:
        entry: What was typed before the cursor.

    Returns:
        The entry as far as it is certain, and the commands that it may become; none if it is not
        the start of a command.
    """
    typed = entry.lower()
    fitting = [command for command in COMMANDS if f"/{command.name}".startswith(typed)]
    if not typed or not fitting:
        return entry, []
    names = [f"/{command.name}" for command in fitting]
    if len(names) == 1:
        return names[0] + ("" if fitting[0].takes == "nothing" else " "), names
    certain = os.path.commonprefix(names)  # noqa: RUF071  # no paths: by characters is what is meant
    return certain, names


def as_message(entry: str) -> str:
    """Return the text to send for an entry that is not a command."""
    return entry[1:] if entry.startswith("//") else entry


def help_lines(handle: Handle) -> Iterator[ConsoleLine]:
    """Yield what each command would do now."""
    width = max(len(command.usage) for command in COMMANDS) + 2
    for command in COMMANDS:
        does = command.help if command.verb is None else handle.describe(command.verb)
        yield ConsoleLine(does, "dim", command.usage.ljust(width))

"""Commands of the command line that other packages bring."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

COMMAND_GROUP = "bargein.commands"
"""Entry points of other packages: name → ``module:function(argv) -> exit code``."""

Command: TypeAlias = Callable[[Sequence[str]], int]


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """A command that is loaded when it is asked for."""

    entry: EntryPoint

    @property
    def summary(self) -> str:
        """The first line of its docstring as the list of commands has it, or why it cannot load."""
        command = self._load()
        if isinstance(command, str):
            return f"(cannot be loaded: {command})"
        first_line = (command.__doc__ or "").strip().partition("\n")[0].removesuffix(".")
        return first_line[:1].lower() + first_line[1:]

    def run(self, arguments: Sequence[str]) -> int:
        """Run it, and return its exit code; 1, with a message, if it cannot be loaded."""
        command = self._load()
        if isinstance(command, str):
            sys.stderr.write(
                f"error: the command {self.entry.name!r} ({self.entry.value}) cannot be loaded: "
                f"{command}. Reinstall the package it comes from\n"
            )
            return 1
        return command(arguments)

    def _load(self) -> Command | str:
        """Return the command, or why it cannot be loaded."""
        try:
            command: Command = self.entry.load()
        except Exception as error:  # noqa: BLE001  # it breaks this command, told by whom, no other
            return f"{type(error).__name__}: {error}"
        return command


def find_plugins() -> dict[str, PluginCommand]:
    """Return the commands that installed packages bring, by their names."""
    found = sorted(entry_points(group=COMMAND_GROUP))
    return {entry.name: PluginCommand(entry) for entry in found}

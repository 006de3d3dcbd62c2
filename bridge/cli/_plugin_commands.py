"""Commands that other packages add to the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

from ..commands._output import complain

COMMAND_GROUP = "bargein.commands"
"""The group of entry points; each names a ``module:function(argv) -> exit code``."""

CommandFunction: TypeAlias = Callable[[Sequence[str]], int]


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """A command that is loaded when it is run or listed."""

    entry: EntryPoint

    @property
    def summary(self) -> str:
        """The first line of its docstring for the list of commands, or why it cannot be loaded."""
        command = self._load()
        if isinstance(command, str):
            return f"(cannot be loaded: {command})"
        first_line = (command.__doc__ or "").strip().partition("\n")[0].removesuffix(".")
        return first_line[:1].lower() + first_line[1:]

    def run(self, arguments: Sequence[str]) -> int:
        """Run it and return its exit code; if it cannot be loaded, print why and return 1."""
        command = self._load()
        if isinstance(command, str):
            complain(
                f"error: the command {self.entry.name!r} ({self.entry.value}) cannot be loaded: "
                f"{command}. Reinstall the package it comes from\n"
            )
            return 1
        return command(arguments)

    def _load(self) -> CommandFunction | str:
        """Return the command, or why it cannot be loaded."""
        try:
            command: CommandFunction = self.entry.load()
        except Exception as error:  # noqa: BLE001  # a broken plugin breaks no other command
            return f"{type(error).__name__}: {error}"
        return command


def find_plugins() -> dict[str, PluginCommand]:
    """Return the commands of installed packages, by name."""
    found = sorted(entry_points(group=COMMAND_GROUP))
    return {entry.name: PluginCommand(entry) for entry in found}

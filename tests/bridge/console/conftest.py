"""A terminal for the console's tests: a screen that obeys what it is sent, and a real pty."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import forking

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0
"""For anything that a process is waited for; generous, because the machine may be busy."""


class Emulator:
    """A terminal as ECMA-48 has it, so far as the console uses it; all else is an error."""

    def __init__(self, columns: int = 60, rows: int = 12) -> None:
        self.columns, self.rows = columns, rows
        self.grid = [[" "] * columns for _ in range(rows)]
        self.scrolled: list[str] = []
        self.row = self.column = 0
        self.cursor_shows = True
        self.pastes_told = False
        self.rest = ""
        self.strange: list[str] = []

    def resize(self, columns: int, rows: int) -> None:
        """Become another size, with what fits of the last rows."""
        lines = [row[:columns] + [" "] * (columns - len(row)) for row in self.grid]
        while len(lines) > rows:
            self.scrolled.append("".join(lines.pop(0)).rstrip())
            self.row -= 1
        lines += [[" "] * columns for _ in range(rows - len(lines))]
        self.grid, self.columns, self.rows = lines, columns, rows
        self.row, self.column = max(self.row, 0), min(self.column, columns - 1)

    def feed(self, text: str) -> None:
        """Obey what a program writes."""
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])").match(text, at)
                if match is None:
                    if re.fullmatch(r"\x1b(\[[?0-9;]*)?", text[at:]):
                        self.rest = text[at:]
                        return
                    self.strange.append(text[at : at + 8])
                    at += 1
                    continue
                self._obey(match[1], match[2])
                at = match.end()
            else:
                self._put(text[at])
                at += 1

    def _obey(self, parameters: str, final: str) -> None:
        number = int(parameters) if parameters.isdigit() else 1
        match final:
            case "A":
                self.row = max(0, self.row - number)
            case "C":
                self.column = min(self.columns - 1, self.column + number)
            case "H" if not parameters:
                self.row = self.column = 0
            case "J" if parameters in ("", "2"):
                if not parameters:
                    self.grid[self.row][self.column :] = [" "] * (self.columns - self.column)
                first = 0 if parameters else self.row + 1
                for row in range(first, self.rows):
                    self.grid[row] = [" "] * self.columns
            case "K" if not parameters:
                self.grid[self.row][self.column :] = [" "] * (self.columns - self.column)
            case "h" | "l" if parameters == "?25":
                self.cursor_shows = final == "h"
            case "h" | "l" if parameters == "?2004":
                self.pastes_told = final == "h"
            case "m":
                pass
            case _:
                self.strange.append(f"CSI {parameters} {final}")

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._line_feed()
        elif unicodedata.category(character) == "Cc":
            self.strange.append(repr(character))
        else:
            self._show(character)

    def _show(self, character: str) -> None:
        if unicodedata.combining(character) or character == "\u200d":
            self.grid[self.row][max(0, self.column - 1)] += character
            return
        size = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if self.column + size > self.columns:
            self.column = 0
            self._line_feed()
        self.grid[self.row][self.column : self.column + size] = [character, *[""] * (size - 1)]
        self.column += size

    def _line_feed(self) -> None:
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.scrolled.append("".join(self.grid.pop(0)).rstrip())
            self.grid.append([" "] * self.columns)

    def lines(self) -> list[str]:
        """Return the rows up to the last that is not empty."""
        lines = ["".join(row).rstrip() for row in self.grid]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def shown(self) -> str:
        """Return the window, with every time in it as ``#``."""
        return re.sub(r"\d+\.\d s|\d+:\d\d", "# s", "\n".join(self.lines()))

    def everything(self) -> str:
        """Return what was scrolled away, and the window."""
        return "\n".join([*self.scrolled, *self.lines()])


class Tty:
    """A program in a real pseudo-terminal."""

    def __init__(self, command: list[str], cwd: Path, columns: int, rows: int, **env: str) -> None:
        self.screen = Emulator(columns, rows)
        self.master, self.slave = pty.openpty()
        self._is_dry = False
        self.set_size(columns, rows)
        self.modes = termios.tcgetattr(self.slave)
        slave = self.slave
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **env},
        )
        self._decoder = __import__("codecs").getincrementaldecoder("utf-8")()

    def set_size(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self.screen.resize(columns, rows)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.master, keys.encode())

    def read(self, for_s: float) -> None:
        """Show what the program writes within a time."""
        self._is_dry = not select.select([self.master], [], [], for_s)[0]
        if not self._is_dry:
            with contextlib.suppress(OSError):  # EIO: nobody has it open any more
                self.screen.feed(self._decoder.decode(os.read(self.master, 65_536)))

    def until(self, wanted: str | Callable[[], object], within_s: float = PATIENCE_S) -> float:
        """Wait until the window shows a text, or something holds; return for how long."""
        began_s = time.monotonic()
        holds = wanted if callable(wanted) else lambda: wanted in self.screen.everything()
        while not holds():
            is_late = time.monotonic() - began_s > within_s
            is_over = self.process.poll() is not None and self._is_dry
            if is_late or is_over:
                why = "is over" if is_over else f"took {within_s} s"
                pytest.fail(f"{why} before {wanted!r}:\n{self.screen.everything()}")
            self.read(0.01)
        return time.monotonic() - began_s

    def settled(self) -> str:
        """Return the window once nothing has been written to it for a while."""
        before = None
        while before != (now := (self.screen.shown(), self.screen.row, self.screen.column)):
            before = now
            for _ in range(8):
                self.read(0.05)
        assert not self.screen.strange
        return self.screen.shown()

    def end(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        self.until(lambda: self.process.poll() is not None)
        for _ in range(5):
            self.read(0.01)
        assert not self.screen.strange
        return self.process.returncode

    def has_its_modes(self) -> bool:
        """Whether the modes of the terminal are those before the program."""
        return termios.tcgetattr(self.slave) == self.modes

    def is_restored(self) -> bool:
        """Whether the terminal is as it was before the program."""
        return self.has_its_modes() and self.screen.cursor_shows and not self.screen.pastes_told

    def close(self) -> None:
        """End the program, whatever it does."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def emulator() -> type[Emulator]:
    """A terminal without a program."""
    return Emulator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the user's with the agent."""
    source = Path(__file__).with_name("agent.py").read_text()
    (tmp_path / "agent.py").write_text(source)
    return tmp_path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What keeps the program out of the folders of whoever runs the tests."""
    return {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "",
    }


@pytest.fixture
def open_tty(folder: Path, environment: dict[str, str]) -> Iterator[Callable[..., Tty]]:
    """Start programs in terminals, and end them after the test."""
    opened: list[Tty] = []

    def start(*command: str, columns: int = 60, rows: int = 14, **env: str) -> Tty:
        tty = Tty(list(command), folder, columns, rows, **{**environment, **env})
        opened.append(tty)
        return tty

    try:
        yield start
    finally:
        for tty in opened:
            tty.close()


@pytest.fixture
def open_chat(open_tty: Callable[..., Tty]) -> Callable[..., Tty]:
    """Start a console in a terminal, and wait until it can be talked to."""

    def start(*options: str, target: str = "agent:app", **keywords: object) -> Tty:
        command = (sys.executable, "-m", "bargein", "chat", target, *options)
        tty = open_tty(*command, **keywords)
        tty.until("your turn")
        return tty

    return start


@pytest.fixture
def run_chat(folder: Path, environment: dict[str, str]) -> Callable[..., Any]:
    """Run the console to its end, with lines as its input."""

    def run(
        lines: str,
        *options: str,
        target: str = "agent:app",
        code: int = 0,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        variables = {**environment, "BAKE_S": "0.4", **(env or {})}
        arguments = ["chat", target, *options]
        result = forking.run("bargein", arguments, cwd=folder, env=variables, lines=lines)
        assert result.returncode == code, result.stderr
        assert "\x1b" not in result.stdout + result.stderr
        return result

    return run

"""``bargein wires``, and the option ``--wire``: the ways of reaching the calls of a server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..commands._output import complain
from ..commands._target import TargetError, import_target
from ..server._wire_paths import WirePaths
from ..wires._wire import Wire
from ..wires.native import NativeWire

BUILT_IN = {NativeWire.name: NativeWire}
"""The wires that ``--wire`` knows by their names."""

HELP = (
    f"a way of reaching calls: {', '.join(BUILT_IN)}, or module:name or path/to/file.py:name for a "
    "wire of your own; repeat it for more (default: native, which the page needs)"
)


def add_wire_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command."""
    parser.add_argument("--wire", action="append", default=[], metavar="NAME", help=HELP)


def add_wires(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(
        "wires",
        help="list the ways of reaching calls",
        description="Prints each wire and its path, one a line.",
    )
    add_wire_option(parser)
    parser.set_defaults(command=_list)


def load_wires(names: Sequence[str]) -> tuple[Wire, ...]:
    """Return the wires that ``--wire`` names; all built-in ones if it names none.

    Args:
        names: The names, or the targets of wires of the user's own.

    Raises:
        TargetError: There is no such wire, or it cannot be made.
    """
    wires = tuple(_load(name) for name in names or BUILT_IN)
    try:
        WirePaths(wires)
    except (TypeError, ValueError, AttributeError) as error:
        raise TargetError(f"--wire: {error}") from error
    return wires


def _load(name: str) -> Wire:
    if name in BUILT_IN:
        return BUILT_IN[name]()
    where, _, attribute = name.rpartition(":")
    if not where:
        raise TargetError(
            f"--wire {name!r} is none of {', '.join(BUILT_IN)}; name a wire of your own as "
            "module:name or path/to/file.py:name"
        )
    module = import_target(where)
    try:
        found = getattr(module, attribute)
        wire: Wire = found() if isinstance(found, type) else found
        WirePaths((wire,))
    except Exception as error:  # told, and the wire's author has what to look for
        raise TargetError(f"--wire {name!r}: {error}") from error
    return wire


def _list(options: argparse.Namespace) -> int:
    try:
        wires = load_wires(options.wire)
    except TargetError as error:
        complain(error.details)
        complain(f"error: {error}\n")
        return 2
    for path, wire in WirePaths(wires):
        sys.stdout.write(f"{wire.name} {path}\n")
    return 0

"""The stages of a chain: what each does with a value, checked when it is written.

The first stage gets the ``Message``; each later stage gets what the stage before it gave.
``None`` is nothing: it goes no further.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from ._errors import RouteDefinitionError
from ._signatures import fit, is_async_function, is_generator_function, name_of, needs_function
from ._stage_results import is_iterator

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Map:
    """Calls a function; what a generator yields goes on one by one."""

    fn: Function

    @property
    def waits(self) -> bool:
        """Whether this stage can only run in a task of its own."""
        return is_async_function(self.fn) or is_generator_function(self.fn)

    def __str__(self) -> str:
        return f".map({name_of(self.fn)})"


@dataclass(frozen=True, slots=True)
class Filter:
    """Lets a value pass when a function of it is true."""

    fn: Function

    @property
    def waits(self) -> bool:
        """Whether this stage can only run in a task of its own."""
        return is_async_function(self.fn)

    def __str__(self) -> str:
        return f".filter({name_of(self.fn)})"


@dataclass(frozen=True, slots=True)
class Stream:
    """Calls a function and passes on, one by one, what it yields or returns."""

    fn: Function
    written: str
    waits: bool = True

    def __str__(self) -> str:
        return f".stream({self.written})"


@dataclass(frozen=True, slots=True)
class Through:
    """Hands the whole stream of values to a function that gives another stream."""

    fn: Function
    waits: bool = True

    def __str__(self) -> str:
        return f".through({name_of(self.fn)})"


@dataclass(frozen=True, slots=True)
class Buffer:
    """Runs the stages before and after it at once, at most `size` values apart."""

    size: int
    waits: bool = True

    def __str__(self) -> str:
        return f".buffer({self.size})"


@dataclass(frozen=True, slots=True)
class Timeout:
    """Bounds how long the stages before it may take for their next value."""

    limit_s: float
    waits: bool = True

    def __str__(self) -> str:
        return f".timeout({self.limit_s})"


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Publishes the value as an event, and passes it on."""

    waits: bool = False

    def __str__(self) -> str:
        return ".broadcast()"


Stage = Map | Filter | Stream | Through | Buffer | Timeout | Broadcast


def a_map(fn: object) -> Map:
    """Check what was given to ``.map()``."""
    return Map(_one_argument(fn, ".map()"))


def a_filter(fn: object) -> Filter:
    """Check what was given to ``.filter()``."""
    checked = _one_argument(fn, ".filter()")
    if is_generator_function(checked):
        raise RouteDefinitionError(
            ".filter() needs a function that returns True or False; "
            f"{name_of(checked)} is a generator"
        )
    return Filter(checked)


def a_stream(source: object) -> Stream:
    """Check what was given to ``.stream()``: a function, or what gives its values anew."""
    _refuse_iterator(source)
    if is_iterator(source):
        return Stream(lambda _: source, name_of(source))
    return Stream(_one_argument(source, ".stream()"), name_of(source))


def _refuse_iterator(source: object) -> None:
    """Refuse what gives its values once: to the first trigger of the chain, and to no later one.

    Raises:
        RouteDefinitionError: It is an iterator, such as a generator object.
    """
    if isinstance(source, (GeneratorType, AsyncGeneratorType)):
        name = name_of(source)
        raise RouteDefinitionError(
            f".stream({name}()) got a generator object, which gives its values to the first "
            f"trigger and nothing to any later one; pass the function itself, without calling it: "
            f".stream({name})"
        )
    if hasattr(type(source), "__anext__") or hasattr(type(source), "__next__"):
        raise RouteDefinitionError(
            f".stream() got {source!r}, which can be iterated once: it would give its values to "
            "the first trigger and nothing to any later one; pass a function that makes a new one "
            "for each trigger, or a list"
        )


def a_through(fn: object) -> Through:
    """Check what was given to ``.through()``."""
    return Through(_one_argument(fn, ".through()", "the stream of values, an async iterator"))


def a_buffer(size: object) -> Buffer:
    """Check what was given to ``.buffer()``."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise RouteDefinitionError(f".buffer() needs a whole number from 1 up, not {size!r}")
    return Buffer(size)


def a_timeout(limit_s: object) -> Timeout:
    """Check what was given to ``.timeout()``."""
    is_number = isinstance(limit_s, (int, float)) and not isinstance(limit_s, bool)
    if not is_number or not 0 < float(limit_s) < math.inf:  # type: ignore[arg-type]  # is_number
        raise RouteDefinitionError(f".timeout() needs seconds above 0, not {limit_s!r}")
    return Timeout(float(limit_s))  # type: ignore[arg-type]  # is_number


def _one_argument(
    fn: object, where: str, takes: str = "one value: the message, or what the stage before it gave"
) -> Function:
    needs_function(fn, where)
    return fit(fn, 1, where, takes)  # type: ignore[arg-type]  # needs_function saw that it is one

"""The stages of a chain, checked when the chain is built.

The first stage gets the ``Message``; each later stage gets the result of the previous one.
``None`` goes no further.
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
    """Calls a function, and passes on its result."""

    fn: Function

    @property
    def waits(self) -> bool:
        """Whether this stage can only run in a task of its own."""
        return is_async_function(self.fn)

    def __str__(self) -> str:
        return f".map({name_of(self.fn)})"


@dataclass(frozen=True, slots=True)
class Filter:
    """Passes on the values for which a function is true."""

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
    """Gives the stream of values to a function that returns another stream."""

    fn: Function
    waits: bool = True

    def __str__(self) -> str:
        return f".through({name_of(self.fn)})"


@dataclass(frozen=True, slots=True)
class Buffer:
    """Runs the stages before and after it concurrently, at most ``size`` values apart."""

    size: int
    waits: bool = True

    def __str__(self) -> str:
        return f".buffer({self.size})"


@dataclass(frozen=True, slots=True)
class Timeout:
    """Limits how long the stages before it may take to produce their next value."""

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
    """Check the argument of ``.map()``."""
    checked = _one_argument(fn, ".map()")
    if is_generator_function(checked):
        name = name_of(checked)
        raise RouteDefinitionError(
            f".map({name}) got a generator, which yields many values, and .map() passes on one; "
            f"write .stream({name})"
        )
    return Map(checked)


def a_filter(fn: object) -> Filter:
    """Check the argument of ``.filter()``."""
    checked = _one_argument(fn, ".filter()")
    if is_generator_function(checked):
        raise RouteDefinitionError(
            ".filter() needs a function that returns True or False; "
            f"{name_of(checked)} is a generator"
        )
    return Filter(checked)


def a_stream(source: object) -> Stream:
    """Check the argument of ``.stream()``: a function, or something iterable repeatedly."""
    _refuse_iterator(source)
    if is_iterator(source):
        return Stream(lambda _: source, name_of(source))
    return Stream(_one_argument(source, ".stream()"), name_of(source))


def _refuse_iterator(source: object) -> None:
    """Raise for an iterator: only the first trigger of the chain would get its values.

    Raises:
        RouteDefinitionError: It is an iterator, such as a generator object.
    """
    _refuse_generator(source, ".stream()")
    if hasattr(type(source), "__anext__") or hasattr(type(source), "__next__"):
        raise RouteDefinitionError(
            f".stream() got {source!r}, which can be iterated only once: it would give its values "
            "to the first trigger and none to later ones; pass a function that makes a new one "
            "for each trigger, or a list"
        )


def _refuse_generator(value: object, where: str) -> None:
    if isinstance(value, (GeneratorType, AsyncGeneratorType)):
        step, name = where.removesuffix("()"), name_of(value)
        step = ".stream" if step == ".map" else step
        raise RouteDefinitionError(
            f"{where[:-2]}({name}()) got a generator object, which gives its values to the first "
            f"trigger and none to later ones; pass the function itself, without calling it: "
            f"{step}({name})"
        )


def a_through(fn: object) -> Through:
    """Check the argument of ``.through()``."""
    return Through(_one_argument(fn, ".through()", "the stream of values, an async iterator"))


def a_buffer(size: object) -> Buffer:
    """Check the argument of ``.buffer()``."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise RouteDefinitionError(f".buffer() needs a whole number from 1 up, not {size!r}")
    return Buffer(size)


def a_timeout(limit_s: object) -> Timeout:
    """Check the argument of ``.timeout()``."""
    is_number = isinstance(limit_s, (int, float)) and not isinstance(limit_s, bool)
    if not is_number or not 0 < float(limit_s) < math.inf:  # type: ignore[arg-type]  # is_number
        raise RouteDefinitionError(f".timeout() needs seconds above 0, not {limit_s!r}")
    return Timeout(float(limit_s))  # type: ignore[arg-type]  # is_number


def _one_argument(
    fn: object, where: str, takes: str = "one value: the message, or the previous stage's result"
) -> Function:
    _refuse_generator(fn, where)
    needs_function(fn, where)
    return fit(fn, 1, where, takes)  # type: ignore[arg-type]  # needs_function has checked it

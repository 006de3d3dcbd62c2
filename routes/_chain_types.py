"""The types of a chain: its triggers, its rules, and its functions' arguments and results.

The aliases exist only for type checkers, not at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

U = TypeVar("U")
E = TypeVar("E")
E1 = TypeVar("E1")
E2 = TypeVar("E2")
E3 = TypeVar("E3")
E4 = TypeVar("E4")

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
    from contextlib import AbstractAsyncContextManager
    from typing import Any, TypeAlias

    import trio
    from typing_extensions import TypeVar as DefaultTypeVar

    from ._message import Message
    from ._run_outcome import Interruption

    T_co = DefaultTypeVar("T_co", covariant=True, default=Any)

    Condition: TypeAlias = Callable[[Message[E]], object]
    """A plain function that accepts or rejects a message."""

    AnyEvent: TypeAlias = str | Condition[Any] | Collection[type[Any] | str | Condition[Any]]
    """A declaration without a static event type: an alias, a function or a mixed list."""

    Handler: TypeAlias = (
        Callable[[], object]
        | Callable[[Message[E]], object]
        | Callable[[Message[E], Interruption], object]
    )
    """A function called after a run was cut, sync or async."""

    # Not `U | None` in the last two: mypy would then join a union to its common base class.
    Later: TypeAlias = Awaitable[U | None] | Iterator[U] | AsyncIterator[U]
    """What ``.map()`` awaits or iterates, so that the next stage gets the values inside."""

    Listed: TypeAlias = list[U] | tuple[U, ...] | set[U] | frozenset[U]
    """What ``.stream()`` also iterates, once for each trigger."""

    Streamed: TypeAlias = (
        Later[U]
        | Listed[U]
        | Awaitable[Listed[U]]
        | AbstractAsyncContextManager[trio.abc.ReceiveChannel[U]]
    )
    """What ``.stream()`` and ``.through()`` iterate, to pass on the values one by one."""
else:
    T_co = TypeVar("T_co", covariant=True)

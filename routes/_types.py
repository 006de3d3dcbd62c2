"""The types of a chain: what begins it, what cuts it, and what its functions take and give.

The aliases are for type checkers alone; nothing of them is there at run time.
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
    from ._outcome import Interruption

    T_co = DefaultTypeVar("T_co", covariant=True, default=Any)

    Condition: TypeAlias = Callable[[Message[E]], object]
    """A plain function that says yes or no to a message."""

    AnyEvent: TypeAlias = str | Condition[Any] | Collection[type[Any] | str | Condition[Any]]
    """A declaration that leaves open which events come: an alias, a function, a mixed list."""

    Handler: TypeAlias = (
        Callable[[], object]
        | Callable[[Message[E]], object]
        | Callable[[Message[E], Interruption], object]
    )
    """What is called once a run was cut, sync or async."""

    # Not `U | None` in the last two: of that, mypy makes their common base class of a union.
    Later: TypeAlias = Awaitable[U | None] | Iterator[U] | AsyncIterator[U]
    """What ``.map()`` awaits or takes apart, so that the next stage gets what is inside."""

    Listed: TypeAlias = list[U] | tuple[U, ...] | set[U] | frozenset[U]
    """What ``.stream()`` takes apart besides, again and again."""

    Streamed: TypeAlias = (
        Later[U]
        | Listed[U]
        | Awaitable[Listed[U]]
        | AbstractAsyncContextManager[trio.abc.ReceiveChannel[U]]
    )
    """What ``.stream()`` and ``.through()`` pass on one by one."""
else:
    T_co = TypeVar("T_co", covariant=True)

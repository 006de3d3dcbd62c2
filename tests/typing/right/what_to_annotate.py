"""What to annotate, so that the next stage gets the values that the run iterates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, assert_type

from bargein import Bridge, Message
from bargein.events import DTMFInput
from bargein.routes import Route

Key = Message[DTMFInput]


class Store(Protocol):
    """A library that says nothing of what it gives."""

    def read(self, message: Key) -> Any: ...


def yields(message: Key) -> Iterator[str]:
    yield message.event.button


def yields_vaguely(message: Key) -> Iterable[str]:
    yield message.event.button


def lists(message: Key) -> list[str]:
    return [message.event.button]


def pairs(message: Key) -> tuple[str, ...]:
    return (message.event.button, message.event.button)


def lists_vaguely(message: Key) -> Sequence[str]:
    return [message.event.button]


def iterable_or_not(bridge: Bridge) -> None:
    """``Iterable`` and ``Sequence`` fit texts, bytes and events too, which are passed on whole."""
    chain = bridge.on(DTMFInput)
    assert_type(chain.stream(yields), Route[str])
    assert_type(chain.stream(lists), Route[str])
    assert_type(chain.stream(pairs), Route[str])
    assert_type(chain.stream(yields_vaguely), Route[Iterable[str]])
    assert_type(chain.stream(lists_vaguely), Route[Sequence[str]])
    assert_type(chain.map(lists_vaguely), Route[Sequence[str]])


def from_a_store(bridge: Bridge, store: Store) -> None:
    """What nobody knows is ``Any``; a function of yours says what it is."""

    def read(message: Key) -> Iterator[str]:
        yield from store.read(message)

    chain = bridge.on(DTMFInput)
    assert_type(chain.stream(lambda m: store.read(m)), Route[Any])
    assert_type(chain.stream(store.read), Route[Any])
    assert_type(chain.stream(read), Route[str])

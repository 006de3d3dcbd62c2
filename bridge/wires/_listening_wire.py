"""Wires that open calls by themselves, not by requests for their paths, such as SIP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from ._wire import NewCall, RefusalCode, WireConnection


class CallHost(Protocol):
    """The port, as a wire sees it that listens by itself: it admits and hosts the wire's calls."""

    async def host(
        self, connection: WireConnection, asked: NewCall, query: Mapping[str, str], peer: str
    ) -> RefusalCode | None:
        """Admit a call by the rule of all wires, and host it until it is over.

        The wire's ``session()`` is asked for its session.  Never raises but when it is cancelled.

        Args:
            connection: What carries it.
            asked: What call is asked for.
            query: What else is known of it, by name, such as ``from`` and ``to``; not verified.
            peer: The address it comes from, by which it is counted; empty for a trusted peer, as
                one carrier has the calls of many callers.

        Returns:
            Why it was refused, before there was a session; ``None`` for a call that had one.
        """
        ...


@runtime_checkable
class Listens(Protocol):
    """A wire that opens its calls by itself; it says so by having this method."""

    async def listen(self, host: CallHost, ready: Callable[[], None]) -> None:
        """Listen until cancelled, and bring each call to the port.

        It outlives the calls that it carries: the port cancels this once all are over.

        Args:
            host: Admits and hosts calls; each in a task of the wire's.
            ready: Called once it listens.

        Raises:
            OSError: Its address cannot be listened on.
        """

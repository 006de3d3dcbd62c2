"""One line of a voice: a socket to the vendor, and the contexts that share it.

Rule 1. A vendor's message goes to the context that it names. A message for a finished context is
dropped: it is late audio of an interrupted utterance.
Rule 2. A context, even a cancelled one, counts against the line's limit until the vendor says that
it is final, the line is lost, or the vendor has forgotten it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
import trio

from bargein.nodes.vendors import Reopened, VendorError, VendorSession

log = structlog.get_logger()

SPARE_S = 5.0
"""How long an extra line stays open unused, in seconds: opening one takes tenths of a second."""

OTHER_STYLE_S = 60.0
"""How long the line of a style with its own address stays open unused, in seconds: the next
utterance in that style comes after the caller's turn."""


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """A vendor's limit on the contexts open at once on one socket."""

    most: int
    is_final: Callable[[Mapping[str, Any]], bool]
    """Whether a message is the last one of the context that it names."""
    forgotten_s: float
    """How long after its cancel the vendor drops a context by itself, in seconds."""


class LineContext(Protocol):
    """The part of an utterance that a line uses."""

    @property
    def is_open_at_vendor(self) -> bool:
        """Whether the context is open at the vendor on the newest line."""
        ...

    @property
    def late_at_s(self) -> float:
        """When the vendor must have sent something; infinity if it owes nothing."""
        ...

    def give_up(self) -> None:
        """Fail because the vendor's answer is overdue."""
        ...

    def read(self, message: Mapping[str, Any]) -> None:
        """Handle a message from the vendor."""
        ...

    async def restart(self) -> None:
        """Send everything again on another line, if no audio has come yet."""
        ...

    def fail(self, error: VendorError) -> None:
        """Make whoever waits for audio raise this error."""
        ...


class VoiceLine:
    """Reads a session and gives each context its messages."""

    def __init__(
        self,
        vendor: str,
        session: VendorSession,
        context_of: Callable[[Mapping[str, Any]], str | None],
        limit: ContextLimit | None,
        url: str = "",
    ) -> None:
        """Keep the session, which `open_session` runs.

        Args:
            vendor: The vendor's name, for the log.
            session: The session.
            context_of: Returns the context that a message belongs to; ``None`` if it belongs to
                none.
            limit: How many contexts the line may have; ``None`` for no limit.
            url: The address of the line.
        """
        self.session = session
        self.url = url
        self._vendor = vendor
        self._context_of = context_of
        self._limit = limit
        self._contexts: dict[str, LineContext] = {}
        self._cut: dict[str, float] = {}  # until when each counts, unless it is final earlier
        self._unused_s = math.inf  # how long the line may be unused, and the scope that ends it
        self._use = trio.CancelScope()
        self._error: VendorError | None = None
        self._revived = trio.Event()

    def has_room(self) -> bool:
        """Return whether there is room for another context."""
        now = trio.current_time()
        self._cut = {name: until_s for name, until_s in self._cut.items() if until_s > now}
        most = math.inf if self._limit is None else self._limit.most
        return not self._use.cancel_called and len(self._contexts) + len(self._cut) < most

    def check(self) -> None:
        """Try the line again if it was given up a while ago.

        Raises:
            VendorError: It was given up, and it is too early to try again.
        """
        if self._error is None:
            return
        if not self.session.revive():
            raise self._error
        self._error = None
        self._revived.set()

    def join(self, name: str, context: LineContext) -> None:
        """Start routing messages to a context."""
        self._contexts[name] = context
        self._use.deadline = math.inf

    def leave(self, name: str) -> None:
        """Stop routing messages to a context."""
        context = self._contexts.pop(name)
        now = trio.current_time()
        if not self._contexts:
            self._use.deadline = now + self._unused_s
        if self._limit is not None and context.is_open_at_vendor:
            self._cut[name] = now + self._limit.forgotten_s

    def give_up_late(self) -> float:
        """Fail the contexts whose answer is overdue; return when the next one may be."""
        next_s = math.inf
        for context in self._contexts.values():
            if context.late_at_s <= trio.current_time():
                context.give_up()
            next_s = min(next_s, context.late_at_s)
        return next_s

    async def run(self) -> None:
        """Read for ever; after the session was given up, wait until it is revived."""
        while True:
            await self._read_until_given_up()
            await self._revived.wait()

    async def run_for_a_while(self, unused_s: float) -> None:
        """Read until the session is given up, or the line was unused for `unused_s`."""
        self._unused_s = unused_s
        with self._use:
            self._use.deadline = trio.current_time() + unused_s
            await self._read_until_given_up()

    async def _read_until_given_up(self) -> None:
        try:
            await self._read()
        except VendorError as error:
            self._error, self._revived = error, trio.Event()
            for context in self._contexts.values():
                context.fail(error)

    async def _read(self) -> None:
        """Route each message to its context.

        Raises:
            VendorError: The session was given up.
        """
        while True:
            data = await self.session.receive()
            if isinstance(data, Reopened):
                self._cut.clear()
                for context in (*self._contexts.values(),):
                    await context.restart()
            elif isinstance(data, str):
                self._route(data)

    def _route(self, text: str) -> None:
        try:
            message = json.loads(text)
            if not isinstance(message, dict):
                raise TypeError("no object")
            name = self._context_of(message)
            context = self._contexts.get(name) if name is not None else None
            if context is not None:
                context.read(message)
            elif name in self._cut:
                self._end_cut(name, message)
            elif (
                name is None
                and len(self._contexts) == 1
                and "error" in (message.get("type"), *message)
            ):
                next(iter(self._contexts.values())).read(message)
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            kind = type(error).__name__
            log.warning("vendor_message_unreadable", vendor=self._vendor, error=kind)

    def _end_cut(self, name: str, message: Mapping[str, Any]) -> None:
        if self._limit is not None and self._limit.is_final(message):
            del self._cut[name]

"""One line of a voice: a socket to the vendor, and the contexts that share it.

Rule 1. A vendor's message goes to the context that it names.  One for a context that is over is
dropped: it is late audio of something that was cut.
Rule 2. A context counts on its line until the vendor has said that it is final, also when it was
cut; or until the line is lost, or the vendor has forgotten it.
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
"""How long a line that was opened for a rush of utterances stays unused: opening another one takes
tenths of a second."""

OTHER_STYLE_S = 60.0
"""How long the line of a style that has an address of its own stays unused: the next utterance in
it comes behind the caller's turn."""


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """How many contexts a vendor allows at once over one socket."""

    most: int
    is_final: Callable[[Mapping[str, Any]], bool]
    """Whether a message is the last one of the context that it names."""
    forgotten_s: float
    """How long after it was cut the vendor drops a context by itself."""


class LineContext(Protocol):
    """What a line needs of an utterance."""

    @property
    def is_open_at_vendor(self) -> bool:
        """Whether the vendor was told of it, on its newest line, and has not ended it."""
        ...

    @property
    def late_at_s(self) -> float:
        """Until when the vendor has to send something; for ever if it owes nothing."""
        ...

    def give_up(self) -> None:
        """Fail, as the vendor owes something for too long."""
        ...

    def read(self, message: Mapping[str, Any]) -> None:
        """Take in a message of the vendor's."""
        ...

    async def begin_again(self) -> None:
        """Ask for all of it on another line, if nothing has come yet."""
        ...

    def fail(self, error: VendorError) -> None:
        """Let who waits for audio know that no more will come."""
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
        """Keep the session, which others run.

        Args:
            vendor: Its name, for the log.
            session: The socket.
            context_of: Returns which context a message is of; None for those of none.
            limit: How many contexts fit; None for any number.
            url: Where it goes.
        """
        self.session = session
        self.url = url
        self._vendor = vendor
        self._context_of = context_of
        self._limit = limit
        self._contexts: dict[str, LineContext] = {}
        self._cut: dict[str, float] = {}  # until when each counts, unless it is final before
        self._unused_s = math.inf  # how long it may be, and what ends it then
        self._use = trio.CancelScope()
        self._error: VendorError | None = None
        self._revived = trio.Event()

    def has_room(self) -> bool:
        """Return whether one more context fits."""
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
        """Give a context its messages from now on."""
        self._contexts[name] = context
        self._use.deadline = math.inf

    def leave(self, name: str) -> None:
        """Drop the messages of a context from now on."""
        context = self._contexts.pop(name)
        now = trio.current_time()
        if not self._contexts:
            self._use.deadline = now + self._unused_s
        if self._limit is not None and context.is_open_at_vendor:
            self._cut[name] = now + self._limit.forgotten_s

    def give_up_late(self) -> float:
        """Give up the contexts that wait for too long; return when the next one will have."""
        next_s = math.inf
        for context in self._contexts.values():
            if context.late_at_s <= trio.current_time():
                context.give_up()
            next_s = min(next_s, context.late_at_s)
        return next_s

    async def run(self) -> None:
        """Read for ever; after the session was given up, once it is tried again."""
        while True:
            await self._read_until_given_up()
            await self._revived.wait()

    async def run_for_a_while(self, unused_s: float) -> None:
        """Read until the session is given up, or nobody has used the line for so long."""
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
        """Give each message to its context.

        Raises:
            VendorError: The session was given up.
        """
        while True:
            data = await self.session.receive()
            if isinstance(data, Reopened):
                self._cut.clear()
                for context in (*self._contexts.values(),):
                    await context.begin_again()
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

"""One line of a voice: a socket to the vendor, and the contexts that share it.

Rule 1. A vendor's message goes to the context that it names. A message for a finished context is
dropped: it is late audio of an interrupted utterance.
Rule 2. A context, even a cancelled one, counts against the line's limit until the vendor says that
it is final, the line is lost, or the vendor has forgotten it.
Rule 3. If the vendor names no contexts, the line has one at a time, which gets all messages; a
context that is left before all was said closes the line.
Rule 4. A line is sound once it has brought speech; a greeting proves nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import trio

from bargein.bridge.websocket import Data
from bargein.nodes.services import (
    UNREADABLE,
    SessionReopened,
    VendorAddress,
    VendorError,
    VendorSession,
)
from bargein.routes.logs import get_logger

from ._flush_limit import FlushLimit
from ._voice_context import VendorVoiceContext

log = get_logger()


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """A vendor's limit on the contexts open at once on one socket."""

    most: int
    is_final: Callable[[Mapping[str, Any]], bool]
    """Whether a message is the last one of the context that it names."""
    forgotten_s: float
    """How long after its cancel the vendor drops a context by itself, in seconds."""


class VoiceLine:
    """Reads a session and gives each context its messages."""

    def __init__(
        self,
        address: VendorAddress,
        session: VendorSession,
        context_of: Callable[[Mapping[str, Any]], str | None] | None,
        limit: ContextLimit | None,
        flush_limit: FlushLimit,
    ) -> None:
        """Keep the session, which `open_session` runs.

        Args:
            address: The address of the line.
            session: The session.
            context_of: Returns the context that a message belongs to; ``None`` if it belongs to
                none. ``None`` instead of the function if no message names one.
            limit: How many contexts the line may have; ``None`` for no limit.
            flush_limit: How often the line may be flushed.
        """
        self.address = address
        self.session = session
        self.flush_limit = flush_limit
        self.left_at_s = -math.inf  # when the last context left it
        self.is_spent = False  # it takes no further context
        self._context_of = context_of
        self._limit = limit
        most = math.inf if limit is None else limit.most
        self._most_contexts = 1 if context_of is None else most
        self._contexts: dict[str, VendorVoiceContext] = {}
        self._cut: dict[str, float] = {}  # until when each counts, unless it is final earlier
        self._unused_s = math.inf  # how long the line may be unused, and the scope that ends it
        self._use = trio.CancelScope()
        self._error: VendorError | None = None
        self._revived = trio.Event()

    def has_room(self) -> bool:
        """Return whether there is room for another context."""
        now = trio.current_time()
        self._cut = {name: until_s for name, until_s in self._cut.items() if until_s > now}
        is_full = len(self._contexts) + len(self._cut) >= self._most_contexts
        return not (is_full or self.is_spent or self._use.cancel_called)

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

    def join(self, name: str, context: VendorVoiceContext) -> None:
        """Start routing messages to a context."""
        self._contexts[name] = context
        self._use.deadline = math.inf

    def leave(self, name: str) -> None:
        """Stop routing messages to a context."""
        context = self._contexts.pop(name)
        now = self.left_at_s = trio.current_time()
        if not self._contexts:
            self._use.deadline = now + self._unused_s
        if self._limit is not None and context.is_open_at_vendor:
            self._cut[name] = now + self._limit.forgotten_s
        if self._context_of is None:
            self.is_spent = self.flush_limit.is_scarce or not context.is_all_said

    def close(self) -> None:
        """Close the line at once."""
        self._use.cancel(reason="the line has no further use")

    def give_up_late(self) -> float:
        """Fail the contexts whose answer is overdue; return when the next one may be."""
        next_s = math.inf
        for context in self._contexts.values():
            if context.late_at_s <= trio.current_time():
                context.give_up()
            next_s = min(next_s, context.late_at_s)
        return next_s

    async def run(self, unused_s: float, *, is_kept: bool) -> None:
        """Read until the line is closed, or was unused for some time.

        Args:
            unused_s: How long it may be unused, in seconds.
            is_kept: Whether to wait until the session is revived after it was given up.
        """
        self._unused_s = unused_s
        with self._use:
            self._use.deadline = trio.current_time() + unused_s
            await self._read_until_given_up()
            while is_kept:
                await self._revived.wait()
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
            if isinstance(data, SessionReopened):
                self._cut.clear()
                for context in (*self._contexts.values(),):
                    await context.send_again()
            elif not self._route(data):
                self.session.suspect()
            elif self._context_of is None:
                for context in (*self._contexts.values(),):
                    await context.send_delayed_flush()

    def _route(self, data: Data) -> bool:
        """Give a message to its context; return whether it was part of a speech."""
        try:
            message = self._parse(data)
            if isinstance(message, bytes) and self._context_of is None:
                alone = self._only_context
                if alone is not None:
                    alone.hear(message)
                return alone is not None
            if not isinstance(message, dict):
                raise TypeError("no object")
            name = None if self._context_of is None else self._context_of(message)
            context = self._contexts.get(name) if name is not None else None
            if name is None and self._context_of is None:
                context = self._only_context
            elif name is None and _is_error(message):  # it may be of any context
                for each in (*self._contexts.values(),):
                    each.read(message)
                return False
            if context is not None:
                return context.read(message)
            if name in self._cut:
                self._end_cut(name, message)
            return False
        except UNREADABLE as error:
            kind = type(error).__name__
            log.warning("vendor_message_unreadable", vendor=self.address.vendor, error=kind)
            return False

    def _parse(self, data: Data) -> Any:
        """Return the message in data of the line, or its audio, which names no context."""
        if self.address.parse is not None:
            return self.address.parse(data)
        is_audio = isinstance(data, bytes) and self._context_of is None and not _is_json(data)
        return data if is_audio else json.loads(data)

    @property
    def _only_context(self) -> VendorVoiceContext | None:
        contexts = self._contexts.values()
        return next(iter(contexts)) if len(contexts) == 1 else None

    def _end_cut(self, name: str, message: Mapping[str, Any]) -> None:
        if self._limit is not None and self._limit.is_final(message):
            del self._cut[name]


def _is_json(data: bytes) -> bool:
    """Return whether binary data is a message; audio is none, even if it begins like one."""
    if not data.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _is_error(message: Mapping[str, Any]) -> bool:
    return "error" in (message.get("type"), *message)

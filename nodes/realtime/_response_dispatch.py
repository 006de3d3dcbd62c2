"""The responses of one line: routes messages to them and cleans up unwanted ones.

Rule 1. Nothing of an unwanted response reaches a reader, and what no reader got is deleted from the
vendor's conversation.
Rule 2. A response may be started before it is requested; it is claimed by the request or discarded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

from bargein.nodes.services import VendorError
from bargein.routes.logs import get_logger

from ._protocol import (
    AskRefused,
    CallAsked,
    ItemAdded,
    ResponseBegan,
    ResponseOver,
    SpeechGiven,
    TextGiven,
)
from ._response import Response

log = get_logger()

ResponseFact = (
    ResponseBegan | ItemAdded | SpeechGiven | TextGiven | CallAsked | ResponseOver | AskRefused
)
"""A fact about a response."""


class ResponseCodec(Protocol):
    """The part of a codec that cancels responses."""

    def cancel(self, response: str) -> str:
        """Return the message that ends a response."""
        ...


class Responses:
    """The open responses of one line, in the order in which they were requested."""

    def __init__(
        self,
        vendor: str,
        codec: ResponseCodec,
        *,
        post: Callable[[str], None],
        delete: Callable[[str], None],
    ) -> None:
        """Start without an open response.

        Args:
            vendor: The vendor's name, for errors.
            codec: Writes the message that cancels a response.
            post: Sends a message to the vendor.
            delete: Asks the vendor to delete an item of the conversation, by its id.
        """
        self._vendor = vendor
        self._codec = codec
        self._post = post
        self._delete = delete
        self._open: list[Response] = []
        self._early: Response | None = None
        self._changed = trio.Event()

    @property
    def is_empty(self) -> bool:
        """Whether all responses are over."""
        return not self._open

    async def until_empty(self) -> None:
        """Wait until all responses are over."""
        while self._open:
            self._changed = trio.Event()
            await self._changed.wait()

    def add(self, response: Response, *, early: bool) -> None:
        """Add a requested response; `early` if it was started before anybody wants it."""
        self._open.append(response)
        if early:
            self._early = response

    def claim_early(self) -> Response | None:
        """Return the response that was started early; None if there is none."""
        early, self._early = self._early, None
        return early

    def throw_away(self) -> None:
        """End the response that was started early, if it was not claimed."""
        early = self.claim_early()
        if early is not None:
            log.debug("realtime_early_response_thrown_away")
            self.leave(early)

    def leave(self, response: Response) -> None:
        """End a response, and delete the items of which its reader got nothing."""
        if response.is_read or not response.is_wanted:
            return
        response.leave()
        if response.name and not response.is_over:
            self._cancel(response)
        for item in response.items:
            if item not in response.used:
                self._delete(item)

    def lose(self) -> None:
        """End all responses because their line was lost."""
        for response in self._open:
            response.lose(self._vendor)
        self._open.clear()
        self._early = None
        self._changed.set()

    def fail(self, error: VendorError) -> None:
        """End all responses with an error."""
        for response in self._open:
            response.fail(error)
        self._changed.set()

    # --- from the vendor ------------------------------------------------------------------------

    def follow(self, fact: ResponseFact) -> None:
        """Route a fact to its response; drop late facts, which belong to none."""
        match fact:
            case ResponseBegan():
                self._start(fact)
            case AskRefused():
                self._refuse(fact)
            case _:
                response = next((r for r in self._open if r.name == fact.response), None)
                if response is not None:
                    self._add_to(response, fact)

    def _start(self, fact: ResponseBegan) -> None:
        waiting = (r for r in self._open if not r.name and fact.ask in ("", r.ask))
        response = next(waiting, None)
        if response is None:  # requested over a lost line, or by nobody
            self._post(self._codec.cancel(fact.response))
            return
        response.start(fact.response)
        if not response.is_wanted:
            self._cancel(response)

    def _refuse(self, fact: AskRefused) -> None:
        response = next((r for r in self._open if r.ask == fact.ask), None)
        if response is None:
            log.warning("vendor_error", vendor=self._vendor, code=fact.error.code)
            return
        response.add(fact)
        self._remove(response)

    def _add_to(
        self,
        response: Response,
        fact: ItemAdded | SpeechGiven | TextGiven | CallAsked | ResponseOver,
    ) -> None:
        response.add(fact)
        if isinstance(fact, ItemAdded) and not response.is_wanted:
            self._delete(fact.item)
        problem = "" if response.is_over else response.excess()
        if problem:
            response.fail(VendorError(self._vendor, problem))
            self._cancel(response)
        if isinstance(fact, ResponseOver):
            self._remove(response)

    def _remove(self, response: Response) -> None:
        self._open.remove(response)
        self._changed.set()

    def _cancel(self, response: Response) -> None:
        if response.mark_cancelled():
            self._post(self._codec.cancel(response.name))

"""The messages of the native protocol by which a client sees what happens in its call.

A client sends ``watch``, and ``watching`` answers it.  Then ``seen`` follows for each event of the
call except audio, and each time a route acts or does not act on an event.  Times are seconds since
the call began, on the server's clock.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ._message_base import JsonObject, NativeMessage, Request

WatchLevel = Literal["off", "events", "words"]
"""How much clients may see of their own calls.

``off`` shows only what the protocol needs; ``events`` shows every event without the words in it;
``words`` shows everything, including what people say and what tools are given and return."""

# --- client to server ---------------------------------------------------------------------------


class Watch(NativeMessage):
    """Turns the ``seen`` messages on or off."""

    type: Literal["watch"] = "watch"
    on: bool
    request: Request | None = None


WatchMessage = Watch

# --- server to client ---------------------------------------------------------------------------


class Watching(NativeMessage):
    """Answers ``watch``."""

    type: Literal["watching"] = "watching"
    on: bool
    """Whether ``seen`` messages will follow; false if the server does not allow them."""
    words: bool
    """Whether they include what people say, and what tools are given and return."""
    at_s: float
    """The current time of the call."""
    request: Request | None = None


class Seen(NativeMessage):
    """An event was published, or a route acted or did not act on one."""

    type: Literal["seen"] = "seen"
    at_s: float
    """When it happened."""
    name: str
    """The alias of the event; for a route, ``route.`` followed by its verdict."""
    source: str
    """Who published it: ``caller``, ``call`` or the name of a bridge."""
    id: int
    """The number of the event within the call; for a route, the number of the event it saw."""
    answer: int | None = None
    """The answer that it belongs to; absent if there is none."""
    data: JsonObject
    """The fields of the event; long values are shortened."""
    hidden: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    """The names of fields that are left out because they may hold words."""
    lost: int | None = None
    """How many ``seen`` messages before this one were dropped because the client read too
    slowly."""

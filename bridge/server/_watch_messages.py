"""The messages of the native protocol by which a client sees what happens in its call.

A client that wants to know sends ``watch``; ``watching`` answers it, and ``seen`` follows for each
event of the call but audio, and for each time a route did or did not act on one.  Their times are
in seconds since the call began, on the server's clock.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ._message_base import JsonObject, Request, Wire

WatchLevel = Literal["off", "events", "words"]
"""What clients may see of their own calls: nothing but what the protocol tells anyway; every event,
without the words in it; or all of it, also what people say, and what tools are given and return."""

# --- client to server ---------------------------------------------------------------------------


class Watch(Wire):
    """Asks to be told of everything that happens from now on, or of nothing more."""

    type: Literal["watch"] = "watch"
    on: bool
    request: Request | None = None


WatchMessage = Watch

# --- server to client ---------------------------------------------------------------------------


class Watching(Wire):
    """Answers ``watch``."""

    type: Literal["watching"] = "watching"
    on: bool
    """Whether ``seen`` will come; False, too, where the server does not allow it."""
    words: bool
    """Whether they hold what people say, and what tools are given and return."""
    at_s: float
    """The time now."""
    request: Request | None = None


class Seen(Wire):
    """Something happened."""

    type: Literal["seen"] = "seen"
    at_s: float
    """When it happened."""
    name: str
    """The alias of the event; ``route.`` and a verdict for what a route did."""
    source: str
    """Who published it: ``caller``, ``call`` or the name of a bridge."""
    id: int
    """The number of the event within the call; that of its cause for what a route did."""
    turn: int | None = None
    """The turn that it belongs to, if any."""
    data: JsonObject
    """The fields of the event; long ones are shortened."""
    hidden: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    """Fields that are left out because they may hold words."""
    lost: int | None = None
    """How many before this one were never sent, because the client took them too slowly."""

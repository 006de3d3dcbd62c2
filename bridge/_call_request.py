"""How a client asked for its call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What a client sent to open a call over the server, for an app that decides by it.

    Nothing of it is proven but what the app can check: a cookie of its own, a signed token, an
    address behind a proxy that it trusts.
    """

    mode: Literal["audio", "text"]
    thread: str | None
    """The conversation that it names; None if it names none."""
    headers: Mapping[str, str]
    """By their names in lower case; values of a repeated one are joined by commas."""
    query: Mapping[str, str]
    """The parameters of the address; of a repeated one the first."""
    peer: str
    """The address of the other end of the socket; empty where it has none."""

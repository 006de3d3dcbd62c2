"""An HTTP request, as those see it who answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final
from urllib.parse import parse_qs

from websockets.datastructures import Headers


@final
@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request.

    Its text shows no header, no query and no body, where secrets and names of people are.
    """

    method: str
    path: str = field(repr=False)
    """The path, with its query."""
    headers: Headers = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    """Its body, if that was read."""

    @property
    def route(self) -> str:
        """The path, without its query."""
        return self.path.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the query; the first value of a repeated one."""
        found = parse_qs(self.path.partition("?")[2], keep_blank_values=True)
        return {name: values[0] for name, values in found.items()}

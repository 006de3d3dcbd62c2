"""The keys of vendors: from an argument or the environment, and never in a text."""

from __future__ import annotations

import os
from typing import final


@final
class Credential:
    """A secret that no ``repr``, log line or error shows.

    Attributes:
        is_given: Whether there is one.
    """

    __slots__ = ("_secret",)

    def __init__(self, vendor: str, given: str | None, variable: str) -> None:
        """Take a key.

        Args:
            vendor: Whose key it is, for the error.
            given: The key; None takes it from the environment.
            variable: The environment variable that has it otherwise.

        Raises:
            ValueError: There is none, or it cannot stand in a header.
        """
        secret = (os.environ.get(variable, "") if given is None else given).strip()
        if not secret:
            raise ValueError(f"{vendor} requires a key: pass api_key= or set {variable}")
        if not secret.isascii() or not secret.isprintable():
            raise ValueError(
                f"the key for {vendor} has characters that no header may have: "
                f"look at api_key= or {variable}"
            )
        self._secret = secret

    def reveal(self) -> str:
        """Return the key, for the one header that it is sent in."""
        return self._secret

    def __repr__(self) -> str:
        return "<a key>"

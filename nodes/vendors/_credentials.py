"""API keys of vendors, read from an argument or the environment and kept out of every text."""

from __future__ import annotations

import os
from typing import final


@final
class Credential:
    """An API key that never appears in a ``repr``, a log line or an error."""

    __slots__ = ("_secret",)

    def __init__(self, vendor: str, given: str | None, variable: str) -> None:
        """Wrap a key.

        Args:
            vendor: The vendor's name, for the error.
            given: The key; ``None`` reads the environment.
            variable: The environment variable to read.

        Raises:
            ValueError: There is no key, or a header cannot hold it.
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
        """Return the key, to put it into the header that sends it."""
        return self._secret

    def __repr__(self) -> str:
        return "<a key>"

"""The words for an answer that failed."""

from __future__ import annotations

APOLOGY = "Sorry, something is not working here. Could you say that again, please?"
"""Written when an answer of a text-only call ended without a word; voices say it, too."""

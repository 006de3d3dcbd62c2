"""Where Deepgram is, and how it takes its key."""

from __future__ import annotations

from bargein.nodes.services import Vendor

from .errors import DEEPGRAM_ERRORS

DEEPGRAM = Vendor(
    errors=DEEPGRAM_ERRORS,
    url="wss://api.deepgram.com",
    variables="DEEPGRAM",
    key_form="Token {}",
)

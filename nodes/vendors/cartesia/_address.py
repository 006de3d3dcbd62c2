"""Where Cartesia is, and how it takes its key."""

from __future__ import annotations

from bargein.nodes.services import Vendor

from .errors import CARTESIA_ERRORS

VERSION = "2026-08-14"
"""The API version that the vendor's SDK 4.2 requests."""

CARTESIA = Vendor(
    errors=CARTESIA_ERRORS,
    url="wss://api.cartesia.ai",
    variables="CARTESIA",
    headers={"Cartesia-Version": VERSION},
)

"""Where ElevenLabs is, and how it takes its key."""

from __future__ import annotations

from bargein.nodes.services import Vendor

from .errors import ELEVENLABS_ERRORS

ELEVENLABS = Vendor(
    errors=ELEVENLABS_ERRORS,
    url="wss://api.elevenlabs.io",
    variables="ELEVENLABS",
    key_header="xi-api-key",
    key_form="{}",
)

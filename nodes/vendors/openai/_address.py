"""Where OpenAI is, over WebSockets and over HTTP, and how it takes its key."""

from __future__ import annotations

from dataclasses import replace

from bargein.nodes.services import Vendor

from .errors import OPENAI_ERRORS

OPENAI = Vendor(errors=OPENAI_ERRORS, url="wss://api.openai.com/v1", variables="OPENAI")
OPENAI_HTTP = replace(OPENAI, url="https://api.openai.com/v1", key_header="authorization")

"""Where the WebSocket protocol logs: nowhere.

At DEBUG it would write the headers of handshakes, with keys and tokens, and every message, with
what people say.
"""

from __future__ import annotations

import logging

PROTOCOL_LOG = logging.Logger("websockets", logging.CRITICAL + 1)
"""A logger outside of the tree of loggers, so that no setting of an app's turns it on."""

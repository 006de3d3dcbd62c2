"""The answers to a carrier's webhooks, in TwiML; Telnyx' TeXML has the same elements."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from xml.sax.saxutils import escape, quoteattr

from websockets.http11 import Response

from ...websocket import http_response

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def relay(url: str, after: str, token: str, attributes: Mapping[str, str]) -> Response:
    """Return the answer that connects a call to a socket of ConversationRelay.

    Args:
        url: The socket's address.
        after: The address that is asked what comes next when the relay is over.
        token: What comes back as a parameter of the first message.
        attributes: The element's further attributes.
    """
    given = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    return _answer(
        f"<Connect action={quoteattr(after)}>"
        f"<ConversationRelay url={quoteattr(url)}{given}>"
        f'<Parameter name="token" value={quoteattr(token)}/>'
        "</ConversationRelay></Connect>"
    )


def dial(target: str) -> Response:
    """Return the answer that connects the caller to a number, or a SIP address."""
    said = f"<Sip>{escape(target)}</Sip>" if target.startswith("sip:") else escape(target)
    return _answer(f"<Dial>{said}</Dial>")


def hang_up() -> Response:
    """Return the answer that ends a call."""
    return _answer("<Hangup/>")


def busy() -> Response:
    """Return the answer by which the caller hears that the line is busy."""
    return _answer('<Reject reason="busy"/>')


def _answer(verbs: str) -> Response:
    body = f"{_HEAD}<Response>{verbs}</Response>".encode()
    return http_response(HTTPStatus.OK, "text/xml; charset=utf-8", body)

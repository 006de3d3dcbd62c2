"""Whom SIP calls: numbers, extensions and addresses, as the stack wants them."""

from __future__ import annotations

import re
from urllib.parse import quote

from ..._line_abilities import CallActionError
from ..telephone.placed_calls import DialStatus

_NUMBER = re.compile(r"\+?[0-9*#]{1,32}")
_ADDRESS = re.compile(
    r"sips?:[\w.!~*'()%&=+$,-]{1,64}@(?:[A-Za-z0-9.-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
    r"(?:;transport=(?:udp|tcp|tls))?",
    re.ASCII,
)
"""A SIP address without headers or other parameters (RFC 3261, section 19.1)."""

STATUSES: dict[int, DialStatus] = {
    486: "busy", 600: "busy", 603: "busy", 408: "no_answer", 480: "no_answer", 487: "canceled",
}  # fmt: skip
"""What a final response to an INVITE means (RFC 3261, section 21); a person who declines (603) is
busy for whoever calls."""


def checked_target(target: str) -> str:
    """Return a number, an extension or a SIP address, without the marks with which people write it.

    Raises:
        CallActionError: It is none of these.
    """
    plain = re.sub(r"[\s().\-\u2010-\u2015]", "", target)
    if _NUMBER.fullmatch(plain):
        return plain
    if _ADDRESS.fullmatch(target):
        return target
    raise CallActionError(
        "the number is none that can be called",
        cause="refused",
        advice="write a number, an extension, or an address such as sip:help@pbx.example.com",
    )


def uri_of(target: str, domain: str) -> str:
    """Return the address of a checked target.

    Args:
        target: What ``checked_target()`` returned.
        domain: Where numbers are called: the PBX or trunk, with its port if it has one.

    Raises:
        CallActionError: It is a number, and nobody is known who calls numbers.
    """
    if target.startswith("sip"):
        return target
    if not domain:
        raise CallActionError(
            "the number cannot be called",
            cause="unable",
            advice="Sip(domain=) names the PBX or trunk that calls numbers",
        )
    return f"sip:{quote(target, safe='+*')}@{domain}"


def host_of(address: str) -> str:
    """Return the host of a SIP address, with its port; empty for none."""
    found = re.search(r"@([A-Za-z0-9.-]+(?::[0-9]+)?|\[[0-9A-Fa-f:.]+\](?::[0-9]+)?)", address)
    return found[1] if found else ""


def status_of(why_closed: str) -> DialStatus:
    """Return what became of a call that nobody has answered.

    Args:
        why_closed: Why it is over, in the stack's words, such as ``486 Busy Here``.
    """
    code = why_closed[:3]
    return STATUSES.get(int(code), "failed") if code.isdecimal() else "failed"

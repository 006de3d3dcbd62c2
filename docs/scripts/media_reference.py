"""Writes the table of carriers in docs/media-streams.md, from what each carrier's file says of it.

Run ``python -m docs.scripts.media_reference`` after a carrier came or learned something; a test
compares the table with what this program would write.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bargein.bridge.wires.sip._sip_transport import LEAD_S
from bargein.bridge.wires.telephone import exotel, plivo, telnyx_media, twilio_media, vonage
from bargein.bridge.wires.telephone._media_codec import MediaDialect

PAGE = Path(__file__).parents[2] / "docs" / "media-streams.md"
HEADING = "## What each carrier can and cannot do\n"

DIALECTS: tuple[MediaDialect, ...] = (
    twilio_media.DIALECT,
    telnyx_media.DIALECT,
    plivo.DIALECT,
    vonage.DIALECT,
    exotel.DIALECT,
)
"""One a carrier, in the order of the table."""

ENCODINGS = {"mu_law": "mu-law", "a_law": "A-law", "l16": "PCM16"}


def _sound(dialect: MediaDialect) -> str:
    sound = dialect.sound
    pieces = f"from {dialect.shortest_piece_ms} ms"
    if dialect.longest_piece_ms == dialect.shortest_piece_ms:
        pieces = f"exactly {dialect.shortest_piece_ms} ms"
    return f"{ENCODINGS[sound.encoding]}, {sound.rate_hz // 1000} kHz; pieces {pieces}"


def _cut(dialect: MediaDialect) -> str:
    if not dialect.can_clear:
        return f"nothing more is sent; {dialect.lead_s * 1000:.0f} ms are still heard"
    told = ", and it says so" if dialect.acknowledges_clear else ""
    return f"it drops at once what it has{told}"


def _heard(dialect: MediaDialect) -> str:
    if dialect.knows_played == "nothing":
        return "by the clock"
    marks_ms = max(dialect.mark_ms, dialect.shortest_piece_ms)
    return f"by marks, to {marks_ms} ms, and to the word where the voice tells its words"


ROWS: dict[str, Callable[[MediaDialect], str]] = {
    "sound": _sound,
    "a cut": _cut,
    "a hold": lambda dialect: (
        "it is cleared, and the release sends the rest from the first word that was not heard"
    ),
    "how exact heard is": _heard,
    "marks of sound that was dropped": lambda dialect: (
        "come back at once, and count for nothing"
        if dialect.returns_marks_at_clear
        else "do not come back"
    ),
    "the caller's sound": lambda dialect: (
        "in order" if dialect.keeps_order else "in any order; it is put in order, within 80 ms"
    ),
    "keys of the caller": lambda dialect: "told" if dialect.keys_in else "not told",
    "keys of the agent": lambda dialect: (
        "by the stream" if dialect.keys_out else "not by the stream"
    ),
}

SIP = {
    "sound": "G.711, G.722 or Opus, 8 to 48 kHz; pieces exactly 20 ms",
    "a cut": "the stack drops what waits, but for the 20 ms under way",
    "a hold": "it is cleared, and the release sends the rest from the first word not heard",
    "how exact heard is": f"by what was sent, of which at most {LEAD_S * 1000:.0f} ms wait",
    "marks of sound that was dropped": "there are none",
    "the caller's sound": "in order",
    "keys of the caller": "told",
    "keys of the agent": "by the stream",
}
"""What SIP does, which has no carrier's dialect."""


def reference() -> str:
    """Return the text of the page."""
    before, _, rest = PAGE.read_text("utf-8").partition(HEADING)
    behind = rest[rest.index("\n## ") :]
    head = "| | " + " | ".join(dialect.carrier for dialect in DIALECTS) + " | SIP |\n"
    rule = "|---" * (2 + len(DIALECTS)) + "|\n"
    rows = "".join(
        f"| {name} | " + " | ".join(row(dialect) for dialect in DIALECTS) + f" | {SIP[name]} |\n"
        for name, row in ROWS.items()
    )
    return f"{before}{HEADING}\n{head}{rule}{rows}{behind}"


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")

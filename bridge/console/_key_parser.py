"""Parses the bytes of a terminal into keys; no I/O.

Rule 1. However the bytes are split, the keys are the same.
Rule 2. Only a pause tells a lone Esc from the start of a sequence; the reader calls ``expire()``
when ``patience_s`` has passed without a byte.
Rule 3. Pasted bytes are text, and never keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LONE_ESC_S = 0.03
"""How many seconds after an Esc the rest of a sequence may arrive: terminals send a sequence in one
piece, and a finger takes longer for a second key."""

SEQUENCE_S = 0.5
"""How many seconds the rest of a sequence that has certainly started may take, on a slow line."""

MAX_SEQUENCE = 64
"""The longest sequence to wait for, in bytes; those of keys have less than 16."""

MAX_PASTE = 1 << 20
"""After how many bytes a paste is passed on in parts."""

_PASTE_BEGINS = b"\x1b[200~"
_PASTE_ENDS = b"\x1b[201~"

_CONTROL = {
    0x00: "ctrl+space",
    0x08: "backspace",
    0x09: "tab",
    0x0A: "ctrl+j",
    0x0D: "enter",
    0x1B: "esc",
    0x7F: "backspace",
    **{code: f"ctrl+{chr(code + 0x60)}" for code in range(1, 27) if code not in (8, 9, 10, 13)},
}
_FINAL = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "F": "end",
    "H": "home",
    "Z": "shift+tab",
}
_TILDE = {"1": "home", "3": "delete", "4": "end", "5": "pageup", "6": "pagedown", "7": "home",
          "8": "end"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """A key, or a piece of text.

    Attributes:
        name: Such as ``enter``, ``ctrl+a``, ``alt+b`` or ``ctrl+left``; ``text`` for a character,
            ``paste`` for pasted text, ``unknown`` for keys that have no function here.
        text: The character, or the pasted text.
    """

    name: str
    text: str = ""


class KeyParser:
    """Turns bytes into keys."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._pasting = False

    @property
    def patience_s(self) -> float:
        """How many seconds to wait for the next byte before ``expire()``; infinite if no sequence
        has started."""
        if self._pasting or not self._buffer:
            return math.inf
        return LONE_ESC_S if len(self._buffer.lstrip(b"\x1b")) == 0 else SEQUENCE_S

    def feed(self, data: bytes) -> list[Key]:
        """Add bytes, and return the keys that they complete."""
        self._buffer += data
        keys: list[Key] = []
        while self._buffer:
            found = self._parse_paste() if self._pasting else self._next_key()
            if found is None:
                break
            keys += found
        return keys

    def expire(self) -> list[Key]:
        """Return the keys of the bytes so far, if nothing follows."""
        if self._pasting or not self._buffer:
            return []
        data, self._buffer = bytes(self._buffer), bytearray()
        if not data.strip(b"\x1b"):
            return [Key("esc")] * len(data)
        return [Key("unknown")]

    def reset(self) -> None:
        """Forget an unfinished key or paste."""
        self._buffer.clear()
        self._pasting = False

    # --- implementation -------------------------------------------------------------------------

    def _next_key(self) -> list[Key] | None:
        """Remove and return one key; ``None`` while it is incomplete."""
        if self._buffer[0] == 0x1B:
            return self._parse_escape()
        if self._buffer[0] < 0x20 or self._buffer[0] == 0x7F:
            return [Key(_CONTROL.get(self._drop(1)[0], "unknown"))]
        character = self._parse_character()
        return None if character is None else [character]

    def _parse_escape(self) -> list[Key] | None:
        buffer = self._buffer
        if len(buffer) == 1:
            return None
        if buffer[1] == 0x1B:
            # Esc twice, or Alt on a terminal that sends it as an Esc before a key's sequence.
            if len(buffer) == 2:
                return None
            if buffer[2] not in b"[O":
                self._drop(1)
                return [Key("esc")]
            return self._parse_sequence(1)
        if buffer[1] in b"[O":
            return self._parse_sequence(0)
        return self._parse_alt()

    def _parse_alt(self) -> list[Key] | None:
        code = self._buffer[1]
        if code < 0x20 or code == 0x7F:
            self._drop(2)
            return [Key(f"alt+{_CONTROL.get(code, 'unknown')}")]
        size = max(1, _utf8_size(code))
        if len(self._buffer) < 1 + size:
            return None
        text = bytes(self._drop(1 + size)[1:]).decode("utf-8", "replace")
        return [Key(f"alt+{text}")]

    def _parse_sequence(self, start: int) -> list[Key] | None:
        """Parse CSI or SS3 (ECMA-48, 5.4), after ``start`` further Escs."""
        buffer, first = self._buffer, start + 2
        end = first
        if buffer[start + 1] == 0x4F:  # SS3 has one more byte
            if len(buffer) == first:
                return None
        else:
            while end < len(buffer) and 0x20 <= buffer[end] <= 0x3F and end < MAX_SEQUENCE:
                end += 1
            if end == len(buffer):
                return None
        final = buffer[end]
        if not 0x40 <= final <= 0x7E:  # not a sequence after all: keep the rest
            self._drop(end)
            return [Key("unknown")]
        sequence = bytes(self._drop(end + 1))
        if sequence == _PASTE_BEGINS:
            self._pasting = True
            return []
        return [_key_of(sequence[first:-1].decode("ascii"), chr(final), alt=bool(start))]

    def _parse_character(self) -> Key | None:
        size = _utf8_size(self._buffer[0])
        if not size:
            self._drop(1)
            return Key("text", "\ufffd")
        have = bytes(self._buffer[:size])
        for index, byte in enumerate(have[1:], 1):
            if not 0x80 <= byte <= 0xBF:
                self._drop(index)
                return Key("text", "\ufffd")
        if len(have) < size:
            return None
        text = bytes(self._drop(size)).decode("utf-8", "replace")
        # C1 control characters are not text.
        return Key("unknown") if "\x80" <= text <= "\x9f" else Key("text", text)

    def _parse_paste(self) -> list[Key] | None:
        end = self._buffer.find(_PASTE_ENDS)
        if end >= 0:
            pasted = self._drop(end)
            self._drop(len(_PASTE_ENDS))
            self._pasting = False
            return [Key("paste", pasted.decode("utf-8", "replace"))]
        if len(self._buffer) < MAX_PASTE + 16:
            return None
        return [Key("paste", self._drop(MAX_PASTE).decode("utf-8", "replace"))]

    def _drop(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


def _utf8_size(lead: int) -> int:
    """Return the length of a character with this first byte; 0 if none can start with it."""
    if lead < 0x80:
        return 1
    if 0xC2 <= lead <= 0xDF:
        return 2
    if 0xE0 <= lead <= 0xEF:
        return 3
    return 4 if 0xF0 <= lead <= 0xF4 else 0


def _key_of(parameters: str, final: str, *, alt: bool) -> Key:
    numbers = parameters.split(";")
    name = _TILDE.get(numbers[0]) if final == "~" else _FINAL.get(final)
    if name is None:
        return Key("unknown")
    modifier = int(numbers[1]) - 1 if len(numbers) > 1 and numbers[1].isdigit() else 0
    prefix = "ctrl+" if modifier & 4 else "alt+" if modifier & 2 or alt else ""
    return Key(prefix + name)

"""Word times from espeak's marks; the engine itself is tested through its voice."""

from __future__ import annotations

import pytest

from bargein.nodes.speech._child_espeak import _HUM, _HUMS, words_of


def test_a_dash_has_no_length() -> None:
    """The mark that espeak puts on a dash belongs to the word after it."""
    pcm = b"\x01\x00" * 30
    assert words_of("a - b", [(1, 0.0), (3, 1.0)], pcm, 10) == [
        ("a", 0.0, 1.0),
        ("-", 1.0, 1.0),
        ("b", 1.0, 3.0),
    ]


def test_a_pause_belongs_to_no_word() -> None:
    """A word ends where its sound ends, not where the next begins."""
    pcm = b"\x01\x00" * 5 + bytes(10) + b"\x01\x00" * 10
    assert words_of("a, b", [(1, 0.0), (4, 1.0)], pcm, 10)[0] == ("a,", 0.0, 0.5)


@pytest.mark.parametrize(
    ("text", "hums"),
    [("Mhm.", 1), ("mm-hmm, I see", 1), ("mhm mhm", 2), ("commhm", 0), ("3 mm of mhmx", 0)],
)
def test_a_hum_is_not_spelt(text: str, hums: int) -> None:
    """Hums that stand alone are said with a closed mouth; each stays one word."""
    spoken, count = _HUM.subn(lambda match: _HUMS[match[1].lower()], text)
    assert count == hums
    assert len(spoken.split()) == len(text.split())

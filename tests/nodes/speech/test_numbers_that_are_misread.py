"""Amounts, dates and telephone numbers for engines that misread them in English."""

import pytest

from bargein.speech import EnglishNumbers, EspeakVoice, PiperVoice, PlainWords

WORDS = {
    "It costs $5.99.": "It costs 5 dollars and 99 cents.",
    "$1, $0.50, €5 or £2.01": "1 dollar, 50 cents, 5 euros or 2 pounds and 1 penny",
    "$1,234.56 and $2 million.": "1234 dollars and 56 cents and 2 million dollars.",
    "On 2026-11-26 at 10:30": "On November 26, 2026 at 10:30",
    "Call 555-0123 or 415-555-0199.": "Call 5 5 5, 0 1 2 3 or 4 1 5, 5 5 5, 0 1 9 9.",
    "At +1 415 555 0123, (415) 555-0123": (
        "At plus 1, 4 1 5, 5 5 5, 0 1 2 3, 4 1 5, 5 5 5, 0 1 2 3"
    ),
    "**$3.50** each": "3 dollars and 50 cents each",
}
LEFT = "25, 3.50, 1,234, A1B2, 3rd, 5%, 192.168.1.1, 2026-13-40, v1.0.0, 1990-2000, $5.999, a-12-3"


def said(text, size):
    """What is said of a text that comes in pieces of a size."""
    form = EnglishNumbers()
    parts = [p for at in range(0, len(text), size) for p in form.feed(text[at : at + size])]
    parts += form.flush()
    assert "".join(part.written for part in parts) == text
    return "".join(part.spoken for part in parts)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_they_are_written_out(size) -> None:
    """Wherever the text is split, what is misread comes in words, and the rest as it is."""
    assert {text: said(text, size) for text in WORDS} == WORDS
    assert said(LEFT, size) == LEFT


def test_a_voice_says_what_it_needs() -> None:
    """The local engines have them written out where they speak English, and nowhere else."""
    assert EspeakVoice().spoken_form is EnglishNumbers
    assert EspeakVoice("de").spoken_form is PlainWords
    assert PiperVoice().spoken_form is EnglishNumbers
    assert PiperVoice("de_DE-thorsten-high.onnx").spoken_form is PlainWords

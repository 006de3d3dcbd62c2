"""Amounts, dates and telephone numbers for engines that misread them, by language."""

import pytest

from bargein.speech import EspeakVoice, NumbersInWords, PiperVoice, PlainWords

WORDS = {
    "en": {
        "It costs $5.99.": "It costs 5 dollars and 99 cents.",
        "$1, $0.50, €5 or £2.01": "1 dollar, 50 cents, 5 euros or 2 pounds and 1 penny",
        "$1,234.56 and $2 million.": "1234 dollars and 56 cents and 2 million dollars.",
        "On 2026-11-26 at 10:30": "On November 26, 2026 at 10:30",
        "Call 555-0123 or 415-555-0199.": "Call 5 5 5, 0 1 2 3 or 4 1 5, 5 5 5, 0 1 9 9.",
        "At +1 415 555 0123, (415) 555-0123": (
            "At plus 1, 4 1 5, 5 5 5, 0 1 2 3, 4 1 5, 5 5 5, 0 1 2 3"
        ),
        "**$3.50** each": "3 dollars and 50 cents each",
    },
    "de": {
        "Das macht 12,50 €, bitte.": "Das macht 12 Euro und 50 Cent, bitte.",
        "1 Euro, 1.234,05 EUR, 0,99€": "ein Euro, 1234 Euro und 5 Cent, 99 Cent",
        "12,- € oder CHF 3,20.": "12 Euro oder 3 Franken und 20 Rappen.",
        "Rund 2,5 Millionen Euro mehr": "Rund 2,5 Millionen Euro mehr",
        "Am 26.11.2026 um 14:30 Uhr": "Am sechsundzwanzigsten November 2026 um 14:30 Uhr",
        "Termin: 1.2.2027, oder 2026-12-03": (
            "Termin: erster Februar 2027, oder dritter Dezember 2026"
        ),
        "Der 3. Mai geht, am 7. März nicht.": "Der dritte Mai geht, am siebten März nicht.",
        "Unter 0711 123456": "Unter 0 7 1 1, 1 2 3 4 5 6",
        "Oder +49 711 123 456.": "Oder plus 49, 7 1 1, 1 2 3, 4 5 6.",
    },
    "fr": {
        "C'est 12,50 € ou 1 euro.": "C'est 12 euros et 50 centimes ou un euro.",
        "1 234,00 €": "1234 euros",
        "2 millions € et 3 milliards $": "2 millions d'euros et 3 milliards de dollars",
        "Le 01/11/2026.": "Le premier novembre 2026.",
        "Au +33 6 12 34 56 78": "Au plus 33, 6, 12, 34, 56, 78",
    },
    "es": {
        "Son 12,50 €.": "Son 12 euros con 50 céntimos.",
        "$12.50 o 1 euro": "12 dólares con 50 centavos o un euro",
        "3 millones de euros": "3 millones de euros",
        "El 26/11/2026": "El 26 de noviembre de 2026",
    },
    "it": {
        "Fanno 12,50 €.": "Fanno 12 euro e 50 centesimi.",
        "Il 1/5/2026": "Il primo maggio 2026",
    },
    "pt": {
        "São R$ 12,50.": "São 12 reais e 50 centavos.",
        "Em 26/11/2026, 1 €": "Em 26 de novembro de 2026, um euro",
    },
    "nl": {
        "Dat is € 12,50.": "Dat is 12 euro en 50 cent.",
        "Op 26-11-2026, 0,01 €": "Op 26 november 2026, één cent",
    },
}
LEFT = {
    "en": "25, 3.50, 1,234, A1B2, 3rd, 5%, 192.168.1.1, 2026-13-40, v1.0.0, 1990-2000, $5.999",
    "de": "25, 3,50, 1.234, A1B2, 3., 5 %, 192.168.1.1, 2026-13-40, 14:30 Uhr, 12 Europas",
    "fr": "25, 3,50, 1 234, A1B2, 14h30, 5 %, 01 23 45 67 89, 1990-2000, 32/13/2026",
    "es": "25, 3,50, 1.234, A1B2, 14:30, 5 %, 91 123 45 67, 1990-2000, 32/13/2026, 12 e, R2D2",
    "it": "25, 3,50, 1.234, A1B2, 14:30, 5 %, 1990-2000, 32/13/2026",
    "pt": "25, 3,50, 1.234, A1B2, 14:30, 5 %, 1990-2000, 32/13/2026, R2",
    "nl": "25, 3,50, 1.234, A1B2, 14:30, 5 %, 1990-2000, 32-13-2026",
}


def said(text: str, size: int, language: str) -> str:
    """What is said of a text that comes in pieces of a size."""
    form = NumbersInWords(language)
    parts = [p for at in range(0, len(text), size) for p in form.feed(text[at : at + size])]
    parts += form.flush()
    assert "".join(part.written for part in parts) == text
    return "".join(part.spoken for part in parts)


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_they_are_written_out(size: int, language: str) -> None:
    """Wherever the text is split, what is misread comes in words, and the rest as it is."""
    words = WORDS[language]
    assert {text: said(text, size, language) for text in words} == words
    assert said(LEFT[language], size, language) == LEFT[language]


def test_a_text_without_numbers_waits_for_nothing() -> None:
    """Words are said as they come; the end that may be a number waits for a few characters."""
    form = NumbersInWords("de")
    spoken = [
        "".join(part.spoken for part in form.feed(text))
        for text in ("Guten Tag, das ", "macht 12", " Stück ", "zusammen.")
    ]
    assert spoken == ["Guten Tag, das ", "macht ", "12 Stück ", "zusammen."]


def test_an_unknown_language_is_refused() -> None:
    """The error names the languages that there are."""
    with pytest.raises(ValueError, match=r"language=\) is one of \['de', 'en', .*: 'tlh'"):
        NumbersInWords("tlh")


@pytest.mark.parametrize(
    ("voice", "language"),
    [
        (EspeakVoice(), "en"),
        (EspeakVoice("de"), "de"),
        (EspeakVoice("pt-br+f3"), "pt"),
        (PiperVoice(), "en"),
        (PiperVoice("de_DE-thorsten-high.onnx"), "de"),
    ],
)
def test_a_voice_has_them_in_its_language(voice: EspeakVoice | PiperVoice, language: str) -> None:
    """The local engines have them written out in the language that they speak."""
    form = voice.spoken_form()
    assert isinstance(form, NumbersInWords)
    text = next(iter(WORDS[language]))
    parts = [*form.feed(text), *form.flush()]
    assert "".join(part.spoken for part in parts) == WORDS[language][text]


def test_a_voice_of_another_language_reads_what_is_written() -> None:
    """Nothing is known of Klingon."""
    assert EspeakVoice("piqd").spoken_form is PlainWords

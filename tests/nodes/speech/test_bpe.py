"""Byte-level BPE, with Whisper's own tokens."""

from __future__ import annotations

from bargein.nodes.speech._bpe import Encoder, decode
from bargein.weights import path_of


def test_tokens_and_text() -> None:
    """The encoder finds Whisper's own tokens, and decoding brings the text back."""
    encoder = Encoder(path_of("whisper-tiny.en") / "tokenizer.json")
    text = " I'd like 2 cappuccinos,  naïve\u00a0café… <3"
    tokens = encoder.encode(text)
    assert decode(tokens) == text
    assert encoder.encode(" the caller") == ["Ġthe", "Ġcaller"]
    vocabulary = (path_of("whisper-tiny.en") / "vocabulary.txt").read_text("utf-8").splitlines()
    assert set(tokens) <= set(vocabulary)
    assert decode(["<|notimestamps|>", "Ġhi"]) == " hi"

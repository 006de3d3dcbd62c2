"""Word times from phoneme lengths; the engine itself is tested through its voice."""

from __future__ import annotations

import pytest

from bargein.nodes.speech._child_piper import align, length_output, word_sizes
from bargein.weights import path_of


def test_sizes_of_spoken_words() -> None:
    """Spaces divide words; punctuation is no sound, and a word of punctuation is none."""
    assert word_sizes(list("həl, ai - .")) == [3, 2]
    assert word_sizes([]) == []


@pytest.mark.parametrize(
    ("written", "spoken", "spans"),
    [
        ([3, 4], [3, 4], [(0, 1), (1, 2)]),
        ([3, 9, 4], [3, 5, 4, 4], [(0, 1), (1, 3), (3, 4)]),  # "25" is two words
        ([3, 2, 2, 4], [3, 4, 4], [(0, 1), (1, 1.5), (1.5, 2), (2, 3)]),  # "of the" is one
        ([3, 0, 4], [3, 4], [(0, 1), (1, 1), (1, 2)]),  # a dash is none
        ([], [], []),
        ([0], [], [(0, 0)]),
    ],
)
def test_alignment(written: list[int], spoken: list[int], spans: list[tuple[float, float]]) -> None:
    """Written words are matched with spoken ones by their numbers of sounds."""
    assert align(written, spoken) == spans


def test_the_output_is_declared_only_where_it_can_be() -> None:
    """A model without a Ceil node, or with the output already there, is left as it is."""
    model = path_of("piper-joe").read_bytes()
    declaration = length_output(model)
    assert 0 < len(declaration) < 100
    assert length_output(model + declaration) == b""
    assert length_output(b"") == b""
    with pytest.raises(ValueError, match="no ONNX file"):
        length_output(b"\x0f")

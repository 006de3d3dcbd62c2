"""How much of a transcript the agent is saying itself."""

from __future__ import annotations

import pytest

from bargein.nodes.user_turns._echo_similarity import similarity

SAYING = "Your parcel left the warehouse on Monday. It should be with you tomorrow."


@pytest.mark.parametrize(
    ("heard", "least", "most"),
    [
        ("the warehouse on Monday", 1.0, 1.0),
        ("the ware house on monday", 0.95, 1.0),
        ("parcel left a warehouse on Monday", 0.8, 0.99),
        ("it should be with you", 1.0, 1.0),
        ("where is my parcel", 0.0, 0.5),
        ("no I never got it", 0.0, 0.3),
        ("you with be should it", 0.0, 0.5),
        ("", 0.0, 0.0),
    ],
)
def test_the_share_of_what_is_being_said(heard, least, most):
    """Words in the order of the agent's count, however they are split or written."""
    assert least <= similarity(heard, SAYING) <= most


def test_nothing_is_like_silence():
    """Without words of the agent there is no echo."""
    assert similarity("hello", "") == 0.0


def test_scripts_without_spaces():
    """Characters are words there."""
    assert similarity("包裹星期一", "您的包裹星期一离开了仓库") == 1.0

"""Settings are checked when they are made."""

from __future__ import annotations

import dataclasses

import pytest

from bargein.nodes.user_turns._settings import SETTINGS, check_changes
from bargein.user_turns import FixedEndpointing, TurnSettings


def test_the_defaults_are_valid_and_frozen():
    """Defaults need no arguments, and do not change."""
    settings = TurnSettings()
    assert (settings.min_duration_s, settings.min_words) == (0.8, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.min_words = 3


def test_every_setting_is_explained():
    """Each field has a docstring of its own in the source."""
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(TurnSettings)).body[0]
    assert isinstance(tree, ast.ClassDef)
    explained = {
        before.target.id
        for before, after in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr)
    }
    assert set(SETTINGS) <= explained


def test_some_settings_change_and_others_stay():
    """but() gives new settings, with the phrases of the new languages."""
    settings = TurnSettings(min_words=2)
    changed = settings.but({"languages": ("de",), "min_duration_s": None})
    assert (changed.min_words, changed.min_duration_s) == (2, None)
    assert changed.phrases.is_acknowledgement("alles klar")
    assert settings.but({}) is settings


def test_the_same_phrases_are_made_once():
    """Settings of each call, and of each state of a call, share the phrases of their languages."""
    settings = TurnSettings()
    assert TurnSettings().phrases is settings.phrases
    assert settings.but({"min_words": 2}).phrases is settings.phrases
    assert settings.but({"acknowledgements": ("roger",)}).phrases is not settings.phrases


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"min_duration_s": -1}, r"TurnSettings\(min_duration_s=\) is seconds from 0, or None"),
        ({"min_duration_s": "0.5"}, "not '0.5'"),
        ({"longest_turn_s": 0}, "seconds above 0, or None, not 0"),
        ({"words_within_s": None}, r"words_within_s=\) is seconds, as a number, not None"),
        ({"min_words": 0}, r"min_words=\) is a whole number from 1, not 0"),
        ({"min_words": 1.5}, "not 1.5"),
        ({"user_away_times": True}, "not True"),
        ({"hint_above": 70}, "a number from 0 to 1, not 70"),
        ({"echo_similarity": None}, "a number from 0 to 1, not None"),
        ({"mute": "tool"}, "tuple of first_message, tool, not 'tool'"),
        ({"mute": ("tools",)}, "knows first_message, tool, not 'tools'"),
        ({"endpointing": 0.7}, r"endpointing=\) is an object with wait_s\(pause\), not 0.7"),
        ({"endpointing": FixedEndpointing}, "is an object with"),
        ({"barge_in": print}, r"judge\(sound, settings\)"),
        ({"start": object()}, r"begins\(sound\), look_after_s"),
    ],
)
def test_wrong_values_fail_when_made(changes, error):
    """The error names the setting, its bounds and what was given."""
    with pytest.raises((TypeError, ValueError), match=error):
        TurnSettings(**changes)


def test_a_wrong_name_names_the_right_ones():
    """A setting that does not exist is an error with the nearest one, and all of them."""
    with pytest.raises(TypeError, match="no setting 'min_word'; did you mean 'min_words'") as told:
        check_changes("when()", {"min_word": 2})
    assert all(name in str(told.value) for name in SETTINGS)
    with pytest.raises(TypeError, match=r"ChangeTurns\(\) knows no setting 'xyzzy'\?"):
        check_changes("ChangeTurns()", {"xyzzy": 2})

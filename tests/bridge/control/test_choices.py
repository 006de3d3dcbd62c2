"""What an answer to a question means."""

import pytest

from bargein.bridge.control._choices import is_never_mind, match_choice

ACCOUNTS = ("Checking account", "Savings account", "Business")


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("Savings account", "Savings account"),
        ("the savings account, please", "Savings account"),
        ("savings", "Savings account"),
        ("Uh, business. Thanks!", "Business"),
        ("the second one", "Savings account"),
        ("2nd", "Savings account"),
        ("the last", "Business"),
        ("2", "Savings account"),
        ("two", "Savings account"),
        ("option three please", "Business"),
        ("number one", "Checking account"),
    ],
)
def test_an_answer_names_a_choice(text, choice):
    """By all its words, by one that no other has, by its place, or by its number."""
    assert match_choice(text, ACCOUNTS) == choice


@pytest.mark.parametrize(
    "text",
    ["", "the account", "checking or savings", "4", "the fourth", "two of them", "first or last"],
)
def test_an_answer_names_no_choice(text):
    """None where it names nothing, or more than one."""
    assert match_choice(text, ACCOUNTS) is None


@pytest.mark.parametrize(
    ("text", "choices", "choice"),
    [
        ("New York City", ("New York", "New York City"), "New York City"),
        ("the second one", ("One way", "Return"), "Return"),
        ("one way", ("Return", "One way"), "One way"),
        ("four", ("2 people", "4 people"), "4 people"),
        ("2", ("2 people", "4 people"), "2 people"),
        ("first", ("Second class", "First class"), "First class"),
        ("No, thanks", ("Yes", "No"), "No"),
        ("cancel", ("Keep it", "Cancel"), "Cancel"),
        ("東京", ("大阪", "東京"), "東京"),
        ("Zürich", ("ZÜRICH", "Genf"), "ZÜRICH"),
        ("anything", (), None),
    ],
)
def test_words_go_before_places(text, choices, choice):
    """A number or an ordinal counts as a place only where it is no word of a choice."""
    assert match_choice(text, choices) == choice


@pytest.mark.parametrize(
    "text", ["Never mind.", "oh, nevermind, thanks", "Forget it", "no, cancel that please", "STOP!"]
)
def test_a_question_is_taken_back(text):
    """Phrases that say so, with what politeness puts around them."""
    assert is_never_mind(text)


@pytest.mark.parametrize("text", ["", "no", "never mind the price", "stop at the bakery", "last"])
def test_an_answer_is_no_never_mind(text):
    """Such words within an answer take nothing back."""
    assert not is_never_mind(text)

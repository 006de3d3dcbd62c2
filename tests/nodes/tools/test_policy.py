"""Policies of tools."""

import math

import pytest

from bargein.tools import Policy, ToolDefinitionError, finish, shield, tool


def as_policy(given):
    """Return the policy of a tool for which this was given."""

    @tool("work", policy=given)
    async def work() -> None:
        """Do nothing."""

    return work.policy


def test_policies_with_a_number():
    """A grace and a cap are seconds."""
    assert finish(2) == Policy("finish", 2.0)
    assert shield(0.5) == Policy("shield", 0.5)


def test_policies_without_a_number():
    """The others may be given as plain words, and a policy is taken as it is."""
    assert as_policy("cancel") == Policy("cancel")
    assert as_policy("detach").kind == "detach"
    assert as_policy(finish(1)) == finish(1)


@pytest.mark.parametrize("make", [finish, shield])
@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, "2", None, True])
def test_impossible_numbers(make, seconds):
    """A limit is finite and above 0, and the error says what was given."""
    with pytest.raises(ToolDefinitionError, match="a finite number of seconds above 0"):
        make(seconds)


@pytest.mark.parametrize("word", ["finish", "shield"])
def test_a_word_that_needs_its_number(word):
    """The error shows how to write it."""
    with pytest.raises(ToolDefinitionError, match=rf"policy={word}\(2.0\)"):
        as_policy(word)


@pytest.mark.parametrize("given", ["kill", None, 3, finish])
def test_what_is_no_policy(given):
    """The error lists the policies."""
    with pytest.raises(ToolDefinitionError, match="policy= is 'cancel', 'detach', finish"):
        as_policy(given)

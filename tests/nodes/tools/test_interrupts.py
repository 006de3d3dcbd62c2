"""Each policy and each verb, as a table."""

import pytest
import trio

from bargein.control import STRENGTH
from bargein.nodes.tools._interrupts import FORCED, Interrupts
from bargein.nodes.tools._policy import as_policy
from bargein.tools import finish, shield

STOPPING = ("barge_in", "pause", "redirect", "cancel")

# At 3 s, a tool that began at 0: what a verb does, until when, and the words for it.
TABLE = [
    ("cancel", "cut", None, "is stopped"),
    (finish(2.0), "wait", 5.0, "may finish, at most 2 s"),
    (shield(8.0), "wait", 8.0, "may finish, at most 5 s"),
    (shield(3.0), "cut", None, "is stopped"),
    ("detach", "move", None, "goes on in the background"),
]


def tell(interrupts, verb, *, is_job=False, is_cut=False, commit_until_s=-1.0):
    return interrupts.consequence(verb, is_job=is_job, is_cut=is_cut, commit_until_s=commit_until_s)


@pytest.mark.parametrize(("policy", "effect", "stop_at_s", "words"), TABLE)
@pytest.mark.parametrize("verb", STOPPING)
async def test_a_verb_acts_by_the_policy(autojump_clock, policy, effect, stop_at_s, words, verb):
    """What is told before is what happens then."""
    interrupts = Interrupts(as_policy(policy), 0.0)
    await trio.sleep(3)
    assert interrupts.effect_of(verb, is_job=False) == effect
    assert tell(interrupts, verb) == words
    assert interrupts.verb is None
    assert interrupts.take(verb, is_job=False) == effect
    assert interrupts.verb == verb
    assert interrupts.stop_at_s == (float("inf") if stop_at_s is None else stop_at_s)


@pytest.mark.parametrize("policy", [row[0] for row in TABLE])
@pytest.mark.parametrize("verb", FORCED)
@pytest.mark.parametrize("is_job", [False, True])
async def test_some_verbs_ask_no_policy(autojump_clock, policy, verb, is_job):
    """Whatever the policy, also after a weaker verb, and for a job."""
    interrupts = Interrupts(as_policy(policy), 0.0)
    interrupts.take("barge_in", is_job=is_job)
    assert tell(interrupts, verb, is_job=is_job) == "is stopped"
    assert interrupts.take(verb, is_job=is_job) == "force"


@pytest.mark.parametrize("first", [*STOPPING, *FORCED])
@pytest.mark.parametrize("second", [*STOPPING, *FORCED])
async def test_only_a_stronger_verb_does_something_new(autojump_clock, first, second):
    """The same verb again, or a weaker one, does nothing."""
    interrupts = Interrupts(finish(2.0), 0.0)
    interrupts.take(first, is_job=False)
    await trio.sleep(1)
    effect = interrupts.take(second, is_job=False)
    assert (effect == "nothing") == (STRENGTH[second] <= STRENGTH[first])
    if first not in FORCED:
        assert interrupts.stop_at_s == 2.0  # and no grace grows


async def test_a_detached_job_has_done_what_its_policy_says(autojump_clock):
    """It is interrupted no more; a job with another policy is."""
    assert Interrupts(as_policy("detach"), 0.0).take("cancel", is_job=True) == "nothing"
    assert tell(Interrupts(as_policy("detach"), 0.0), "cancel", is_job=True) == (
        "goes on in the background"
    )
    assert Interrupts(as_policy("cancel"), 0.0).take("cancel", is_job=True) == "cut"


async def test_moving_after_a_verb(autojump_clock):
    """Only what is weaker than `background` may be overruled by it, and is then forgotten."""
    for verb, may in [("barge_in", True), ("pause", True), ("redirect", False), ("cancel", False)]:
        interrupts = Interrupts(finish(2.0), 0.0)
        assert interrupts.may_move()
        interrupts.take(verb, is_job=False)
        assert interrupts.may_move() == may
        interrupts.forget()
        assert (interrupts.verb, interrupts.stop_at_s) == (None, float("inf"))


async def test_words_for_a_commit_section(autojump_clock):
    """A tool in its section completes that at least."""
    cancel, grace = Interrupts(as_policy("cancel"), 0.0), Interrupts(finish(2.0), 0.0)
    assert tell(cancel, "cancel", commit_until_s=3.0) == "completes its effect, at most 3 s"
    assert tell(cancel, "shutdown", commit_until_s=3.0) == "completes its effect, at most 3 s"
    assert tell(grace, "cancel", commit_until_s=3.0) == "may finish, at most 3 s"
    assert tell(grace, "cancel", commit_until_s=1.0) == "may finish, at most 2 s"


async def test_words_for_what_was_told_before(autojump_clock):
    """A verb that does nothing new leaves what holds already."""
    grace = Interrupts(finish(2.0), 0.0)
    grace.take("cancel", is_job=False)
    await trio.sleep(0.5)
    assert tell(grace, "barge_in") == "may finish, at most 1.5 s"
    assert tell(grace, "barge_in", is_cut=True) == "is stopped"

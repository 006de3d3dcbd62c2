"""Strangers who take what they can: after each attack, tasks and memory are what they were."""

import json

import pytest

from tests.benchmarks._process import run_python
from tests.bridge.server.attacks import ATTACKERS, ATTACKS

pytestmark = pytest.mark.proof

GROWTH_BYTES = 150_000 * ATTACKERS
"""How much larger the process may be afterwards, as the allocator keeps some: the attacks that were
found took 0.2 to 1.8 MB a connection, in each round, for ever."""


@pytest.mark.parametrize("how", ATTACKS)
def test_an_attack_leaves_nothing_behind(how):
    """Forty at once cost no task and no memory for longer than they last; others are answered."""
    found = json.loads(run_python("-m", "tests.bridge.server.attacks", how))
    assert set(found["left"]) == {0}
    assert min(found["growth_bytes"]) < GROWTH_BYTES, found

"""Two clocks on one, run in the browser."""

from __future__ import annotations

from typing import Any

OFFSET = """
async ([window, jump, pairs]) => {
  const { Offset } = await import(new URL("page/clock-offset.js", document.baseURI));
  const offset = new Offset(window, jump ?? undefined);
  return pairs.map(([theirs, ours]) => offset.note(theirs, ours));
}
"""


def test_the_fastest_message_counts(bare_page: Any) -> None:
    """A late message is dated by the fastest one until then, however late it is."""
    pairs = [[1, 11.5], [2, 12.25], [3, 19]]
    assert bare_page.evaluate(OFFSET, [60, None, pairs]) == [11.5, 12.25, 13.25]


def test_a_clock_that_falls_behind_is_followed(bare_page: Any) -> None:
    """What was fastest long ago counts no more, so that a drift does not add up."""
    pairs = [[n, 10 + 1.25 * n] for n in range(9)]
    told = bare_page.evaluate(OFFSET, [2, None, pairs])
    assert told[1] == 11  # by the first message
    assert all(0 <= ours - t <= 1 for t, (_, ours) in zip(told, pairs, strict=True))


def test_a_clock_that_stood_still_begins_anew(bare_page: Any) -> None:
    """After a gap that no delay explains, the clocks are compared anew."""
    pairs = [[1, 11], [2, 12.5], [3, 20], [4, 21]]
    assert bare_page.evaluate(OFFSET, [60, 1, pairs]) == [11, 12, 20, 21]

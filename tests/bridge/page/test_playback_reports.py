"""Which positions of the player the page tells the server, run in the browser."""

from __future__ import annotations

import itertools
from typing import Any

POSITIONS = """
async (reports) => {
  const { PlaybackReports } = await import(new URL("page/playback-reports.js", document.baseURI));
  const rule = new PlaybackReports();
  return reports.map(([now, kind, played_ms, more = {}]) =>
    rule.isNews({ kind, utterance: 1, played_ms, ...more }, now));
}
"""

Told = tuple[float, str, float] | tuple[float, str, float, dict[str, Any]]


def told(page: Any, *reports: Told) -> list[bool]:
    """Return of each report, with its time, whether the server is told."""
    news: list[bool] = page.evaluate(POSITIONS, [list(report) for report in reports])
    return news


def test_what_the_clock_knows_is_told_seldom(bare_page: Any) -> None:
    """Of ten positions a second that come when they are due, each third is told."""
    positions = [(100.0 * n + n % 7, "position", 100.0 * n) for n in range(1, 21)]
    news = told(bare_page, (0, "start", 0), *positions)
    at = [n for n, is_news in enumerate(news) if is_news]
    assert {later - earlier for earlier, later in itertools.pairwise(at)} == {3}


def test_a_position_elsewhere_is_told_at_once(bare_page: Any) -> None:
    """A player that was late, or whose device was suspended, says so with its next position."""
    assert told(
        bare_page,
        (0, "start", 0), (100, "position", 100), (200, "position", 170), (300, "position", 270),
    ) == [True, False, True, False]  # fmt: skip


def test_where_it_stands_and_goes_on_is_told(bare_page: Any) -> None:
    """Nobody else knows at which sample a hold stopped it, and when it was released."""
    assert told(
        bare_page,
        (0, "start", 0), (60, "position", 60, {"stands": True}),
        (70, "position", 60), (170, "position", 160),
    ) == [True, True, True, False]  # fmt: skip


def test_all_but_positions_is_told(bare_page: Any) -> None:
    """Starts, gaps, ends and cuts are news, and so is the first position after them."""
    assert told(
        bare_page,
        (0, "start", 0), (50, "underrun", 50), (60, "position", 60), (90, "flushed", 80),
        (100, "position", 100), (110, "done", 110), (120, "position", 120, {"utterance": 2}),
    ) == [True] * 7  # fmt: skip


def test_another_utterance_is_news(bare_page: Any) -> None:
    """What is known of one utterance says nothing of the next."""
    assert told(
        bare_page, (0, "start", 0), (10, "position", 10, {"utterance": 2}), (20, "position", 20)
    ) == [True, True, True]

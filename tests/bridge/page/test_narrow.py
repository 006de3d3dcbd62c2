"""In a narrow window with a mouse, the verbs have room, and every kind of event is in reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import screenshots as scenes
from .test_axe import visited

WIDTHS = [320, 390, 600, 719, 1040]
OVERLAPS = """
() => {
  const isShown = (part) => part.checkVisibility() && part.getBoundingClientRect().width > 1;
  const meet = (a, b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const found = [];
  for (const verb of [...document.querySelectorAll("#verbs .verb")].filter(isShown)) {
    const box = verb.getBoundingClientRect();
    const parts = [...verb.children].filter(isShown);
    const places = parts.map((part) => [part.id || part.tagName, part.getBoundingClientRect()]);
    for (const [name, place] of places) {
      if (place.left < box.left || place.right > box.right + 1) found.push(`${name} sticks out`);
      if (name === "KBD" && place.width > 70) found.push(`the key of ${verb.id} is stretched`);
    }
    places.forEach(([one, a], i) => {
      for (const [other, b] of places.slice(i + 1)) {
        if (meet(a, b)) found.push(`${verb.id}: ${one} over ${other}`);
      }
    });
  }
  return found;
}
"""
CHIPS = """
() => [...document.querySelectorAll("#drawer .chip")].filter((chip) => {
  const { left, right, top, bottom } = chip.getBoundingClientRect();
  const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return left < 0 || right > innerWidth || hit !== chip;
}).map((chip) => chip.textContent)
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_a_window_with_a_mouse_has_room_for_everything(
    agent: int, launch: Callable[[str], Any], width: int
) -> None:
    """In a window of any width, no part of a verb covers another, and each chip can be clicked."""
    with visited(launch("speaks"), agent) as page:
        page.set_viewport_size({"width": width, "height": 760})
        scenes.steps(page)
        assert page.evaluate(OVERLAPS) == []
        page.set_viewport_size({"width": width, "height": 660})
        page.wait_for_timeout(100)
        assert page.evaluate(OVERLAPS) == []
        page.set_viewport_size({"width": width, "height": 760})
        page.click("#drawer-key")
        page.click("#drawer-events-tab")
        page.wait_for_timeout(300)
        assert page.evaluate(CHIPS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width

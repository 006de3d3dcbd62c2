"""How the page looks: sizes, contrast, and pictures to look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Open = Callable[..., Any]
SCREENS: dict[str, dict[str, Any]] = {
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "has_touch": True,
        "is_mobile": True,
    },
    "small": {"viewport": {"width": 320, "height": 568}, "has_touch": True, "is_mobile": True},
    "desktop": {"viewport": {"width": 1280, "height": 800}},
}
MIN_TARGET_PX = 44
MIN_CONTRAST = 4.5  # WCAG 2.2, 1.4.3

SMALL_TARGETS = """
(least) => [...document.querySelectorAll("button, input")]
  .filter((e) => e.checkVisibility({ visibilityProperty: true }))
  .map((e) => [e.id || e.className, e.getBoundingClientRect()])
  .filter(([, box]) => box.width < least || box.height < least)
  .map(([name, box]) => `${name}: ${box.width} x ${box.height}`)
"""

CONTRAST = """
() => {
  const numbers = (css) => css.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (css) => {
    const [r, g, b] = numbers(css).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const ratio = (selector) => {
    const ink = light(getComputedStyle(document.querySelector(selector)).color);
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  };
  const inks = [".heard", ".queued", ".never", ".who", ".note"];
  return Object.fromEntries(inks.map((selector) => [selector, ratio(selector)]));
}
"""


@pytest.mark.parametrize(
    ("screen", "scheme"), [("phone", "light"), ("small", "dark"), ("desktop", "dark")]
)
def test_looks(visit: Open, tmp_path: Path, screen: str, scheme: str) -> None:
    """On phone and desktop, light and dark, nothing overflows, keys are large, text is legible."""
    call = visit("styles", "", color_scheme=scheme, **SCREENS[screen])
    page = call.page
    check_layout(page)
    page.screenshot(path=tmp_path / "welcome.png")
    call.start()
    call.wait("document.querySelector('#state').dataset.state === 'speaking'")
    check_layout(page)
    check_last_words_are_visible(page)
    contrast = page.evaluate(CONTRAST)
    assert {name: ratio for name, ratio in contrast.items() if ratio < MIN_CONTRAST} == {}
    page.screenshot(path=tmp_path / "call.png")
    page.click("#hangup")
    check_layout(page)
    page.screenshot(path=tmp_path / "ended.png")
    assert all((tmp_path / f"{name}.png").stat().st_size > 5000 for name in ("welcome", "call"))


def check_layout(page: Any) -> None:
    """Nothing is wider than the screen, and every control is large enough for a thumb."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(SMALL_TARGETS, MIN_TARGET_PX) == []


def check_last_words_are_visible(page: Any) -> None:
    """The Stop key floats above the transcript, and covers none of its words."""
    last = page.query_selector_all(".turn")[-1].bounding_box()
    stop = page.query_selector("#stop").bounding_box()
    assert last["y"] + last["height"] <= stop["y"]

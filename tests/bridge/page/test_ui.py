"""How the page looks: sizes, contrast, and pictures to look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Open = Callable[..., Any]
SCREENS: dict[str, dict[str, Any]] = {
    "phone_360": {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True},
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
(least) => [...document.querySelectorAll("button, input:not([type=checkbox]), select, .check")]
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
    last = page.locator("#transcript-actions .download").bounding_box()
    assert last["x"] + last["width"] <= SCREENS[screen]["viewport"]["width"]
    page.screenshot(path=tmp_path / "ended.png")
    assert all((tmp_path / f"{name}.png").stat().st_size > 5000 for name in ("welcome", "call"))


WORK: dict[str, tuple[str, str]] = {
    "steps": ("A table for two", "#task-title:text-is('Book table')"),
    "question": ("Pay the deposit", "#question"),
    "speaking": ("Tell me a story", "#barge_in"),
}
HELD_SCREENS = {
    "phone": SCREENS["phone"],
    "phone_360": SCREENS["phone_360"],
    "small": SCREENS["small"],
    "landscape": {"viewport": {"width": 740, "height": 360}, "has_touch": True, "is_mobile": True},
    "desktop": SCREENS["desktop"],
}
COVERED = """
() => {
  const inside = (e) => {
    const box = e.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const top = document.elementFromPoint(x, y);
    return e.contains(top) || top?.contains(e);
  };
  return [...document.querySelectorAll("#float button, footer .row button, #text")]
    .filter((e) => e.checkVisibility({ visibilityProperty: true }))
    .filter((e) => (e.scrollIntoView({ block: "nearest" }), !inside(e)))
    .map((e) => e.id);
}
"""


@pytest.mark.parametrize("screen", HELD_SCREENS)
def test_the_handle_fits(meet: Open, tmp_path: Path, screen: str) -> None:
    """On each screen every key of the handle can be pressed, and none lies under another."""
    call = meet("?raw=1", **HELD_SCREENS[screen])
    page = call.page
    for name, (text, selector) in WORK.items():
        call.type(text)
        page.wait_for_selector(selector, state="visible")
        if name == "steps" and page.is_visible("#steps-toggle"):
            page.click("#steps-toggle")
        check_layout(page)
        assert page.evaluate(COVERED) == []
        page.screenshot(path=tmp_path / f"{screen}-{name}.png")
        page.evaluate("document.querySelector('#redirect').click()")
        check_layout(page)
        assert page.evaluate(COVERED) == []
        page.screenshot(path=tmp_path / f"{screen}-{name}-redirect.png")
        page.keyboard.press("Escape")
    assert page.evaluate("document.querySelector('.heard').getBoundingClientRect().top") > 0


@pytest.mark.parametrize("screen", HELD_SCREENS)
def test_the_settings_fit(visit: Open, screen: str) -> None:
    """On each screen every setting can be reached: what does not fit is scrolled to."""
    call = visit("echo", **HELD_SCREENS[screen])
    call.start()
    call.wait("document.querySelector('#speaker').options.length > 1")
    page = call.page
    page.click("#settings-toggle")
    check_layout(page)
    box = page.locator("#settings").bounding_box()
    assert box["y"] >= 0
    assert page.evaluate(
        "(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#settings'))"
    )
    page.locator("#settings .hint").scroll_into_view_if_needed()
    assert (
        page.evaluate(COVERED.replace("#float button", "#settings :is(select, input, button)"))
        == []
    )


TRANSCRIPT = "document.querySelector('#transcript')"
SCROLLED = f"{TRANSCRIPT}.scrollTop"


def test_words_that_are_heard_are_in_view(meet: Open) -> None:
    """A long answer is followed where it is heard, until the reader scrolls, and again after."""
    call = meet("?raw=1", viewport={"width": 390, "height": 700})
    page = call.page
    call.type("Tell me a story")
    call.wait("document.querySelector('.heard')?.textContent.length > 60")
    place = """() => {
      const [next] = document.querySelector(".queued").getClientRects();
      const top = document.querySelector("#transcript").getBoundingClientRect().top;
      const handle = document.querySelector("#handle").getBoundingClientRect();
      return top < next.top && next.bottom < handle.top;
    }"""
    assert page.evaluate(place)
    page.mouse.move(200, 200)
    page.mouse.wheel(0, 5000)
    call.wait(f"{SCROLLED} + {TRANSCRIPT}.clientHeight > {TRANSCRIPT}.scrollHeight - 2")
    end = page.evaluate(SCROLLED)
    page.mouse.wheel(0, -250)
    call.wait(f"{SCROLLED} <= {max(0, end - 249)}")
    at = page.evaluate(SCROLLED)
    heard = page.evaluate("document.querySelector('.heard').textContent.length")
    call.wait(f"document.querySelector('.heard').textContent.length > {heard}")
    assert page.evaluate(SCROLLED) == at


def test_no_motion_for_who_wants_none(visit: Open) -> None:
    """With reduced motion nothing moves by itself."""
    call = visit("work", "", reduced_motion="reduce", **SCREENS["phone"])
    call.start()
    call.wait("!document.querySelector('#handle').hidden")
    assert call.page.evaluate("document.getAnimations().length") == 0


def check_layout(page: Any) -> None:
    """Nothing is wider than the screen, and every control is large enough for a thumb."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(SMALL_TARGETS, MIN_TARGET_PX) == []


def check_last_words_are_visible(page: Any) -> None:
    """The handle floats above the transcript, and covers none of its words."""
    last = page.query_selector_all(".entry")[-1].bounding_box()
    handle = page.query_selector("#handle").bounding_box()
    assert last["y"] + last["height"] <= handle["y"]

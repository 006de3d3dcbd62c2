"""The page by keyboard alone, and as a screen reader is told of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

Open = Callable[..., Any]

STATE = "document.querySelector('#state').dataset.state"
STOP = """
() => {
  const e = document.activeElement;
  if (e === document.body) return null;
  const seen = [e, e.parentElement].some((each) => {
    const style = getComputedStyle(each);
    const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    return ring || style.boxShadow !== "none";
  });
  return [e.id || e.className, seen];
}
"""
FOCUSABLE = """
() => [...document.querySelectorAll("button, input, select, [tabindex='0']")]
  .filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled)
  .map((e) => e.id || e.className)
"""
NAMELESS = """
() => [...document.querySelectorAll("button, input, select")]
  .filter((e) => e.checkVisibility())
  .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length))
  .map((e) => e.outerHTML)
"""


def verbs(call: Any) -> list[str]:
    """The verbs that the page has used, in order."""
    sent = [json.loads(each) for each in call.sent if isinstance(each, str)]
    return [message["verb"] for message in sent if message["type"] == "control"]


def tab_to(call: Any, target: str) -> None:
    """Presses Tab until an element has the focus."""
    for _ in range(40):
        if call.page.evaluate("document.activeElement.id") == target:
            return
        call.page.keyboard.press("Tab")
    pytest.fail(f"Tab does not lead to #{target}")


def test_a_call_by_keyboard_alone(meet: Open) -> None:
    """From the first key to the last: talk, hush, pause, go on, redirect, deny, hang up, again."""
    call = meet(begin=False)
    keys = call.page.keyboard
    tab_to(call, "talk")
    keys.press("Enter")
    call.wait("document.body.dataset.phase === 'live'")
    assert call.page.evaluate("document.activeElement.id") == "transcript"
    tab_to(call, "text")
    keys.type("Tell me a story")
    keys.press("Enter")
    call.wait("document.querySelector('#barge_in').checkVisibility()")
    keys.press("Escape")
    call.wait(f"{STATE} === 'idle'")
    keys.type("Look in the archive")
    keys.press("Enter")
    call.wait(f"{STATE} === 'tool'")
    keys.press("Shift+Tab")
    keys.press("p")
    call.wait(f"{STATE} === 'pausing'")
    keys.press("p")
    call.wait(f"{STATE} === 'tool'")
    keys.press("r")
    keys.type("Pay the deposit")
    keys.press("Enter")
    call.wait("!document.querySelector('#question').hidden")
    assert call.page.evaluate("document.activeElement.id") == "question"
    tab_to(call, "deny")
    keys.press("Enter")
    call.wait("document.querySelector('#question').hidden")
    call.wait(f"{STATE} === 'idle'", timeout_s=20)
    assert verbs(call) == ["barge_in", "pause", "resume", "redirect"]
    tab_to(call, "hangup")
    keys.press("Enter")
    call.wait("document.body.dataset.phase === 'ended'")
    assert call.page.evaluate("document.activeElement.id") == "notice-action"
    keys.press("Enter")
    call.wait("document.body.dataset.phase === 'live'")


def test_every_key_is_reached_and_seen(visit: Open) -> None:
    """Tab visits all that can be used, shows where it is, and leaves the page in the end."""
    call = visit("work", mic="none")
    call.start()
    call.wait("!document.querySelector('#handle').hidden")
    wanted = set(call.page.evaluate(FOCUSABLE))
    assert {"pause", "redirect", "cancel", "text", "settings-toggle", "hangup"} <= wanted
    call.page.evaluate("document.activeElement.blur()")
    stops = []
    for _ in range(len(wanted) + 2):
        call.page.keyboard.press("Tab")
        stops.append(call.page.evaluate(STOP))
    assert None in stops  # no trap: the focus goes back to the browser
    assert {stop[0] for stop in stops if stop} == wanted
    assert [stop for stop in stops if stop and not stop[1]] == []


def test_letters(visit: Open) -> None:
    """P, R, B and M do what the keys of the page do, and nothing where they are words."""
    call = visit("work", mic="none")
    call.start()
    call.wait("!document.querySelector('#handle').hidden")
    page = call.page
    page.fill("#text", "")
    page.focus("#text")
    page.keyboard.type("prbm")
    assert page.input_value("#text") == "prbm"
    page.locator("#text").blur()
    page.keyboard.press("Control+r")
    page.keyboard.press("b")  # not offered: the server has not said that it is possible
    assert verbs(call) == []
    page.keyboard.press("r")
    assert page.evaluate("document.activeElement.id") == "redirect-text"
    page.keyboard.press("Escape")
    assert page.is_hidden("#redirect-form")
    assert page.evaluate("document.activeElement.id") == "redirect"
    assert page.is_hidden("#armed")
    page.keyboard.press("p")
    call.wait(f"{STATE} === 'idle'")
    assert verbs(call) == ["pause"]


def test_letters_can_be_switched_off(visit: Open) -> None:
    """Who dictates to a computer is not paused by a word, also on the next visit; Esc stays."""
    call = visit("work", mic="none")
    for _ in range(2):
        call.start()
        call.wait("!document.querySelector('#handle').hidden")
        if call.page.is_checked("#letters"):
            call.page.click("#settings-toggle")
            call.page.uncheck("#letters")
            call.page.keyboard.press("Escape")
        call.page.keyboard.press("p")
        call.page.keyboard.press("r")
        assert call.page.is_hidden("#redirect-form")
        assert verbs(call) == []
        call.page.keyboard.press("Escape")
        assert call.page.is_visible("#armed")
        call.page.reload()


def test_who_stands_on_a_key_that_goes_away(visit: Open) -> None:
    """When the work is over, the focus is on the transcript and not nowhere."""
    call = visit("work", mic="none")
    call.start()
    call.wait("!document.querySelector('#handle').hidden")
    call.page.focus("#cancel")
    call.page.keyboard.press("Enter")
    call.wait("document.querySelector('#handle').hidden")
    assert call.page.evaluate("document.activeElement.id") == "transcript"


def test_no_key_works_before_the_call(visit: Open) -> None:
    """Before a call and after it, the keys do nothing and break nothing."""
    call = visit("work", mic="none")
    for key in ("Escape", "Escape", "p", "r", "m", "b", "Space"):
        call.page.keyboard.press(key)
    assert call.page.evaluate("document.body.dataset.phase") == "ready"
    call.start()
    call.page.click("#hangup")
    for key in ("Escape", "Escape", "p", "r"):
        call.page.keyboard.press(key)
    assert verbs(call) == []


HANDLE_TREE = """\
- region "What the agent does":
  - heading "Search archive" [level=2]
  - text: step 2
  - timer "Time at work": 0:00
  - button "Show the steps"
  - group "Control the agent":
    - button "Pause"
    - button "Background"
    - button "Redirect"
    - button "Cancel\""""


def test_what_a_screen_reader_is_told(meet: Open) -> None:
    """The handle is a named region, and each key is described by its consequence."""
    call = meet("?mode=text")
    call.type("Look in the archive")
    call.wait("document.querySelector('#cancel-effect').textContent.includes('archive')")
    page = call.page
    tree = re.sub(r"\d:\d\d$", "0:00", page.locator("#handle").aria_snapshot(), flags=re.M)
    assert tree == HANDLE_TREE
    described = page.locator("#cancel").evaluate(
        "(key) => document.getElementById(key.getAttribute('aria-describedby')).textContent"
    )
    assert described == "The work ends; search_archive is stopped"
    assert page.evaluate(NAMELESS) == []
    assert page.get_attribute("#transcript", "aria-live") == "polite"
    assert page.get_attribute("#state", "role") == "status"
    assert page.get_attribute("#task-time", "aria-live") == "off"
    page.click("#steps-toggle")
    steps = page.locator("#steps").aria_snapshot()
    assert re.search(r'list "Steps"', steps)
    assert re.search(r"Thinking\s*,? ?done, .* s", steps), steps
    page.click("#cancel")
    call.wait(f"{STATE} === 'idle'")
    assert "Cancelled. Stopped: search_archive." in page.locator("#transcript").aria_snapshot()

"""Push to talk: pressed, the key opens the microphone; released, it closes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

Open = Callable[..., Any]

PRESSED = "document.querySelector('#talk-key').ariaPressed"
MUTED = "document.querySelector('#mute').ariaPressed"


def open_call(visit: Open, **options: Any) -> Any:
    """A call whose microphone is muted, as after one use of the key."""
    call = visit("echo", **options)
    call.start()
    call.page.click("#mute")
    call.page.locator("#mute").blur()
    assert call.page.evaluate(MUTED) == "true"
    return call


def mutes(call: Any) -> list[bool]:
    """What the page has told the server of its microphone, in order."""
    sent = [json.loads(each) for each in call.sent if isinstance(each, str)]
    return [message["on"] for message in sent if message["type"] == "mute"]


def holders(call: Any, way: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """What presses the key, and what lets go of it."""
    page = call.page
    if way == "mouse":
        page.hover("#talk-key")
        return page.mouse.down, page.mouse.up
    if way == "touch":
        finger = page.context.new_cdp_session(page)
        box = page.locator("#talk-key").bounding_box()
        point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}

        def touch(kind: str, *points: dict[str, float]) -> None:
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [*points]})

        return partial(touch, "touchStart", point), partial(touch, "touchEnd")
    key = "Enter" if way == "enter" else "Space"
    if way == "enter":
        page.focus("#talk-key")
    return partial(page.keyboard.down, key), partial(page.keyboard.up, key)


@pytest.mark.parametrize("way", ["mouse", "touch", "space", "enter"])
def test_hold_to_talk(visit: Open, way: str) -> None:
    """By pointer, finger and keyboard the microphone is open just as long as the key is held."""
    call = open_call(visit, has_touch=way == "touch")
    press, release = holders(call, way)
    press()
    call.wait(f"{PRESSED} === 'true'")
    assert call.page.evaluate(MUTED) == "false"
    assert call.page.inner_text("#talk-key-word") == "Listening"
    call.page.wait_for_timeout(300)
    assert call.page.evaluate(PRESSED) == "true"
    release()
    call.wait(f"{PRESSED} === 'false'")
    assert call.page.evaluate(MUTED) == "true"
    assert mutes(call) == [True, False, True]


def test_what_is_said_while_held_is_heard(visit: Open) -> None:
    """Frames are silent before the key is pressed and loud while it is held."""
    call = visit("echo")
    call.start()
    call.page.evaluate("document.querySelector('#mute').click()")
    hot = "bargein.log.some((entry) => entry.ev === 'mic_hot')"
    assert not call.page.evaluate(hot)
    call.page.keyboard.down("Space")
    call.wait_log("mic_hot")
    call.page.keyboard.up("Space")
    call.wait_log("mic_silent")


def test_a_click_without_a_pointer_toggles(visit: Open) -> None:
    """A screen reader's click opens the microphone, and its next one closes it."""
    call = open_call(visit)
    for pressed in ("true", "false"):
        call.page.evaluate("document.querySelector('#talk-key').click()")
        assert call.page.evaluate(PRESSED) == pressed
    assert mutes(call) == [True, False, True]


@pytest.mark.parametrize(
    "event", ["window.dispatchEvent(new Event('blur'))", "document.querySelector('#text').focus()"]
)
def test_nothing_stays_open_unseen(visit: Open, event: str) -> None:
    """A key that loses the window or the focus while it is held is released."""
    call = open_call(visit)
    call.page.focus("#talk-key")
    call.page.keyboard.down("Enter")
    call.wait(f"{PRESSED} === 'true'")
    call.page.evaluate(event)
    assert call.page.evaluate(PRESSED) == "false"
    assert mutes(call) == [True, False, True]


def test_space_in_a_text_is_a_space(visit: Open) -> None:
    """Who types does not talk, and who presses a key of the page presses that key."""
    call = open_call(visit)
    call.page.focus("#text")
    call.page.keyboard.type("a b")
    assert call.page.input_value("#text") == "a b"
    call.page.focus("#settings-toggle")
    call.page.keyboard.press("Space")
    assert call.page.is_visible("#settings")
    assert mutes(call) == [True]


def test_no_key_without_a_microphone(visit: Open) -> None:
    """A call without a microphone has no key to talk with, and space does nothing."""
    call = visit("echo", "?mode=text")
    call.start()
    assert call.page.is_hidden("#talk-key")
    call.page.locator("#text").blur()
    call.page.keyboard.press("Space")
    assert mutes(call) == []

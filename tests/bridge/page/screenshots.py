"""Takes the pictures of docs/page.md: the page's main states, at a desk and on a phone.

    python -m tests.bridge.page.screenshots

The server and its agent are real, and so is the browser; the microphone is Chromium's fake one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bridge.page.conftest import ARGS, find_browser, running

FOLDER = Path(__file__).parents[3] / "docs" / "pictures"
MICROPHONE = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
DESK = {"viewport": {"width": 1040, "height": 760}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
PATIENCE_MS = 20_000
TALKS_MS = 4000  # for how long the agent is heard before a picture
STATE = "#state[data-state='{}']"

Scene = Callable[[Any], None]


def say(page: Any, text: str) -> None:
    """Types a message and sends it."""
    page.fill("#text", text)
    page.press("#text", "Enter")
    page.locator("#text").blur()


def shown(page: Any, selector: str) -> None:
    """Waits until something is shown."""
    page.wait_for_selector(selector, state="visible", timeout=PATIENCE_MS)


def call(page: Any) -> None:
    """Begins a call."""
    page.click("#talk")
    shown(page, STATE.format("idle"))


def welcome(page: Any) -> None:
    """Before the call."""
    shown(page, "#talk")


def speaking(page: Any) -> None:
    """The agent talks: what was heard, and what is queued."""
    call(page)
    say(page, "What is there to see at the harbour? A story, please.")
    shown(page, "#barge_in")
    page.wait_for_timeout(TALKS_MS)


def cut(page: Any) -> None:
    """The person has stopped it: what was never heard is struck through."""
    speaking(page)
    page.keyboard.press("Escape")
    shown(page, ".tag")
    say(page, "And the market?")
    shown(page, ".entry.agent:nth-last-child(1) .heard:not(:empty)")


def tool(page: Any) -> None:
    """A tool runs: the steps so far, and what each key would do."""
    call(page)
    say(page, "A table for two this evening, please.")
    shown(page, "#task-title:text-is('Book table')")
    page.wait_for_timeout(1500)


def steps(page: Any) -> None:
    """The same, with its steps."""
    tool(page)
    page.click("#steps-toggle")


def paused(page: Any) -> None:
    """Held in mid-sentence."""
    speaking(page)
    page.keyboard.press("p")
    shown(page, ".tag.held")
    shown(page, "#pause-name:text-is('Resume')")


def redirect(page: Any) -> None:
    """The composer of Redirect."""
    tool(page)
    page.keyboard.press("r")
    page.keyboard.type("A table outside instead, on the terrace")


def stopping(page: Any) -> None:
    """What could not be stopped, with its deadline."""
    tool(page)
    page.click("#cancel")
    shown(page, "#still-box")
    page.wait_for_timeout(1000)


def question(page: Any) -> None:
    """A tool asks for permission."""
    call(page)
    say(page, "Pay the deposit, please.")
    shown(page, "#question")


def settings(page: Any) -> None:
    """The settings: devices, volume, transcript, keys."""
    call(page)
    shown(page, "#settings-toggle")
    page.wait_for_selector("#speaker option", state="attached")
    page.click("#settings-toggle")
    page.evaluate("document.activeElement.blur()")


def ended(page: Any) -> None:
    """The call is over, and its transcript can be kept."""
    cut(page)
    page.click("#hangup")
    shown(page, "#transcript-actions")
    page.evaluate("document.activeElement.blur()")


def talking(page: Any) -> None:
    """The key to talk is held."""
    cut(page)
    page.hover("#talk-key")
    page.mouse.down()
    page.wait_for_timeout(1200)


PICTURES: dict[str, tuple[Scene, dict[str, Any], str]] = {
    "desk-welcome": (welcome, DESK, "light"),
    "desk-speaking": (speaking, DESK, "light"),
    "desk-steps": (steps, DESK, "dark"),
    "desk-stopping": (stopping, DESK, "light"),
    "desk-question": (question, DESK, "dark"),
    "desk-ended": (ended, DESK, "light"),
    "phone-speaking": (speaking, PHONE, "dark"),
    "phone-tool": (tool, PHONE, "light"),
    "phone-paused": (paused, PHONE, "light"),
    "phone-redirect": (redirect, PHONE, "dark"),
    "phone-question": (question, PHONE, "light"),
    "phone-talking": (talking, PHONE, "dark"),
    "phone-settings": (settings, PHONE, "light"),
}
"""Each picture: what is on it, its screen and its colours."""

FULL = {"phone-paused"}
"""Pictures of an app that asks for the whole handle."""


def take(browser: Any, port: int, folder: Path, name: str) -> Path:
    """Takes one picture; returns its file."""
    scene, screen, scheme = PICTURES[name]
    context = browser.new_context(**screen, color_scheme=scheme, reduced_motion="reduce")
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        scene(page)
        if scene is not talking:
            page.mouse.move(0, 0)  # no key looks as if it were about to be pressed
        page.wait_for_timeout(300)  # what fades in has faded in
        path = folder / f"page-{name}.png"
        page.screenshot(path=path)
    finally:
        context.close()
    return path


def main() -> None:
    """Takes all pictures anew."""
    from playwright.sync_api import sync_playwright  # the driver is only started for this

    FOLDER.mkdir(exist_ok=True)
    with (
        running("agent_server.py") as plain,
        running("agent_server.py", "full") as full,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=find_browser(), headless=True, args=[*ARGS, *MICROPHONE]
        )
        for name in PICTURES:
            take(browser, full if name in FULL else plain, FOLDER, name)
        browser.close()


if __name__ == "__main__":
    main()

"""Takes the pictures of docs/drawer.md: the drawer's tabs, at a desk and on a phone.

    python -m tests.bridge.page.drawer_screenshots

The agent is the script ``drawer``, so that each kind of overlap is there; the browser is real, and
its microphone hears what the caller of that script says.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bridge.page.conftest import ARGS, HERE, find_browser, page_folder, running

FOLDER = Path(__file__).parents[3] / "docs" / "pictures"
SCREENS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "has_touch": True,
        "is_mobile": True,
        "color_scheme": "dark",
    },
}
PATIENCE_MS = 30_000


def take(page: Any, screen: str) -> None:
    """Holds the conversation and takes a picture of each tab."""
    page.click("#talk")
    page.wait_for_selector("body[data-phase='live']", timeout=PATIENCE_MS)
    page.click("#drawer-key")
    page.wait_for_selector("#drawer .overlaps [data-kind='backchannel']", timeout=PATIENCE_MS)
    page.wait_for_timeout(700)
    page.screenshot(path=FOLDER / f"drawer-{screen}-live.png")
    page.wait_for_selector("#drawer .overlaps [data-kind='interruption']", timeout=PATIENCE_MS)
    page.wait_for_timeout(2500)
    for tab in ("timeline", "events", "metrics"):
        page.click(f"#drawer-{tab}-tab")
        if tab == "events":
            page.click("#drawer .chip:text-is('Page')")
        page.mouse.move(2, 2)
        page.wait_for_timeout(900)
        page.screenshot(path=FOLDER / f"drawer-{screen}-{tab}.png")


def main() -> None:
    """Takes all pictures."""
    from playwright.sync_api import sync_playwright  # the driver is only started for this

    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wav = f"{folder}/conversation.wav"
        subprocess.run([sys.executable, str(HERE / "drawer_scripts.py"), wav], check=True)
        hears = [
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            f"--use-file-for-fake-audio-capture={wav}",
        ]
        with running("fake_server.py", str(page_folder())) as port, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=find_browser(), args=[*ARGS, *hears])
            for screen, options in SCREENS.items():
                context = browser.new_context(**options)
                page = context.new_page()
                page.goto(f"http://127.0.0.1:{port}/drawer/?raw=1")
                take(page, screen)
                context.close()
            browser.close()


if __name__ == "__main__":
    main()

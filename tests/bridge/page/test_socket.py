"""The page's end of the WebSocket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Open = Callable[..., Any]

CONGESTED = """
async () => {
  const { Socket } = await import(new URL("page/socket.js", document.baseURI));
  const sent = [];
  const line = { bufferedAmount: 70000, readyState: 1, send: (data) => sent.push(data) };
  const real = globalThis.WebSocket;
  globalThis.WebSocket = Object.assign(function () { return line; }, { OPEN: 1 });
  const socket = new Socket("ws://unused", {});
  socket.sendFrame("old");
  line.bufferedAmount = 640;
  socket.sendFrame("new");
  globalThis.WebSocket = real;
  return { sent, dropped: socket.framesDropped };
}
"""

ADDRESS = """
async ([textOnly, token, conversation]) => {
  const { callUrl } = await import(new URL("page/socket.js", document.baseURI));
  return callUrl({ textOnly, token, conversation }).href;
}
"""


def test_congested_line_drops_microphone_frames(bare_page: Any) -> None:
    """Frames are dropped and counted while more than 64 kB wait to be sent."""
    result = bare_page.evaluate(CONGESTED)
    assert result == {"sent": ["new"], "dropped": 1}


def test_address_of_the_call(bare_page: Any, server: int) -> None:
    """The call's address lies beside the page's; mode, name and token travel in its query."""
    base = f"ws://127.0.0.1:{server}/echo/ws"
    assert bare_page.evaluate(ADDRESS, [False, None, None]) == base
    assert bare_page.evaluate(ADDRESS, [True, "a&b", None]) == f"{base}?mode=text&token=a%26b"
    assert bare_page.evaluate(ADDRESS, [False, None, "ada"]) == f"{base}?conversation=ada"


def test_token_in_the_fragment_opens_the_line(visit: Open) -> None:
    """A server that wants a token gets the one of the page's address."""
    call = visit("token", "?mode=text#token=let-me-in")
    assert call.page.url.endswith("/token/?mode=text")
    call.start()
    assert call.page.inner_text("#agent") == "Café Lumen"


def test_the_token_leaves_the_address_and_outlives_a_reload(visit: Open) -> None:
    """Neither the bar nor the history has it; the rest of the fragment stays; the tab keeps it."""
    call = visit("token", "?mode=text#drawer=log&token=let-me-in")
    page = call.page
    assert page.url.endswith("/token/?mode=text#drawer=log")
    page.reload()
    assert "let-me-in" not in page.url
    call.start()
    assert page.inner_text("#agent") == "Café Lumen"
    page.click("#hangup")


def test_a_token_that_is_typed_behind_the_address_is_taken(visit: Open) -> None:
    """Without a reload, which a change of the fragment does not cause."""
    call = visit("token", "?mode=text")
    page = call.page
    page.click("#talk")
    call.wait("document.body.dataset.phase === 'ended'")
    page.evaluate("location.hash = 'token=let-me-in'")
    call.wait("location.hash === ''")
    page.click("#notice-action")
    call.wait("document.body.dataset.phase === 'live'")
    call.complaints.clear()


@pytest.mark.parametrize(
    ("script", "words"),
    [("token", "#token="), ("full", "All lines are busy"), ("gone", "did not answer")],
)
def test_refused_line_says_why(visit: Open, script: str, words: str) -> None:
    """The page asks why it was refused, which browsers hide, and says what to do."""
    call = visit(script, "?mode=text")
    call.page.click("#talk")
    call.wait("document.body.dataset.phase === 'ended'")
    assert words in call.page.inner_text("#notice")
    assert call.page.inner_text("#notice-action") == "Call again"
    assert call.complaints  # Chromium logs refused requests itself
    call.complaints.clear()

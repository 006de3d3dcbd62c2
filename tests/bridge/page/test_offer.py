"""Which keys are offered when: Stop alone while the agent speaks, all verbs while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .conftest import opened, running

Open = Callable[..., Any]

KEYS = """[...document.querySelectorAll("#verbs .verb")]
  .filter((key) => key.checkVisibility()).map((key) => key.id)"""
MADE = """[...document.querySelectorAll("#verbs .verb")].map((key) =>
  [key.id, key.querySelector("path").getAttribute("d"), key.querySelector("kbd").textContent])"""
ALL = ["pause", "background", "redirect", "cancel"]
OFFER = """
async (steps) => {
  const { Handle } = await import(new URL("page/agent-verbs.js", document.baseURI));
  const used = [];
  let now = 1000;
  let view = null;
  const handle = new Handle({
    send: (type, fields) => type === "control" && used.push(fields.verb),
    silence: () => {}, hold: () => {}, show: (shown) => (view = shown),
    note: () => {}, questions: () => {}, asked: () => {}, now: () => now,
  });
  for (const [name, ...what] of steps) {
    if (name === "wait") now += what[0];
    else handle[name](...what);
  }
  return { all: now >= view.fullAt, used };
}
"""
VERBS = {"barge_in": {"possible": True, "text": ""}, "cancel": {"possible": True, "text": ""}}
AT_WORK = {"answer": 1, "phase": "text", "label": "", "caps": {}, "permissions": [], "verbs": VERBS}
SEARCH = {"tool": "search", "id": "t1", "state": "running", "elapsed_ms": 100}
FIRM = {**VERBS, "barge_in": {"possible": False, "text": ""}}


@pytest.fixture(scope="module")
def plain_agent() -> Iterator[int]:
    """The port of a server whose app asks for nothing in particular."""
    with running("agent_server.py") as port:
        yield port


@pytest.fixture
def meet_plain(plain_agent: int, launch: Callable[[str], Any]) -> Iterator[Callable[[], Any]]:
    """Opens a call with that agent."""
    with opened(plain_agent, launch) as open_page:

        def begin() -> Any:
            call = open_page("", "?raw=1")
            call.start()
            return call

        yield begin


def test_an_agent_that_speaks_is_stopped_and_nothing_else(meet_plain: Open) -> None:
    """While it speaks there is one key, which silences it; letters of other verbs do nothing."""
    call = meet_plain()
    call.type("Tell me a story")
    call.wait("bargein.log.some((e) => e.ev === 'player_position')")
    page = call.page
    page.locator("#text").blur()
    assert page.evaluate(KEYS) == ["barge_in"]
    assert page.inner_text("#barge_in-name") == "Stop"
    page.keyboard.press("p")
    page.keyboard.press("r")
    assert page.is_hidden("#redirect-form")
    page.click("#barge_in")
    call.wait("document.querySelector('#handle').hidden")
    call.wait("document.querySelector('#state-word').textContent === 'your turn'")
    sent = [each for each in call.sent if isinstance(each, str) and '"control"' in each]
    assert ['"barge_in"' in each for each in sent] == [True]


def test_a_tool_brings_the_whole_handle(meet_plain: Open) -> None:
    """A tool can be paused, redirected, moved to the background and cancelled."""
    call = meet_plain()
    call.type("Look in the archive")
    call.wait(f"({KEYS}).length === 4")
    assert call.page.evaluate(KEYS) == ALL
    call.page.click("#cancel")
    call.wait("document.querySelector('#handle').hidden")


def test_a_step_that_takes_long_brings_the_whole_handle(meet_plain: Open) -> None:
    """The other verbs come when a thought has taken two seconds, without a word of the server."""
    call = meet_plain()
    call.type("Please ponder")
    call.wait(f"({KEYS}).join() === 'barge_in'")
    call.wait(f"({KEYS}).includes('redirect')")
    thinking = [e for e in call.log("message") if e["message"].get("state") == "thinking"][-1]
    waited = call.page.evaluate("performance.now()") - thinking["wall_ms"]
    assert waited >= 2000
    assert call.page.evaluate(KEYS) == ALL


def test_an_app_may_ask_for_all_of_it(meet: Open) -> None:
    """With App(handle="full") every verb is offered while the agent speaks."""
    call = meet()
    call.type("Tell me a story")
    call.wait("bargein.log.some((e) => e.ev === 'player_position')")
    assert call.page.evaluate(KEYS)[:2] == ["barge_in", "pause"]


@pytest.mark.parametrize(
    ("steps", "all_verbs"),
    [
        ([["state", "speaking"]], False),
        ([["state", "speaking"], ["wait", 60_000]], False),
        ([["state", "thinking"], ["wait", 1900]], False),
        ([["state", "thinking"], ["wait", 2000]], True),
        ([["state", "thinking"], ["audible", True], ["wait", 5000]], False),
        ([["state", "tool"]], True),
        ([["state", "paused"]], True),
        ([["state", "waiting_permission"]], True),
        ([["follow", "full"], ["state", "speaking"]], True),
        ([["snapshot", AT_WORK | {"step_list": [SEARCH]}], ["state", "speaking"]], True),
        (
            [
                ["snapshot", AT_WORK | {"step_list": [SEARCH | {"state": "done"}]}],
                ["state", "thinking"],
            ],
            True,
        ),
        (
            [
                ["state", "thinking"],
                ["snapshot", AT_WORK | {"step_list": [SEARCH | {"state": "done"}]}],
                ["state", "speaking"],
            ],
            False,
        ),
        ([["state", "speaking"], ["snapshot", AT_WORK | {"step_list": [], "verbs": FIRM}]], True),
    ],
)
def test_when_all_verbs_are_offered(bare_page: Any, steps: list[Any], all_verbs: bool) -> None:
    """Work, a pause, a question, a long step, speech that Stop may not cut, or the app's wish."""
    started = [["state", "thinking"], *steps] if steps[0][0] == "snapshot" else steps
    assert bare_page.evaluate(OFFER, started)["all"] is all_verbs


def test_esc_is_stop_while_it_thinks(bare_page: Any) -> None:
    """Esc does what its key says, from the first moment of an answer."""
    steps = [["state", "thinking"], ["snapshot", AT_WORK | {"step_list": []}], ["escape"]]
    assert bare_page.evaluate(OFFER, steps)["used"] == ["barge_in"]
    late = [*steps[:2], ["wait", 2500], ["escape"], ["escape"]]
    assert bare_page.evaluate(OFFER, late)["used"] == ["cancel"]


def test_the_keys_are_made_from_what_the_server_tells(meet: Open) -> None:
    """Each verb that takes no other's place has a key with its name, icon and letter."""
    page = meet("?mode=text").page
    about = page.evaluate("fetch('page/agent.json').then((answer) => answer.json())")
    verbs = {verb: told for verb, told in about["verbs"].items() if told["place"] is None}
    made = page.evaluate(MADE)
    assert made == [[verb, told["icon"], told["key"]] for verb, told in verbs.items()]
    letters = [told["key"] for told in verbs.values() if len(told["key"]) == 1]
    assert page.text_content("#verb-letters").split() == letters

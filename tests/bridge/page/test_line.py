"""A line that drops under a call, in real Chromium and against the real server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

HERE = Path(__file__).parent

VIOLATIONS = """
globalThis.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""
STATE = "document.querySelector('#state').dataset.state"


class Network:
    """The line between page and server, to be cut by the tests."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._process = process
        ports = json.loads(process.stdout.readline())
        self.port: int = ports["line"]
        self.brief_port: int = ports["brief"]
        self.story: str = ports["story"]
        self.story_ms: int = ports["story_ms"]

    def do(self, word: str) -> Any:
        """Has the server process do something; returns what it answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def last_call(self) -> Any:
        """What the server knows of the newest call."""
        return self.do("tell")["calls"][-1]


@pytest.fixture
def network() -> Iterator[Network]:
    """A server of its own for each test, behind a line."""
    command = [sys.executable, str(HERE / "line_server.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Network(process)
        finally:
            process.kill()


Meet = Callable[..., Any]


@pytest.fixture
def meet(network: Network, open_at: Callable[[int], Any]) -> Iterator[Meet]:
    """Opens the page of the server behind the line."""
    with open_at(network.port) as open_page:

        def begin(query: str = "?raw=1", *, start: bool = True, **options: Any) -> Any:
            visit = open_page("", query, **options)
            if start:
                visit.start()
            return visit

        yield begin


def hear_story(call: Any) -> None:
    """Waits until the story was heard to its end."""
    call.wait("bargein.log.some((e) => e.ev === 'player_done')", 60)
    call.wait(f"{STATE} === 'idle'", 20)


def check_story(call: Any, network: Network) -> None:
    """The whole story was heard, once: by the player, on the page, and in the history."""
    played_ms = sum(entry["played_ms"] for entry in call.log("player_done"))
    assert played_ms == pytest.approx(network.story_ms, abs=1)
    assert call.page.inner_text(".agent .heard") == network.story
    assert call.page.locator(".agent").count() == 1
    assert call.page.locator(".agent .queued").inner_text() == ""
    agent = [e for e in network.last_call()["entries"] if e["role"] == "agent"]
    assert [(e["generated"], e["heard"]) for e in agent] == [(network.story, network.story)]


def wait_until_free(port: int) -> None:
    """Waits until a server has no call.

    Who hangs up is out of the call at once; on the server it ends a moment later.
    """
    for _ in range(200):
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            if "\nbargein_calls_active 0\n" in answer.read().decode():
                return
        time.sleep(0.05)
    pytest.fail("there is still a call after 10 s")


def forgive_network(call: Any) -> None:
    """Chromium notes each connection that fails on its console."""
    call.complaints[:] = [c for c in call.complaints if "WebSocket connection to" not in c]


@pytest.mark.parametrize("down_ms", [0, 3000])
def test_a_sentence_goes_on_after_a_gap(meet: Meet, network: Network, down_ms: int) -> None:
    """Cut in mid-sentence the page is silent, says that it reconnects, and goes on: all of the
    sentence is heard once, and what was typed is still there."""
    call = meet("?raw=1&tap=1", mic="none")
    call.type("tell")
    call.wait("bargein.log.some((e) => e.ev === 'player_position' && e.played_ms > 1500)")
    call.page.fill("#text", "half a sentence")
    network.do("down" if down_ms else "cut")
    call.wait("bargein.log.some((e) => e.ev === 'line_lost')")
    if down_ms:
        call.wait(f"{STATE} === 'reconnecting'")
        assert "reconnecting" in call.page.inner_text("#state-word")
        call.wait("!document.querySelector('#gap').hidden")
        assert "Reconnecting…" in call.page.inner_text("#gap")
        assert not call.page.is_editable("#text")
        assert call.page.is_disabled("#send")
        call.page.wait_for_timeout(down_ms)
        lost = call.log("line_lost")[0]["at"]
        assert [e for e in call.log("out_hot") if e["at"] > lost + 0.05] == []
        network.do("up")
    call.wait("bargein.log.some((e) => e.ev === 'line_back')", 15)
    lost, back = (call.log(ev)[0]["wall_ms"] for ev in ("line_lost", "line_back"))
    print(f"line down for {down_ms} ms: back after {back - lost:.0f} ms")
    hear_story(call)
    check_story(call, network)
    assert call.page.input_value("#text") == "half a sentence"
    assert call.page.is_editable("#text")
    assert call.page.is_hidden("#gap")
    assert network.do("tell")["reconnects"] == 1
    forgive_network(call)


def test_a_line_that_is_dead_without_a_word_is_replaced(meet: Meet, network: Network) -> None:
    """When nothing comes any more the page notices by itself, and takes over on a new line."""
    call = meet("?raw=1", mic="none")
    call.type("tell")
    call.wait("bargein.log.some((e) => e.ev === 'player_position' && e.played_ms > 1500)")
    network.do("freeze")
    call.wait("bargein.log.some((e) => e.ev === 'line_back')", 30)
    hear_story(call)
    check_story(call, network)
    forgive_network(call)


def test_a_line_that_stays_away_ends_the_call_in_words(
    network: Network, open_at: Callable[[int], Any]
) -> None:
    """After the time of the server the page gives up, says so, and offers to call again."""
    with open_at(network.brief_port) as open_page:
        call = open_page("", "?mode=text")
        call.start()
        network.do("down")
        call.wait(f"{STATE} === 'reconnecting'")
        call.wait("document.body.dataset.phase === 'ended'", 30)
        assert "The connection was lost" in call.page.inner_text("#notice")
        network.do("up")
        wait_until_free(network.brief_port)  # the server's time may be over a little later
        call.page.click("#notice-action")
        call.wait("document.body.dataset.phase === 'live'")
        forgive_network(call)


def test_it_tries_at_once_when_the_network_is_back(meet: Meet, network: Network) -> None:
    """The browser's word that it is online again ends the pause between two tries."""
    call = meet("?mode=text")
    network.do("down")
    call.wait(f"{STATE} === 'reconnecting'")
    call.page.evaluate("globalThis.setTimeout = () => 0")  # no pause ends any more
    call.page.wait_for_timeout(4000)
    network.do("up")
    call.page.wait_for_timeout(1000)
    assert call.page.evaluate(STATE) == "reconnecting"
    call.page.evaluate("dispatchEvent(new Event('online'))")
    call.wait(f"{STATE} === 'idle'")
    forgive_network(call)


def test_the_end_of_the_gap_may_be_the_end_of_the_call(meet: Meet, network: Network) -> None:
    """An agent that hung up meanwhile is told of when the line is back."""
    call = meet("?mode=text")
    network.do("down")
    call.wait(f"{STATE} === 'reconnecting'")
    network.do("end")
    network.do("up")
    call.page.evaluate("dispatchEvent(new Event('online'))")
    call.wait("document.body.dataset.phase === 'ended'")
    assert "hung up" in call.page.inner_text("#notice")
    forgive_network(call)


def test_one_line_for_one_caller(network: Network, open_at: Callable[[int], Any]) -> None:
    """A server that is full says so, and takes the next call when the first has ended."""
    with open_at(network.brief_port) as open_page:
        first = open_page("", "?mode=text")
        first.start()
        second = open_page("", "?mode=text")
        second.page.click("#talk")
        second.wait("document.body.dataset.phase === 'ended'")
        assert "All lines are busy" in second.page.inner_text("#notice")
        first.page.click("#hangup")
        first.wait("document.body.dataset.phase === 'ended'")
        wait_until_free(network.brief_port)
        second.page.click("#notice-action")
        second.wait("document.body.dataset.phase === 'live'")
        second.complaints.clear()


def test_a_conversation_goes_on_by_its_name(meet: Meet, network: Network) -> None:
    """What was said before stands on the page; two calls at once cannot have it."""
    first = meet("?mode=text&conversation=ada")
    first.type("tell")
    first.wait("document.querySelector('.agent .heard')?.textContent.includes('long')")
    second = meet("?mode=text&conversation=ada", start=False)
    second.page.click("#talk")
    second.wait("document.body.dataset.phase === 'ended'")
    assert "going on elsewhere" in second.page.inner_text("#notice")
    first.page.click("#hangup")
    first.wait("document.body.dataset.phase === 'ended'")
    wait_until_free(network.port)
    second.page.click("#notice-action")
    second.wait("document.body.dataset.phase === 'live'")
    assert second.page.inner_text(".user .words") == "tell"
    assert second.page.inner_text(".agent .heard") == network.story


def test_a_name_that_is_none_is_refused_in_words(meet: Meet) -> None:
    """The server's typed refusal gets words that say what to do."""
    call = meet("?mode=text&conversation=a%20b", start=False)
    call.page.click("#talk")
    call.wait("document.body.dataset.phase === 'ended'")
    assert "cannot be opened here" in call.page.inner_text("#notice")
    call.complaints.clear()  # Chromium notes the refused request


def test_no_violation_of_the_policy(meet: Meet, network: Network) -> None:
    """A whole call, with the drawer open and a gap in it, keeps to the content security policy;
    what is not the page's own does not run."""
    call = meet("?raw=1", start=False, mic="none")
    call.page.add_init_script(VIOLATIONS)
    call.page.reload()
    call.start()
    call.page.evaluate("document.querySelector('#tools button, #tools')?.click()")
    call.type("tell")
    call.wait("bargein.log.some((e) => e.ev === 'player_position' && e.played_ms > 1000)")
    network.do("cut")
    hear_story(call)
    assert call.page.evaluate("violations") == []
    forgive_network(call)
    assert call.complaints == []
    call.page.evaluate(
        "document.body.append(Object.assign(document.createElement('img'), "
        "{ src: 'https://elsewhere.example/x.png' }))"
    )
    call.wait("violations.length === 1")
    assert call.page.evaluate("violations")[0].startswith("img-src https://elsewhere.example")
    call.complaints.clear()
    call.asked.clear()


def test_a_browser_without_worklets_can_type(meet: Meet) -> None:
    """A browser that cannot play says what to do, and the call is a typed one."""
    call = meet("", start=False, mic="none")
    call.page.add_init_script("delete globalThis.AudioWorkletNode")
    call.page.reload()
    call.wait("!document.querySelector('#notice').hidden")
    assert "too old to talk" in call.page.inner_text("#notice")
    call.start()
    assert call.page.evaluate("bargein.context") is None


def test_what_the_browser_holds_back_is_not_heard(meet: Meet, network: Network) -> None:
    """Sound that is suspended in mid-sentence stands still for the agent, too: nothing more counts
    as heard, and all of the story is heard once it runs again."""
    call = meet("?raw=1", mic="none")
    call.type("tell")
    call.wait("bargein.log.some((e) => e.ev === 'player_position' && e.played_ms > 1500)")
    call.page.evaluate("bargein.context.suspend()")
    call.wait("document.querySelector('#notice').dataset.id === 'suspended'")
    call.page.wait_for_timeout(500)
    heard = call.page.inner_text(".agent .heard")
    call.page.wait_for_timeout(4000)
    assert call.page.inner_text(".agent .heard") == heard
    assert len(heard) < len(network.story)
    call.page.evaluate("bargein.context.resume()")
    hear_story(call)
    check_story(call, network)

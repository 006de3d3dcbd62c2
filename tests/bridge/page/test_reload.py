"""A page that is loaded anew in the middle of its call, against the real server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .test_line import STATE, Network, forgive_network, hear_story, network

__all__ = ["network"]

Open = Callable[..., Any]
SAVED = "sessionStorage.getItem('bargein.call')"
ROUND = """
async () => {
  const { Transcript } = await import(new URL("page/transcript.js", document.baseURI));
  const [first, second] = [1, 2].map(() => new Transcript(document.createElement("ol")));
  first.clear({ textOnly: false });
  first.userText("A story, please", true);
  first.agentText(1, "Once upon a time. There was a fox.");
  first.spoken(1, "Once upon a time.");
  first.cut(1, { heard: "Once upon a time.", rest: " There was a fox.", at_ms: 1500 });
  first.note("The agent uses find_fox");
  first.agentText(undefined, "Well, then: a wolf.");
  first.userText("Mhm", false);
  second.restore(JSON.parse(JSON.stringify(first.save())));
  const same = [first.text === second.text];
  for (const each of [first, second]) {
    each.spoken(2, "Well,");
    each.agentText(undefined, " The end.");
    each.userText("Mhm.", true);
  }
  return { same: [...same, first.text === second.text], text: second.text };
}
"""


@pytest.fixture
def meet(network: Network, open_at: Callable[[int], Any]) -> Iterator[Open]:
    """Opens the page of a server that waits for its clients."""
    with open_at(network.port) as open_page:

        def begin(query: str, **options: Any) -> Any:
            call = open_page("", query, **options)
            call.start()
            return call

        yield begin


def come_back(call: Any) -> None:
    """Waits for the call with sound, and taps where the browser wants that first."""
    live = "document.body.dataset.phase === 'live'"
    call.wait(f"{live} || document.querySelector('#notice').dataset.id === 'suspended'")
    if call.page.evaluate(f"!({live})"):
        assert "Your call is still here" in call.page.inner_text("#notice")
        assert call.page.is_visible("#transcript")
        call.page.click("#notice-action")
        call.wait(live)
        assert call.page.is_hidden("#notice")
    assert call.page.evaluate("bargein.context.state") == "running"


def wait_for_gap(network: Network) -> None:
    """Waits until the server has noticed that the page is gone, which it does a moment later."""
    for _ in range(400):
        if network.do("tell")["calls_waiting"]:
            return
        time.sleep(0.05)
    pytest.fail("the server has noticed nothing after 20 s")


def words(call: Any) -> list[str]:
    """What both have said, as it stands on the page."""
    lines: list[str] = call.page.locator("#transcript .words").all_inner_texts()
    return lines


def test_a_reload_finds_its_call_in_mid_sentence(meet: Open, network: Network) -> None:
    """What was said is there again, and the sentence goes on: all of it is heard, nothing lost."""
    call = meet("?raw=1&tap=1", mic="none")
    call.type("tell")
    call.wait("bargein.log.some((e) => e.ev === 'player_position' && e.played_ms > 1500)")
    call.page.reload()
    come_back(call)
    [resume] = [json.loads(sent) for sent in call.sent if '"resume"' in str(sent)]
    before = resume["played_ms"]
    assert words(call)[0] == "tell"
    assert call.page.evaluate(SAVED) is None
    call.wait_log("out_hot")
    hear_story(call)
    again = sum(entry["played_ms"] for entry in call.log("player_done"))
    assert network.story_ms - before - 100 <= again <= network.story_ms - 1000
    assert call.page.inner_text(".agent .heard") == network.story
    assert call.page.locator(".agent").count() == 1
    [entry] = [e for e in network.last_call()["entries"] if e["role"] == "agent"]
    assert entry["heard"] == network.story
    told = network.do("tell")
    assert (len(told["calls"]), told["reconnects"]) == (1, 1)


def test_a_reload_of_a_text_call(meet: Open, network: Network) -> None:
    """A typed call goes on, also with what was answered while the page was away."""
    call = meet("?mode=text")
    call.type("tell")
    call.wait("document.querySelector('.agent .heard')?.textContent.includes('long')")
    first = words(call)
    call.page.reload()
    call.wait("document.body.dataset.phase === 'live'")
    assert words(call) == first == ["tell", network.story]
    call.type("again")
    call.wait("document.querySelectorAll('.agent').length === 2")
    assert network.do("tell")["reconnects"] == 1


def test_a_reload_twice(meet: Open, network: Network) -> None:
    """Each page hands the call on to the next."""
    call = meet("?mode=text")
    for _ in range(3):
        call.page.reload()
        call.wait("document.body.dataset.phase === 'live'")
    call.type("tell")
    call.wait("document.querySelector('.agent .heard')?.textContent.includes('long')")
    assert len(network.do("tell")["calls"]) == 1


def test_nothing_is_said_before_it_can_be_heard(meet: Open, network: Network) -> None:
    """A browser that wants a tap first gets it, or another reload, before the agent goes on."""
    call = meet("?raw=1&tap=1", mic="none")
    call.type("tell")
    call.wait("bargein.log.some((e) => e.ev === 'player_position' && e.played_ms > 1500)")
    heard = set()
    for _ in range(2):
        call.page.reload()
        call.wait("document.querySelector('#notice').dataset.id === 'suspended'")
        call.page.wait_for_timeout(2000)
        heard.add(call.page.inner_text(".agent .heard"))
    assert len(heard) == 1
    assert network.do("tell")["reconnects"] == 0
    come_back(call)
    hear_story(call)
    assert call.page.inner_text(".agent .heard") == network.story


def test_a_muted_microphone_is_muted_after_a_reload(meet: Open) -> None:
    """Nobody who was muted is heard because the page was loaded anew."""
    call = meet("?raw=1")
    call.page.click("#mute")
    call.page.reload()
    come_back(call)
    assert call.page.get_attribute("#mute", "aria-pressed") == "true"
    call.wait_log("microphone")
    call.page.wait_for_timeout(3500)  # the tone of the fake microphone begins 2 s after it opens
    assert call.log("mic_hot") == []


def test_the_browser_asks_before_a_call_is_left(meet: Open) -> None:
    """A reload asks while the call goes on, and only then."""
    call = meet("?mode=text")
    asked: list[str] = []
    call.page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    call.page.click("#text")  # browsers ask nobody who has not touched the page
    call.page.reload()
    assert asked == ["beforeunload"]
    call.wait("document.body.dataset.phase === 'live'")
    call.page.click("#hangup")
    call.wait("document.body.dataset.phase === 'ended'")
    call.page.reload()
    assert asked == ["beforeunload"]
    assert call.page.evaluate("document.body.dataset.phase") == "ready"


def test_a_call_that_is_over_meanwhile(meet: Open, network: Network) -> None:
    """An agent that hung up while the page was away is told of when it is back."""
    call = meet("?mode=text")
    call.type("tell")
    call.wait("document.querySelector('.agent .heard')?.textContent.includes('long')")
    call.page.goto("about:blank")
    wait_for_gap(network)
    network.do("end")
    call.page.go_back()
    call.wait("document.body.dataset.phase === 'ended'")
    assert words(call) == ["tell", network.story]
    assert "hung up" in call.page.inner_text("#notice")


def test_who_comes_back_too_late_begins_anew(
    network: Network, open_at: Callable[[int], Any]
) -> None:
    """After the time of the server the page is as it is for a new visitor."""
    with open_at(network.brief_port) as open_page:  # waits two seconds
        call = open_page("", "?mode=text")
        call.start()
        call.page.goto("about:blank")
        call.page.wait_for_timeout(2500)
        call.page.go_back()
        call.wait("document.body.dataset.phase === 'ready'")
        call.start()


def test_another_tab_takes_no_call_away(meet: Open, network: Network) -> None:
    """What a page keeps while it is there is nothing that a duplicated tab could use."""
    call = meet("?mode=text")
    assert call.page.evaluate(SAVED) is None
    call.page.evaluate("dispatchEvent(new Event('pagehide'))")
    kept = json.loads(call.page.evaluate(SAVED))
    assert set(kept) == {"line", "audio", "muted", "transcript"}


def test_a_saved_transcript_goes_on(bare_page: Any) -> None:
    """Cuts, notes, words that may still change and the answer that is spoken are all kept."""
    told = bare_page.evaluate(ROUND)
    assert told["same"] == [True, True]
    assert "[cut at 1.50 s; never heard: There was a fox.]" in told["text"]
    assert told["text"].endswith("You: Mhm.")


def test_a_line_that_is_down_at_the_reload(meet: Open, network: Network) -> None:
    """Typed words that had not arrived arrive from the new page."""
    call = meet("?mode=text")
    network.do("down")
    call.wait(f"{STATE} === 'reconnecting'")
    call.page.goto("about:blank")
    network.do("up")
    call.page.go_back()
    call.wait("document.body.dataset.phase === 'live'")
    call.type("tell")
    call.wait("document.querySelector('.agent .heard')?.textContent.includes('long')")
    assert words(call) == ["tell", network.story]
    forgive_network(call)

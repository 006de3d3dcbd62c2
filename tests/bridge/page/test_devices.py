"""The choice of the microphone, and the settings that a person makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Open = Callable[..., Any]

ASKED = """
() => {
  const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  globalThis.wishes = [];
  globalThis.streams = [];
  navigator.mediaDevices.getUserMedia = async (wish) => {
    wishes.push(wish.audio.deviceId?.exact ?? "");
    const stream = await real(wish);
    streams.push({ wish: wish.audio.deviceId?.exact ?? "", stream });
    return stream;
  };
}
"""
OPENED = "() => streams.map(({ wish, stream }) => [wish, stream.getTracks()[0].readyState])"
OPTIONS = "(list) => [...list.options].map(({ value, label }) => [value, label])"


def open_settings(call: Any) -> Any:
    """Opens the settings by keyboard, once the call is there; returns the list of microphones."""
    call.page.wait_for_selector("#settings-toggle")  # what is hidden takes no focus, in silence
    call.page.focus("#settings-toggle")
    call.page.keyboard.press("Enter")
    return call.page.locator("#microphone")


def test_choice_of_the_microphone(visit: Open) -> None:
    """Each microphone is listed by name; the chosen one takes the place of the one before."""
    call = visit("echo")
    call.page.evaluate(ASKED)
    call.start()
    call.wait("document.querySelector('#microphone').options.length > 1")
    microphones = open_settings(call)
    names = microphones.evaluate(OPTIONS)
    assert len(names) == len({value for value, _ in names}) >= 2
    assert all(label for _, label in names)
    chosen = names[-1][0]
    microphones.select_option(chosen)
    call.wait("streams.length === 2")
    call.wait("bargein.log.filter((entry) => entry.ev === 'microphone').length === 2")
    assert call.page.evaluate(OPENED) == [["", "ended"], [chosen, "live"]]
    assert microphones.input_value() == chosen
    assert microphones.evaluate(OPTIONS) == names
    assert call.page.is_hidden("#notice")
    assert call.log("microphone")[-1]["used"] == chosen


def test_the_choice_is_kept(visit: Open) -> None:
    """The next call of the same browser asks for the microphone that was chosen."""
    call = visit("echo")
    call.page.evaluate(ASKED)
    call.start()
    call.wait("document.querySelector('#microphone').options.length > 1")
    chosen = open_settings(call).evaluate(OPTIONS)[-1][0]
    call.page.select_option("#microphone", chosen)
    call.wait("streams.length === 2")
    call.page.reload()
    call.page.evaluate(ASKED)
    call.start()
    call.wait("streams.length === 1")
    # Not every browser knows it by this name still; then the call has the system's.
    assert call.page.evaluate("wishes[0]") == chosen


def test_a_microphone_that_is_gone(visit: Open) -> None:
    """Whoever chose one that is no longer there gets the system's, without a word of trouble."""
    call = visit("echo")
    settings = '{"microphone": "gone"}'
    call.page.evaluate(f"localStorage.setItem('bargein.settings', {settings!r})")
    call.page.reload()
    call.start()
    call.wait_log("microphone")
    call.wait("document.querySelector('#microphone').options.length > 1")
    assert call.page.input_value("#microphone") == "default"
    assert call.page.is_visible("#mute")
    assert call.page.is_hidden("#notice")


def test_a_muted_microphone_stays_muted(visit: Open) -> None:
    """Another microphone is as muted as the one before."""
    call = visit("echo")
    call.start()
    call.wait("document.querySelector('#microphone').options.length > 1")
    call.page.evaluate("document.querySelector('#mute').click()")
    chosen = open_settings(call).evaluate(OPTIONS)[-1][0]
    call.page.select_option("#microphone", chosen)
    call.wait("bargein.log.filter((entry) => entry.ev === 'microphone').length === 2")
    since = call.log("microphone")[-1]["wall_ms"]
    call.page.wait_for_timeout(3500)  # the tone of the fake microphone begins 2 s after it opens
    assert [entry for entry in call.log("mic_hot") if entry["wall_ms"] > since] == []


def test_settings_open_and_close(visit: Open) -> None:
    """Esc and a press elsewhere close the settings, and neither stops the agent."""
    call = visit("talk", mic="none")
    call.start()
    call.wait("!document.querySelector('#handle').hidden")
    open_settings(call)
    assert call.page.is_visible("#settings")
    assert call.page.evaluate("document.activeElement.id") == "volume"
    call.page.keyboard.press("Escape")
    assert call.page.is_hidden("#settings")
    assert call.page.evaluate("document.activeElement.id") == "settings-toggle"
    call.page.click("#settings-toggle")
    call.page.mouse.click(5, 300)
    assert call.page.is_hidden("#settings")
    assert not [each for each in call.sent if isinstance(each, str) and '"control"' in each]


SINKS = "() => bargein.context.sinkId"


def test_choice_of_the_loudspeaker(visit: Open) -> None:
    """Each loudspeaker is listed by name; the agent is heard by the one that is chosen."""
    call = visit("echo")
    call.start()
    call.wait("document.querySelector('#speaker').options.length > 1")
    open_settings(call)
    speakers = call.page.locator("#speaker")
    names = speakers.evaluate(OPTIONS)
    assert all(label for _, label in names)
    assert call.page.evaluate(SINKS) == ""
    chosen = names[-1][0]
    speakers.select_option(chosen)
    call.wait(f"bargein.context.sinkId === {chosen!r}")
    call.page.keyboard.press("Escape")
    call.type("chirp")
    call.wait_log("out_hot")
    call.page.reload()
    call.start()
    # Not every browser knows it by this name still; then the call has the system's.
    call.wait(f"bargein.log.some((e) => e.ev.startsWith('speaker') && e.chosen === {chosen!r})")


def test_a_loudspeaker_that_is_gone(visit: Open) -> None:
    """Whoever chose one that is no longer there hears the agent by the system's."""
    call = visit("echo")
    call.page.evaluate("localStorage.setItem('bargein.settings', '{\"speaker\": \"gone\"}')")
    call.page.reload()
    call.start()
    call.wait("document.querySelector('#speaker').options.length > 1")
    call.wait_log("speaker_refused")
    assert call.page.input_value("#speaker") == "default"
    assert call.page.evaluate(SINKS) == ""
    assert call.page.is_hidden("#notice")


def test_a_browser_that_lets_nobody_choose(visit: Open) -> None:
    """Without setSinkId there is a volume and no list of loudspeakers."""
    call = visit("echo")
    call.page.add_init_script("delete AudioContext.prototype.setSinkId")
    call.page.reload()
    call.start()
    call.wait("document.querySelector('#microphone').options.length > 1")
    call.page.click("#settings-toggle")
    assert call.page.is_visible("#volume")
    assert call.page.is_hidden("#speaker")


def test_the_volume(visit: Open) -> None:
    """At zero the agent is silent, and the next visit is as loud as the last."""
    call = visit("echo", mic="none")
    call.start()
    call.page.click("#settings-toggle")
    call.page.fill("#volume", "0")
    call.page.keyboard.press("Escape")
    call.page.wait_for_timeout(200)
    call.type("chirp")
    call.wait_log("player_done")
    assert call.log("out_hot") == []
    call.page.reload()
    call.start()
    assert call.page.input_value("#volume") == "0"
    call.page.click("#settings-toggle")
    call.page.fill("#volume", "100")
    call.type("chirp")
    call.wait_log("out_hot")


def test_a_text_call_has_no_volume(visit: Open) -> None:
    """Where nothing sounds, nothing of it is offered."""
    call = visit("echo", "?mode=text")
    call.start()
    call.page.click("#settings-toggle")
    assert call.page.is_hidden("#volume")
    assert call.page.is_hidden("#speaker")

"""Tests of the call as it is told on a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from bargein.bridge.rehearsal._recording import record
from bargein.bridge.rehearsal._sound import to_pcm
from bargein.bridge.rehearsal._terminal import Terminal, columns
from bargein.bridge.rehearsal._timeline import Timeline
from bargein.client import (
    Cut,
    Ended,
    ErrorMessage,
    Heard,
    OtherEvent,
    Received,
    ServerMessage,
    Spoken,
    State,
    Transcript,
)
from bargein.rehearsal import (
    Answer,
    Check,
    Line,
    Parts,
    Rehearsal,
    Said,
    agent_falls_silent,
    agent_has_spoken,
)

SCRIPT: list[tuple[float, ServerMessage | Line]] = [
    (0.4, State(state="speaking", number=1)),
    (0.5, Spoken(utterance=1, text="Hi! What")),
    (0.9, Spoken(utterance=1, text=" can I get you?")),
    (1.0, OtherEvent(name="agent.stopped_speaking", data={"utterance": 1, "cut": False})),
    (1.6, Line("A latte.", agent_falls_silent())),
    (1.7, State(state="listening", number=2)),
    (1.8, Transcript(role="user", text="a lot", final=False)),
    (2.0, Transcript(role="user", text="a latte", final=False)),
    (2.4, Transcript(role="user", text="A latte.", final=True)),
    (3.0, Transcript(role="agent", text="One latte with milk.", final=True)),
    (3.1, Spoken(utterance=2, text="One latte")),
    (3.5, Line("No, tea!", agent_has_spoken(0.3), interrupts=True)),
    (3.6, Cut(utterance=2, heard="One latte", rest=" with milk.", at_ms=600)),
    (3.62, OtherEvent(name="agent.speech_released", data={"reason": "barge_in", "held_s": 0.1})),
    (4.0, OtherEvent(name="agent.handoff", data={"target": "barista"})),
    (4.2, ErrorMessage(code="agent_error", message="KeyError in brew")),
    (5.0, Ended(reason="agent_ended")),
]


def tell(terminal: Terminal) -> None:
    """Tell the script, as it would come."""
    timeline = Timeline(terminal)
    for number, (at_s, what) in enumerate(SCRIPT):
        if isinstance(what, Line):
            timeline.line(at_s, what)
        else:
            timeline.messages([Received(at_s, number, what)])


def test_a_call_reads_as_a_timeline() -> None:
    """Each row has the time, the state, who speaks and what; a cut tells what was never heard."""
    stream = io.StringIO()
    tell(Terminal(stream, width=90))
    assert [" ".join(row.split()) for row in stream.getvalue().splitlines()] == [
        "0.50 speaking agent Hi! What can I get you?",
        "1.60 speaking caller “A latte.”",
        "2.40 listening understood: “A latte.”",
        "3.10 listening agent One latte …",
        "3.50 listening caller “No, tea!” (talks over the agent)",
        "3.60 listening CUT before it was heard",
        "heard: “One latte”",
        "never heard: “with milk.”",
        "4.00 listening call barista takes over",
        "4.20 listening error agent_error: KeyError in brew",
        "5.00 listening call ended: agent_ended",
    ]


@pytest.mark.parametrize("width", [40, 71, 72, 120])
def test_no_row_is_wider_than_the_terminal(width: int) -> None:
    """The timeline and the table fit any width; a narrow terminal loses the state first."""
    stream = io.StringIO()
    terminal = Terminal(stream, width=width)
    tell(terminal)
    Timeline(terminal).report(REPORT)
    assert max(columns(row) for row in stream.getvalue().splitlines()) < width
    assert ("listening" in stream.getvalue()) is (width >= 72)


def test_interim_transcripts_are_seen_while_they_last() -> None:
    """On a terminal what is understood so far stands in the last row, and then is gone."""
    stream = io.StringIO()
    terminal = Terminal(stream, width=90, live=True)
    timeline = Timeline(terminal)

    class Quiet:
        state = "listening"

    for at_s, text, final in ((1.8, "a lot", False), (2.0, "a latte", False), (2.4, "L", True)):
        message = Transcript(role="user", text=text, final=final)
        timeline.messages([Received(at_s, 0, message)])
        timeline.tick(at_s, Quiet())  # type: ignore[arg-type]  # only its state is looked at
    shown = stream.getvalue()
    assert "understood so far: a lot" in shown
    assert "understood so far: a latte" in shown
    assert "so far" not in shown.split("\n")[0].rpartition("\x1b[2K")[2]


async def test_what_takes_long_shows_its_seconds(autojump_clock: trio.testing.MockClock) -> None:
    """On a terminal the seconds count; in the end the whole time stands."""
    stream = io.StringIO()
    timeline = Timeline(Terminal(stream, width=80, live=True))
    async with trio.open_nursery() as nursery:
        with timeline.doing("loading", nursery):
            await trio.sleep(1.5)
    assert "loading … 1.2 s" in stream.getvalue()
    assert "loading: 1.5 s" in stream.getvalue().rpartition("\x1b[2K")[2]


async def test_what_fails_is_not_said_to_be_done(autojump_clock: trio.testing.MockClock) -> None:
    """After an error the row is gone and the error goes on."""
    stream = io.StringIO()
    timeline = Timeline(Terminal(stream, width=80))
    async with trio.open_nursery() as nursery:
        with pytest.raises(OSError, match="full"), timeline.doing("loading", nursery):
            raise OSError("full")
    assert stream.getvalue() == "loading …\n"


SAID = Said(Line("A latte.", agent_falls_silent()), 1.0, 2.0)
REPORT = Rehearsal(
    recording=record(start_s=0, end_s=1, spoke=b"", spoke_at_s=0, heard=[]),
    said=(SAID,),
    cuts=(),
    answers=(Answer(SAID, 0.84, Parts(0.2, 0.3, 0.25, 0, 0, 0.2, 0.14)), Answer(SAID, None)),
    history=[],
    ended="agent_ended",
    checks=(Check("it was good", True, "4.5 stars"), Check("it was cheap", False, "9 dollars")),
    files=(Path("out/call.wav"),),
)


def test_the_report_has_a_mark_for_each_check() -> None:
    """Latencies, checks with what was measured, and files stand at the end."""
    stream = io.StringIO()
    Timeline(Terminal(stream, width=100)).report(REPORT)
    rows = [" ".join(row.split()) for row in stream.getvalue().splitlines() if row.strip()]
    assert rows == [
        "0.84 s from the end of line 1 to the agent's first sound",
        "0.20 silence waited for, 0.30 transcription (turn model 0.25 beside it), 0.00 first",
        "text, 0.00 first clause, 0.20 voice, 0.14 line and player",
        "no answer from the end of line 2 to the agent's first sound",
        "✓ it was good 4.5 stars",
        "✗ it was cheap 9 dollars",
        "out/call.wav",
    ]


def test_a_cut_tells_its_latency(tone: Callable[..., Any]) -> None:
    """The cut's row has the time from the caller's first sound to the agent's last."""

    class Conversation:
        spoken = (SAID,)

        class microphone:  # stands for an attribute
            line_sounds_at_s = 103.5

        def hear_now(self) -> list[Heard]:
            return [Heard(103.0, 2, bytearray(to_pcm(tone(0.6)))), Heard(104.0, 3, bytearray(9))]

    stream = io.StringIO()
    timeline = Timeline(Terminal(stream, width=100))
    timeline.begin(100.0, Conversation())  # type: ignore[arg-type]  # as much as is looked at
    timeline.messages([Received(103.7, 0, Cut(utterance=2, heard="x", rest="y", at_ms=600))])
    assert "100 ms after the caller's first sound" in stream.getvalue()
    assert stream.getvalue().startswith("   3.70")


def test_a_sound_that_leaves_the_agent_speaking_is_told() -> None:
    """The hold, the decision with what it compared, and that the agent goes on."""
    stream = io.StringIO()
    timeline = Timeline(Terminal(stream, width=100))
    timeline.line(1.0, Line("mhm", agent_has_spoken(1), longest_gap_s=0.3))
    told = (
        (1.1, "agent.speech_held", {"reason": "barge_in"}),
        (1.1, "turn.decided", {"about": "barge_in", "decision": "held", "rule": "voice"}),
        (1.2, "turn.decided", {"about": "end", "decision": "complete", "rule": "model"}),
        (1.3, "turn.decided", {"about": "barge_in", "decision": "acknowledgement", "rule": "hint",
                               "values": {"probability": 0.934}}),
        (1.3, "agent.speech_released", {"reason": "barge_in", "held_s": 0.2}),
    )  # fmt: skip
    for number, (at_s, name, data) in enumerate(told):
        timeline.messages([Received(at_s, number, OtherEvent(name=name, data=data))])
    assert [" ".join(row.split()) for row in stream.getvalue().splitlines()] == [
        "1.00 idle caller “mhm” (while the agent speaks)",
        "1.10 idle held the agent stands still, to hear what this is",
        "1.30 idle decided acknowledgement by hint (probability 0.93)",
        "1.30 idle goes on after 200 ms",
    ]


def test_an_agent_that_is_held_and_cut_does_not_go_on() -> None:
    """Behind an interruption the end of the hold is not told, whichever word comes first."""
    stream = io.StringIO()
    timeline = Timeline(Terminal(stream, width=100))
    told = (
        OtherEvent(name="agent.speech_held", data={"reason": "barge_in"}),
        OtherEvent(name="turn.decided", data={"about": "barge_in", "decision": "interruption",
                                              "rule": "min_words", "values": {"words": 2}}),
        OtherEvent(name="agent.speech_released", data={"reason": "barge_in", "held_s": 0.2}),
        Cut(utterance=2, heard="One", rest=" latte", at_ms=600),
    )  # fmt: skip
    for number, message in enumerate(told):
        timeline.messages([Received(1.0, number, message)])
    text = stream.getvalue()
    assert "interruption by min_words (words 2)" in text
    assert "CUT" in text
    assert "goes on" not in text

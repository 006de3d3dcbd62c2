"""From the journal to the records of the drawer, run in the browser."""

from __future__ import annotations

from typing import Any

import pytest

RECORDS = """
async (entries) => {
  const { EventRecords } = await import(new URL("page/event-records.js", document.baseURI));
  const told = { records: [], levels: [], calls: 0, begun: 0, over: 0, watching: [] };
  const records = new EventRecords({
    reset: () => told.calls++,
    start: () => told.begun++,
    record: (record) => told.records.push(record),
    level: (who, t, rms) => told.levels.push([who, Math.round(t * 1000) / 1000, rms]),
    over: () => told.over++,
    watching: ({ watching, words, allowed }) => told.watching.push([watching, words, allowed]),
  });
  for (const [wall_ms, ev, fields] of entries) records.add({ wall_ms, ev, ...fields });
  return told;
}
"""


def take(page: Any, *entries: tuple[float, str, dict[str, Any]]) -> dict[str, Any]:
    """Gives EventRecords entries of the journal, and returns what it told."""
    told: dict[str, Any] = page.evaluate(RECORDS, [list(entry) for entry in entries])
    return told


def message(wall_ms: float, kind: str, **fields: Any) -> tuple[float, str, dict[str, Any]]:
    """A message of the server, as the journal has it."""
    return wall_ms, "message", {"type": kind, "message": {"type": kind, **fields}}


HELLO = message(5000, "hello", call="c1", watch="words")


def test_an_unwatched_call_is_read_from_its_messages(bare_page: Any) -> None:
    """States, words, cuts and other events become records with the time of their arrival."""
    told = take(
        bare_page,
        HELLO,
        message(5100, "state", state="speaking", number=1),
        message(5200, "event", name="agent.started_speaking", data={"utterance": 1}),
        message(5300, "cut", utterance=1, heard="a", rest="b", at_ms=90),
        message(5400, "transcript", role="user", text="hi", final=True),
    )
    assert [(r["t"], r["name"], r["source"]) for r in told["records"]] == [
        (pytest.approx(0.1), "call.state_changed", "server"),
        (pytest.approx(0.2), "agent.started_speaking", "server"),
        (pytest.approx(0.3), "agent.speech_cut", "server"),
        (pytest.approx(0.4), "user.transcription", "server"),
    ]
    assert told["records"][2]["data"] == {
        "utterance": 1, "heard": "a", "unheard": "b", "at_ms": 90,
    }  # fmt: skip


def test_a_watched_call_is_told_once(bare_page: Any) -> None:
    """Once everything is seen, the messages that say the same are no records of their own."""
    told = take(
        bare_page,
        HELLO,
        message(5010, "watching", on=True, words=True, at_s=0.0),
        message(5100, "state", state="speaking", number=1),
        message(
            5101,
            "seen",
            at_s=0.09,
            name="call.state_changed",
            source="call",
            id=4,
            data={"state": "speaking"},
        ),
    )
    [record] = told["records"]
    assert (record["name"], record["source"], record["id"]) == ("call.state_changed", "call", 4)
    assert told["watching"] == [[False, False, "words"], [True, True, "words"]]


def test_the_least_delayed_message_sets_the_clock(bare_page: Any) -> None:
    """An event that is told late is still put where it happened."""
    seen = {"source": "call", "id": 1, "data": {}, "name": "x.y"}
    told = take(
        bare_page,
        HELLO,
        message(5300, "watching", on=True, words=True, at_s=0.0),
        message(6010, "seen", at_s=1.0, **seen),
        message(9000, "seen", at_s=2.0, **seen),
    )
    assert [r["t"] for r in told["records"]] == [pytest.approx(1.01), pytest.approx(2.01)]


def test_lost_events_are_told(bare_page: Any) -> None:
    """A gap is a record of its own, before what came after it."""
    told = take(
        bare_page,
        HELLO,
        message(5010, "watching", on=True, words=False, at_s=0.0),
        message(6000, "seen", at_s=1.0, source="a", id=9, name="x.y", data={}, lost=12),
    )
    assert [(r["name"], r["data"]) for r in told["records"]] == [
        ("page.lost", {"events": 12}),
        ("x.y", {}),
    ]


def test_what_happens_in_the_page_is_there_too(bare_page: Any) -> None:
    """Holds, underruns and what a person does have records; what comes all the time has not."""
    told = take(
        bare_page,
        HELLO,
        (5100, "hold", {"on": True, "at": 3.2}),
        (5150, "player_position", {"kind": "position", "played_ms": 50}),
        (5200, "player_underrun", {"kind": "underrun", "utterance": 1}),
        (5250, "sent", {"message": {"type": "control", "verb": "pause"}}),
        (5260, "sent", {"message": {"type": "playback.position"}}),
        (5300, "mic_hot", {"at": 1}),
        message(5400, "pong", t=5380.0),
    )
    assert [(r["name"], r["data"]) for r in told["records"]] == [
        ("page.hold", {"on": True}),
        ("page.player_underrun", {"utterance": 1}),
        ("page.control", {"verb": "pause"}),
        ("page.round_trip", {"ms": 20}),
    ]


def test_levels_are_put_on_the_calls_clock(bare_page: Any) -> None:
    """Both voices share the clock of the audio, put where the least delayed message says."""
    told = take(
        bare_page,
        HELLO,
        (5120, "mic_level", {"at": 2.0, "level": 0.1}),
        (5130, "mic_level", {"at": 2.02, "level": 0.2}),
        (5300, "agent_level", {"levels": [0.3, 0.4], "at": 2.1, "step": 0.02}),
    )
    assert told["levels"] == [
        ["mic", 0.12, 0.1],
        ["mic", 0.13, 0.2],
        ["agent", 0.19, 0.3],
        ["agent", 0.21, 0.4],
    ]


def test_another_call_begins_anew(bare_page: Any) -> None:
    """A hello of another call clears the record; one of the same call goes on with it."""
    again = message(9000, "hello", call="c1", watch="off")
    other = message(12_000, "hello", call="c2")
    told = take(bare_page, HELLO, again, other, message(12_500, "state", state="idle", number=1))
    assert (told["calls"], told["begun"]) == (2, 3)
    assert told["records"][-1]["t"] == pytest.approx(0.5)
    assert told["watching"][-1] == [False, False, "off"]


def test_a_resumed_call_goes_on(bare_page: Any) -> None:
    """After a lost line the same record goes on, and what was watched still is."""
    told = take(
        bare_page,
        HELLO,
        message(5010, "watching", on=True, words=True, at_s=0.0),
        (6000, "close", {"code": 1006}),
        message(9000, "resumed", call="c1", received=3),
        message(9010, "seen", at_s=4.0, source="a", id=9, name="x.y", data={}),
    )
    assert (told["calls"], told["begun"], told["over"]) == (1, 2, 1)
    assert [r["name"] for r in told["records"]] == ["page.close", "x.y"]


def test_a_page_that_was_loaded_anew_begins_its_record(bare_page: Any) -> None:
    """Resumed in a page that has not seen its hello, a call is recorded from there on."""
    told = take(
        bare_page,
        message(9000, "resumed", call="c1", watch="words", received=3),
        message(9500, "state", state="idle", number=7),
    )
    assert (told["calls"], told["begun"]) == (1, 1)
    assert told["watching"] == [[False, False, "words"]]
    assert [(r["name"], r["t"]) for r in told["records"]] == [("call.state_changed", 0.5)]


def test_the_end_is_told(bare_page: Any) -> None:
    """The last message and a lost line both end what is live."""
    told = take(bare_page, HELLO, message(6000, "ended", reason="hangup"), (6100, "close", {}))
    assert told["over"] == 2
    assert told["records"][0]["name"] == "call.ended"

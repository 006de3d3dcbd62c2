"""A voice that talks in time takes a quick way, and it is heard as on the long one."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bargein.bridge.playout._playout import Playout
from bargein.bridge.playout._utterance import Utterance
from bargein.events import AgentAudio
from bargein.routes._alarms import Alarms

from .conftest import RATE, Deck, HoldingDeck

PIECES = st.sampled_from(
    [
        *(AgentAudio(bytes(2 * 20), RATE, last=False),) * 8,
        AgentAudio(bytes(2 * 20), RATE, "four five ", last=False),
        AgentAudio(bytes(2 * 20), RATE, last=True),
        AgentAudio(bytes(2 * 40), RATE, last=False),
        AgentAudio(bytes(2 * 130), RATE, last=False),
        AgentAudio(b"", RATE, last=False),
        AgentAudio(bytes(2 * 5), RATE, last=False),
    ]
)
"""What a voice gives next: mostly 20 ms of nothing but sound."""

OTHERS = st.sampled_from(
    ["hold", "release", "resend", "wake", "report", "underrun", "all said", "cut", "more text"]
)

ACTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("say"), st.lists(PIECES, max_size=20), st.sampled_from([20, 20, 20, 5, None])
        ),
        st.tuples(
            st.just("do"),
            st.lists(OTHERS, min_size=1, max_size=1),
            st.sampled_from([None, 0, 20, 60, 250, 700]),
        ),
    ),
    max_size=14,
)
"""What is said or done, and how long after each in ms; None: in the same step."""


class LongWay(Playout):
    """Takes nothing for steady."""

    __slots__ = ()

    _steady = property(lambda self: None, lambda self, value: None)  # type: ignore[assignment]  # no slot


class Line:
    """A playout, its transport, and what is said over it."""

    def __init__(self, way: type[Playout], deck: Deck, nursery: trio.Nursery) -> None:
        self.deck = deck
        self.playout = way(deck, deck, Alarms(nursery, lambda fn: fn()).put)
        self.utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
        self.utterance.generated = "one two three four five six"
        self.playout.add(self.utterance)

    def say(self, piece: AgentAudio) -> None:
        if not self.utterance.finished:
            self.playout.add_audio(self.utterance, piece, trio.current_time())

    def do(self, what: str) -> None:
        number = self.utterance.play_number
        match what:
            case "report" | "underrun":
                kind = "position" if what == "report" else what
                self.playout.report(number, kind, self.utterance.position_ms(trio.current_time()))
            case "all said":
                self.utterance.audio_complete = True
                self.playout.text_complete(self.utterance)
            case "cut":
                self.playout.cut(self.utterance, "barge-in")
            case "more text":
                self.utterance.generated += " seven"
            case _:
                getattr(self.playout, what)()

    @property
    def told(self) -> Any:
        return self.deck.log, self.deck.sent_ms, self.utterance.heard


async def talk(acts: list[Any], deck: type[Deck]) -> None:
    async with trio.open_nursery() as nursery:
        lines = [Line(way, deck(), nursery) for way in (Playout, LongWay)]
        first = AgentAudio(bytes(2 * 300), RATE, "one two three ", last=False)
        for what, ones, after_ms in [("say", [first], 20), *acts, ("do", ["all said"], 0)]:
            for one in ones:
                for line in lines:
                    getattr(line, what)(one)
                if after_ms is not None:
                    await trio.sleep(after_ms / 1000)
                assert lines[0].told == lines[1].told
        await trio.sleep(15)
        assert lines[0].told == lines[1].told
        nursery.cancel_scope.cancel()


@given(ACTS, st.sampled_from([Deck, HoldingDeck]))
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_the_quick_way_ends_where_the_long_one_does(acts, deck):
    """Whatever comes between its pieces, the same is sent, told and heard at the same times."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(talk, acts, deck, clock=clock)


async def test_a_voice_in_time_takes_the_quick_way(autojump_clock, deck, nursery):
    """Nothing but sound, with room for it, of a voice that is being heard, is no work for long."""
    ways: list[str] = []

    class Watched(Playout):
        __slots__ = ()

        def _add_unsteady(self, utterance: Utterance, audio: AgentAudio, now_s: float) -> None:
            ways.append("long")
            super()._add_unsteady(utterance, audio, now_s)

    line = Line(Watched, deck, nursery)
    for _ in range(5):  # ahead of what is heard, as any voice
        line.say(AgentAudio(bytes(2 * 20), RATE, last=False))
    for _ in range(95):
        line.say(AgentAudio(bytes(2 * 20), RATE, last=False))
        await trio.sleep(0.02)
    assert len(ways) < 10
    assert deck.sent_ms == {1: 2000}

"""What the loudspeaker gets, to the sample, and what is told of it."""

from array import array
from itertools import pairwise

import pytest

from bargein.bridge.console._player import RAMP_SAMPLES, Player

RATE = 24_000
FRAME = 480
FRAME_S = 0.02


class Loudspeaker:
    """Pulls frames one after the other, and keeps what it heard."""

    def __init__(self, player: Player, latency_s: float = 0.0) -> None:
        self.player, self.latency_s = player, latency_s
        self.now_s = 0.0
        self.heard = array("h")

    def play(self, frames: int = 1) -> array:
        """Pull frames, and return their samples."""
        new = array("h")
        for _ in range(frames):
            new.frombytes(self.player.render(FRAME, self.now_s, self.now_s + self.latency_s))
            self.now_s += FRAME_S
        self.heard += new
        return new

    def told(self) -> list[tuple[str, int, float]]:
        """Return what is due: kind, utterance, and milliseconds."""
        marks = self.player.due(self.now_s)
        return [(mark.kind, mark.utterance, round(mark.played_ms, 3)) for mark in marks]


def ramp(samples: int, first: int = 1) -> array:
    """Return samples that count."""
    return array("h", (1 + (first + n - 1) % 30_000 for n in range(samples)))


@pytest.fixture
def speaker():
    """A loudspeaker."""
    return Loudspeaker(Player(RATE))


def test_it_plays_what_it_gets(speaker):
    """Audio is played in order and without a gap, and its start and end are told."""
    sound = ramp(3 * FRAME)
    speaker.player.add(1, sound[: 2 * FRAME].tobytes(), 0.0)
    speaker.player.add(1, sound[2 * FRAME :].tobytes(), 0.0)
    speaker.player.end(1)
    assert speaker.play(4) == sound + array("h", bytes(2 * FRAME))
    assert speaker.told() == [("start", 1, 0.0), ("done", 1, 60.0)]


def test_positions(speaker):
    """While it plays, the position is told every twentieth of a second."""
    speaker.player.add(1, ramp(20 * FRAME).tobytes(), 0.0)
    speaker.play(10)
    kinds = speaker.told()
    assert kinds[0] == ("start", 1, 0.0)
    assert [ms for _, _, ms in kinds[1:]] == [60.0, 120.0, 180.0]


def test_it_waits_for_some_audio(speaker):
    """A little audio waits for more, but not for long."""
    speaker.player.add(1, ramp(100).tobytes(), 0.0)
    assert not any(speaker.play(2))
    speaker.play(3)
    start = list(speaker.heard).index(1)
    assert speaker.heard[start : start + 100] == ramp(100)
    assert ("underrun", 1, round(100 / 24, 3)) in speaker.told()
    speaker.player.add(1, ramp(5 * FRAME).tobytes(), speaker.now_s)
    assert any(speaker.play(1))


def test_latency(speaker):
    """What is told was heard: later than it was given, by the latency of the device."""
    speaker.latency_s = 0.1
    speaker.player.add(1, ramp(4 * FRAME).tobytes(), 0.0)
    speaker.player.end(1)
    speaker.play(5)
    assert speaker.told() == [("start", 1, 0.0)]
    speaker.play(5)
    assert speaker.told()[-1] == ("done", 1, 80.0)


def test_a_hold_loses_nothing(speaker):
    """Held, it is silent within 4 ms, and goes on with the very sample, which rises for 4 ms."""
    sound = ramp(10 * FRAME)
    speaker.player.add(1, sound.tobytes(), 0.0)
    before = speaker.play(3)
    speaker.player.hold(True, speaker.now_s)
    speaker.player.hold(True, speaker.now_s)
    held = speaker.play(5)
    assert held[0] != 0
    assert not any(held[RAMP_SAMPLES:])
    speaker.player.hold(False, speaker.now_s)
    after = speaker.play(7)
    assert before + after[RAMP_SAMPLES:] == sound[: 3 * FRAME] + sound[3 * FRAME + RAMP_SAMPLES :]
    assert list(after[:RAMP_SAMPLES]) == [
        value * (n + 1) // (RAMP_SAMPLES + 1)
        for n, value in enumerate(sound[3 * FRAME : 3 * FRAME + RAMP_SAMPLES])
    ]
    assert ("position", 1, 60.0) in speaker.told()


def test_a_cut_is_final(speaker):
    """What is cut falls silent at once, counts as far as it was given, and never comes back."""
    speaker.latency_s = 0.1
    speaker.player.add(1, ramp(10 * FRAME).tobytes(), 0.0)
    speaker.player.add(2, ramp(10 * FRAME).tobytes(), 0.0)
    speaker.player.add(3, ramp(5 * FRAME, first=5_000).tobytes(), 0.0)
    speaker.play(3)
    speaker.player.clear(2, speaker.now_s)
    assert speaker.told() == [("flushed", 1, 60.0), ("flushed", 2, 0.0)]
    speaker.player.add(2, ramp(FRAME).tobytes(), speaker.now_s)
    assert speaker.play(5) == ramp(5 * FRAME, first=5_000)
    speaker.player.clear(3, speaker.now_s)
    assert not any(speaker.play(2)[RAMP_SAMPLES:])


def largest_step(samples: array) -> int:
    """Return the largest change from one sample to the next."""
    return max(abs(one - other) for one, other in pairwise(samples))


def test_nothing_clicks(speaker):
    """A hold, its end, a gap without audio, and a cut have no step of more than a 97th."""
    loud = array("h", [9_700]) * (3 * FRAME + 100)
    fade_in = array("h", range(0, 9_700, 100))
    speaker.player.add(1, (fade_in + loud).tobytes(), 0.0)
    speaker.play(4)
    speaker.player.hold(True, speaker.now_s)
    speaker.play(2)
    speaker.player.hold(False, speaker.now_s)
    speaker.play(6)  # runs dry
    assert speaker.told()[-1][0] == "underrun"
    speaker.player.add(1, (loud + loud).tobytes(), speaker.now_s)
    speaker.play(5)
    speaker.player.clear(1, speaker.now_s)
    speaker.play(2)
    assert max(speaker.heard) == 9_700
    assert not any(speaker.heard[-FRAME:])
    assert largest_step(speaker.heard) <= 101


def test_what_was_said_to_its_end_is_left_as_it_is(speaker):
    """An utterance that is over does not fall, and the next one does not rise."""
    sound = array("h", [500]) * FRAME
    for number in (1, 2):
        speaker.player.add(number, sound.tobytes(), speaker.now_s)
        speaker.player.end(number)
        assert speaker.play(2) == sound + array("h", bytes(2 * FRAME))

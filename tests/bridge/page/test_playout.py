"""The player's queue, run in the browser on a made-up sample clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

HELPERS = """
async (body) => {
  const { Playout } = await import(new URL("page/playout.js", document.baseURI));
  const rate = 48000;
  const reports = [];
  const playout = new Playout(rate, (report) => reports.push(report));
  const heard = [];
  const audio = (utterance, ms, value = 8192) =>
    playout.audio(utterance, new Int16Array(ms * 24).fill(value));
  const chirp = (utterance, ms) => {
    const wave = (_, n) => 16384 * Math.cos((n * n) / 1e5);
    playout.audio(utterance, Int16Array.from({ length: ms * 24 }, wave));
  };
  const run = (ms) => {
    const until = heard.length + (ms / 1000) * rate;
    while (heard.length < until) {
      const block = new Float32Array(128);
      playout.render(block, heard.length);
      heard.push(...block);
    }
  };
  const loudMs = (samples) => samples.filter((sample) => sample > 0.1).length / 48;
  new Function("playout", "audio", "chirp", "run", body)(playout, audio, chirp, run);
  const step = (cut) => heard.slice(cut).reduce(
    (most, x, i, rest) => Math.max(most, Math.abs(x - (rest[i - 1] ?? x))), 0);
  return {
    reports,
    heard,
    loud: loudMs(heard),
    loud_after_120_ms: loudMs(heard.slice(120 * 48)),
    first: heard.findIndex((sample) => sample > 0.1) / 48,
    last: heard.findLastIndex((sample) => sample !== 0) / 48,
    largest_step_after_190_ms: step(190 * 48),
  };
}
"""

Play = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def page_of_player(server: int, launch: Callable[[str], Any]) -> Iterator[Any]:
    """A page whose scripts can be imported."""
    context = launch("none").new_context(bypass_csp=True)  # the script itself needs eval
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server}/echo/")
    yield page
    context.close()


@pytest.fixture(scope="module")
def play(page_of_player: Any) -> Play:
    """Runs a script of audio, run and playout calls; returns reports and samples."""
    return lambda body: page_of_player.evaluate(HELPERS, body)


def kinds(result: dict[str, Any], *wanted: str) -> list[tuple[str, int, float]]:
    """Kind, utterance and played_ms of the reports of the wanted kinds."""
    return [
        (report["kind"], report["utterance"], round(report["played_ms"], 1))
        for report in result["reports"]
        if report["kind"] in wanted
    ]


def test_pre_buffer(play: Play) -> None:
    """Nothing sounds before 80 ms are buffered; then all of it sounds, to the sample."""
    result = play("audio(1, 40); run(40); audio(1, 60); run(20); playout.end(1); run(200)")
    assert 40 <= result["first"] < 46
    assert result["loud"] == pytest.approx(100, abs=0.2)
    assert kinds(result, "start", "done", "underrun") == [("start", 1, 0), ("done", 1, 100)]


def test_pre_buffer_waits_no_longer_than_its_length(play: Play) -> None:
    """Audio that stays shorter than the pre-buffer is played all the same."""
    result = play("audio(1, 40); run(300)")
    assert 78 <= result["first"] < 84


def test_short_utterance_with_end_starts_at_once(play: Play) -> None:
    """An utterance that is complete need not wait for a full buffer."""
    result = play("audio(1, 20); playout.end(1); run(100)")
    assert result["first"] < 3
    assert kinds(result, "done") == [("done", 1, 20)]


def test_utterances_follow_without_a_gap(play: Play) -> None:
    """The next utterance starts in the sample after the last one's end."""
    result = play("audio(1, 100); audio(2, 100); playout.end(2); run(300)")
    assert result["loud"] == pytest.approx(200, abs=2)  # the filter rings at the seam
    assert kinds(result, "start", "done") == [
        ("start", 1, 0),
        ("done", 1, 100),
        ("start", 2, 0),
        ("done", 2, 100),
    ]


def test_underrun_is_counted_once_and_buffers_again(play: Play) -> None:
    """When audio runs dry, that is one underrun, and playing waits for a new buffer."""
    result = play("audio(1, 100); run(300); audio(1, 100); playout.end(1); run(300)")
    assert [kind for kind, *_ in kinds(result, "underrun", "done")] == ["underrun", "done"]
    assert result["reports"][-1]["underruns"] == 1
    assert kinds(result, "done") == [("done", 1, 200)]
    assert result["loud"] == pytest.approx(200, abs=2)


def test_flush_leaves_a_ramp_and_counts_it(play: Play) -> None:
    """A cut falls silent within 4 ms without a step, and the ramp counts as played."""
    result = play("audio(1, 500); run(200); playout.flush(1, 'r1'); run(100)")
    assert result["last"] == pytest.approx(204, abs=3)
    assert result["largest_step_after_190_ms"] < 0.01
    [flushed] = [report for report in result["reports"] if report["kind"] == "flushed"]
    assert flushed["request"] == "r1"
    assert flushed["played_ms"] == pytest.approx(result["last"], abs=0.2)
    assert flushed["played_ms"] + flushed["dropped_ms"] == pytest.approx(500, abs=0.2)


def test_fence_drops_late_audio(play: Play) -> None:
    """Audio at or below the fence is never heard, known or not; the next utterance is."""
    result = play(
        "audio(1, 200); run(100); playout.flush(2, 'r'); run(10);"
        "audio(2, 200); audio(1, 200); playout.end(2); run(300);"
        "audio(3, 100); playout.end(3); run(200)"
    )
    assert result["loud_after_120_ms"] == pytest.approx(100, abs=1)
    assert [utterance for _, utterance, _ in kinds(result, "late")] == [2, 1]
    assert kinds(result, "done") == [("done", 3, 100)]


def test_audio_of_a_finished_utterance_is_late(play: Play) -> None:
    """What comes after its utterance was played to the end is dropped."""
    result = play("audio(1, 100); playout.end(1); run(200); audio(1, 100); run(300)")
    assert result["loud"] == pytest.approx(100, abs=0.2)
    assert len(kinds(result, "late")) == 1


def test_flush_of_several_utterances_reports_each(play: Play) -> None:
    """Each dropped utterance is reported once; the last report answers the request."""
    result = play("audio(1, 200); audio(2, 200); audio(3, 90); run(100); playout.flush(2, 'r7')")
    flushed = [report for report in result["reports"] if report["kind"] == "flushed"]
    assert [(each["utterance"], each.get("request")) for each in flushed] == [(1, None), (2, "r7")]
    assert flushed[0]["played_ms"] == pytest.approx(104, abs=3)
    assert flushed[1]["played_ms"] == 0
    assert flushed[1]["queued_ms"] == pytest.approx(90)


def test_flush_after_the_end_tells_the_full_length(play: Play) -> None:
    """A clear that comes too late is answered with what was played."""
    result = play("audio(1, 100); playout.end(1); run(300); playout.flush(1, 'r1')")
    assert kinds(result, "flushed") == [("flushed", 1, 100)]


def test_nothing_follows_a_flush(play: Play) -> None:
    """No position of a cut utterance is told after its "flushed"."""
    result = play("playout.setLatency(0.2); audio(1, 900); run(400); playout.flush(1); run(600)")
    assert kinds(result, "position")
    assert result["reports"][-1]["kind"] == "flushed"


def test_reports_wait_for_the_loudspeaker(play: Play) -> None:
    """Start, position and done are told when the sound is heard, not when it is rendered."""
    result = play("playout.setLatency(0.03); audio(1, 300); playout.end(1); run(500)")
    at = {report["kind"]: report["at"] for report in result["reports"]}
    start = next(report for report in result["reports"] if report["kind"] == "start")
    assert start["at"] == pytest.approx(0.03, abs=0.003)
    assert at["done"] == pytest.approx(0.33, abs=0.003)
    positions = [report for report in result["reports"] if report["kind"] == "position"]
    assert len(positions) == 3
    for report in positions:
        assert report["played_ms"] == pytest.approx(1000 * report["at"] - 30, abs=0.1)


def test_queue_is_bounded(play: Play) -> None:
    """A server that floods is told nothing and fills no more than five minutes."""
    result = play("for (let i = 0; i < 302; i++) audio(1, 1000); run(10)")
    assert len(kinds(result, "overflow")) == 1


def test_hold_goes_on_with_the_very_sample(play: Play) -> None:
    """Without the held time, the sound is what it would have been: nothing is lost or twice."""
    whole = play("chirp(1, 300); playout.end(1); run(400)")["heard"]
    held = play(
        "chirp(1, 300); playout.end(1); run(100);"
        "playout.hold(true); playout.hold(true); run(500); playout.hold(false); run(400)"
    )["heard"]
    ramp = 192  # 4 ms
    at = next(i for i, pair in enumerate(zip(whole, held, strict=False)) if pair[0] != pair[1])
    goes_on = at + next(i for i, x in enumerate(held[at + ramp :], ramp) if x != 0)
    assert at % 128 == goes_on % 128 == 0
    assert 500 <= (goes_on - at) / 48 < 503
    assert held[at + ramp : goes_on] == [0.0] * (goes_on - at - ramp)
    rest = held[goes_on : goes_on + len(whole) - at]
    assert rest[ramp:] == whole[at + ramp :]
    # What the ramp of the hold has put in, that of the release takes away.
    both = [a + b for a, b in zip(held[at : at + ramp], rest[:ramp], strict=True)]
    assert both == pytest.approx(whole[at : at + ramp], abs=1e-6)
    assert abs(held[at] - held[at - 1]) < 0.01
    assert abs(rest[0]) < 0.05


def test_positions_stand_still_while_held(play: Play) -> None:
    """The position of the hold is told once, when it is heard; then nothing until the release."""
    result = play(
        "playout.setLatency(0.02); audio(1, 500); playout.end(1); run(120);"
        "playout.hold(true); run(1000); playout.hold(false); run(600)"
    )
    told = [(round(r["at"] * 1000), r["kind"], r["played_ms"]) for r in result["reports"]]
    standing = [(kind, played) for at, kind, played in told if 130 < at < 1120]
    assert standing == [("position", pytest.approx(120, abs=3))]
    after = [played for at, kind, played in told if at > 1120 and kind == "position"]
    assert after[0] == pytest.approx(standing[0][1], abs=103)
    assert after == sorted(after)
    assert told[-1][1:] == ("done", 500)
    assert told[-1][0] == pytest.approx(1520, abs=5)
    assert kinds(result, "start") == [("start", 1, 0)]


def test_flush_while_held(play: Play) -> None:
    """What is cut while held makes no sound, and what comes next plays after the release."""
    result = play(
        "audio(1, 500); run(200); playout.hold(true); run(100); playout.flush(1, 'r1');"
        "audio(2, 100); playout.end(2); run(100); playout.hold(false); run(300)"
    )
    heard = result["heard"]
    (flushed,) = kinds(result, "flushed")
    assert flushed[2] == pytest.approx(200, abs=3)
    assert not any(heard[205 * 48 : 400 * 48])
    assert sum(sample > 0.1 for sample in heard[400 * 48 :]) / 48 == pytest.approx(100, abs=1)
    assert kinds(result, "done") == [("done", 2, 100)]


def test_what_begins_while_held_waits_for_its_buffer(play: Play) -> None:
    """Audio that came during the hold is silent until the release, and is buffered from then on."""
    result = play(
        "playout.hold(true); audio(1, 40); run(500); playout.hold(false); run(60);"
        "audio(1, 60); playout.end(1); run(300)"
    )
    assert 560 <= result["first"] < 566
    assert kinds(result, "start", "done", "underrun") == [("start", 1, 0), ("done", 1, 100)]


def test_hold_and_release_at_once_change_nothing(play: Play) -> None:
    """A hold that is taken back before the next block leaves no trace in the sound."""
    whole = play("chirp(1, 200); playout.end(1); run(300)")["heard"]
    brief = play(
        "chirp(1, 200); playout.end(1); run(100); playout.hold(true); playout.hold(false); run(200)"
    )["heard"]
    assert brief[: len(whole)] == pytest.approx(whole[: len(brief)], abs=1e-6)


def test_a_late_line_gets_a_longer_buffer(play: Play) -> None:
    """The second time that audio is late, 300 ms are gathered before it sounds."""
    result = play("for (let n = 0; n < 3; n++) { audio(1, 100); run(400); } run(200);")
    loud = [sample > 0.1 for sample in result["heard"]]
    pairs = zip([False, *loud], loud, strict=False)
    starts = [n / 48 for n, (before, now) in enumerate(pairs) if now and not before]
    assert starts == pytest.approx([0, 400, 1100], abs=6)


def test_the_buffer_shrinks_again(page_of_player: Any) -> None:
    """Half a minute without an underrun halves it; a voice that thinks lets nothing grow."""
    lengths = page_of_player.evaluate("""
async () => {
  const { JitterBuffer } = await import(new URL("page/jitter-buffer.js", document.baseURI));
  const buffer = new JitterBuffer(1000);
  const lengths = [];
  const late = (dry, frame) => (buffer.goesOn(dry, frame), lengths.push(buffer.ms(frame)));
  late(0, 200);
  late(3000, 5000);
  late(11000, 11100);
  late(12000, 12100);
  for (const frame of [42000, 42200, 72200, 102200]) lengths.push(buffer.ms(frame));
  return lengths;
}
""")
    assert lengths == [80, 80, 80, 300, 300, 150, 80, 80]

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
  const run = (ms) => {
    const until = heard.length + (ms / 1000) * rate;
    while (heard.length < until) {
      const block = new Float32Array(128);
      playout.render(block, heard.length);
      heard.push(...block);
    }
  };
  const loudMs = (samples) => samples.filter((sample) => sample > 0.1).length / 48;
  new Function("playout", "audio", "run", body)(playout, audio, run);
  const step = (cut) => heard.slice(cut).reduce(
    (most, x, i, rest) => Math.max(most, Math.abs(x - (rest[i - 1] ?? x))), 0);
  return {
    reports,
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
def play(server: int, launch: Callable[[str], Any]) -> Iterator[Play]:
    """Runs a script of audio, run and playout calls; returns reports and samples."""
    context = launch("none").new_context(bypass_csp=True)  # the script itself needs eval
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server}/echo/")
    yield lambda body: page.evaluate(HELPERS, body)
    context.close()


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
    assert len(positions) == 6
    for report in positions:
        assert report["played_ms"] == pytest.approx(1000 * report["at"] - 30, abs=0.1)


def test_queue_is_bounded(play: Play) -> None:
    """A server that floods is told nothing and fills no more than five minutes."""
    result = play("for (let i = 0; i < 302; i++) audio(1, 1000); run(10)")
    assert len(kinds(result, "overflow")) == 1

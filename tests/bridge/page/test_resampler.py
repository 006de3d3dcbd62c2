"""The sample-rate converter, run in the browser."""

from __future__ import annotations

from typing import Any

import pytest

CONVERT = """
async ([from, to, hz, block]) => {
  const { Resampler } = await import(new URL("page/resampler.js", document.baseURI));
  const resampler = new Resampler(from, to);
  const tone = (_, n) => Math.sin((2 * Math.PI * hz * n) / from);
  const input = Float32Array.from({ length: from }, tone);
  const out = new Float32Array(2 * to);
  let count = 0;
  for (let at = 0; at < from; at += block) {
    resampler.push(input.subarray(at, at + block));
    count += resampler.read(out, count);
  }
  resampler.end();
  count += resampler.read(out, count);
  const inner = out.subarray(to / 10, to - to / 10);
  const power = (samples) => samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
  const truth = (_, n) => Math.sin((2 * Math.PI * hz * (n + to / 10)) / to);
  return {
    count,
    position: resampler.position,
    level_db: 10 * Math.log10(2 * power(inner)),
    noise_db: 10 * Math.log10(2 * power(inner.map((x, n) => x - truth(x, n)))),
  };
}
"""


def convert(page: Any, source: int, target: int, hz: float) -> dict[str, Any]:
    """Converts one second of a tone, in pieces of one audio block."""
    result: dict[str, Any] = page.evaluate(CONVERT, [source, target, hz, 128])
    return result


RATES = [(44_100, 16_000), (48_000, 16_000), (24_000, 44_100), (24_000, 48_000), (16_000, 16_000)]


@pytest.mark.parametrize(("source", "target"), RATES)
def test_tone_is_kept(bare_page: Any, source: int, target: int) -> None:
    """A tone keeps its time, length and level: all that is added is 60 dB below it."""
    result = convert(bare_page, source, target, 1000)
    assert result["count"] == target
    assert result["position"] == source
    assert result["noise_db"] < -60


@pytest.mark.parametrize("source", [44_100, 48_000])
def test_aliases_are_kept_out(bare_page: Any, source: int) -> None:
    """What 16 kHz can't hold does not come back as another tone."""
    assert convert(bare_page, source, 16_000, 9500)["level_db"] < -55

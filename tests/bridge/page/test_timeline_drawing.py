"""What the timeline paints, run in the browser."""

from __future__ import annotations

from typing import Any

DRAW = """
async () => {
  const load = (name) => import(new URL(`page/${name}.js`, document.baseURI));
  const names = ["timeline-drawing", "levels", "story"];
  const [{ Drawing }, { Levels }, { Story }] = await Promise.all(names.map(load));
  const model = { mic: new Levels(), agent: new Levels(), story: new Story() };
  for (let n = 1; n <= 1500; n++) model.agent.put(n / 50, 0.3); // 30 s
  const canvas = document.createElement("canvas");
  document.body.append(canvas);
  const drawing = new Drawing(canvas);
  drawing.fit(600);
  const solid = (moved) => {
    drawing.draw(model, 5 + moved, 25 + moved, 30);
    const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      const near = [12, 116, 104].every((c, i) => Math.abs(data[at + i] - c) < 40);
      if (near && data[at + 3] > 200 && (at / 4) % width >= 60) count++;
    }
    return count;
  };
  const counts = Array.from({ length: 40 }, (_, n) => solid(n / 300)); // a tenth of a px each
  canvas.remove();
  return counts;
}
"""


def test_bars_are_as_solid_wherever_the_picture_has_moved_to(bare_page: Any) -> None:
    """A voice that stays as loud looks the same at every tenth of a pixel that it moves by."""
    counts = bare_page.evaluate(DRAW)
    assert min(counts) > 0.98 * max(counts) > 0

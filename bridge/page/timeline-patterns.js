/**
 * Patterns that distinguish kinds of time without colour: stripes, dots, a grid, bars.
 *
 * The timeline's fills and the swatches of its legend are drawn by the same code.
 */

const TILE = 8; // css px

const STROKES = {
  interruption: (c) => lines(c, [[-2, TILE + 2, TILE + 2, -2], [-2, 2, 2, -2], [TILE - 2, TILE + 2, TILE + 2, TILE - 2]]),
  backchannel: (c) => dots(c, [[2, 2], [6, 6]]),
  false_alarm: (c) => lines(c, [[0, 4, TILE, 4], [4, 0, 4, TILE]]),
  overlap: (c) => lines(c, [[0, 4, TILE, 4]]),
  hold: (c) => lines(c, [[2, 0, 2, TILE], [6, 0, 6, TILE]]),
};

/** A fill for `context` in a colour, on a thin wash of it. */
export function hatch(context, kind, colour, ratio) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = TILE * ratio;
  const c = tile.getContext("2d");
  c.scale(ratio, ratio);
  c.fillStyle = c.strokeStyle = colour;
  c.globalAlpha = 0.16;
  c.fillRect(0, 0, TILE, TILE);
  c.globalAlpha = 0.9;
  c.lineWidth = 1.4;
  STROKES[kind](c);
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

function lines(c, ends) {
  c.beginPath();
  for (const [x1, y1, x2, y2] of ends) {
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
  }
  c.stroke();
}

function dots(c, centres) {
  c.beginPath();
  for (const [x, y] of centres) {
    c.moveTo(x + 1.5, y);
    c.arc(x, y, 1.5, 0, 7);
  }
  c.fill();
}

/** The drawer's third tab: a card for each measure, with its last value, median and history. */

import { h, svg } from "./dom.js";
import { median } from "./metrics.js";

const EVERY_MS = 500;
const SPARKS = 40; // values in a history
const WIDTH = 120;
const HEIGHT = 32;

export class MetricsView {
  element;
  #numbers;
  #shown = false;
  #timer = null;
  #cards = new Map();
  #counts = h("dl", { class: "counts" });
  #grid = h("div", { class: "cards" });

  constructor(numbers) {
    this.#numbers = numbers;
    this.element = h("div", { class: "metrics" }, this.#counts, this.#grid);
  }

  setShown(shown) {
    this.#shown = shown;
    if (shown) this.#update();
  }

  /** Measures a new call. */
  reset(numbers) {
    this.#numbers = numbers;
    this.#cards.clear();
    this.#grid.replaceChildren();
    this.#counts.replaceChildren();
    this.touch();
  }

  touch() {
    if (this.#shown) this.#timer ??= setTimeout(() => this.#update(), EVERY_MS);
  }

  #update() {
    this.#timer = null;
    if (!this.#shown) return;
    for (const [name, count] of Object.entries(this.#numbers.counts)) this.#count(name, count);
    for (const series of this.#numbers.series) this.#card(series);
  }

  #count(name, count) {
    const id = `count-${name.toLowerCase().replaceAll(" ", "-")}`;
    let shown = this.#counts.querySelector(`#${id}`);
    if (!shown) {
      shown = h("dd", { id });
      this.#counts.append(h("div", {}, h("dt", {}, name), shown));
    }
    if (shown.textContent !== String(count)) shown.textContent = count;
  }

  #card({ key, name, meaning, unit, values }) {
    if (!this.#cards.has(key)) {
      const card = newCard(name, meaning);
      this.#cards.set(key, { ...card, shown: null });
      this.#grid.append(card.element);
    }
    const card = this.#cards.get(key);
    const newest = values.at(-1);
    if (!newest || card.shown === newest) return;
    card.shown = newest;
    const numbers = values.map(({ value }) => value);
    card.last.textContent = `${round(newest.value)} ${unit}`.trim();
    card.rest.textContent = `median ${round(median(numbers))} ${unit}`.trim() + ` of ${numbers.length}`;
    card.line.setAttribute("points", points(numbers.slice(-SPARKS)));
  }
}

function newCard(name, meaning) {
  const last = h("p", { class: "last" }, "–");
  const rest = h("p", { class: "rest" }, "not measured yet");
  const line = svg("polyline", { points: "" });
  const spark = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, line);
  const element = h("section", { class: "card", "aria-label": name }, h("h2", {}, name), last, spark, rest, h("p", { class: "meaning" }, meaning));
  return { element, last, rest, line };
}

/** A line through equally spaced values, scaled from 0 to the largest. */
function points(values) {
  const most = Math.max(...values, 1e-9);
  const step = WIDTH / Math.max(1, values.length - 1);
  const y = (value) => HEIGHT - 2 - (Math.max(0, value) / (1.25 * most)) * (HEIGHT - 4);
  if (values.length === 1) return `0,${y(values[0])} ${WIDTH},${y(values[0])}`;
  return values.map((value, i) => `${(i * step).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
}

function round(value) {
  const size = Math.abs(value);
  return size >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

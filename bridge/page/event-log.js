/**
 * The drawer's second tab: everything that happened, newest last, with a filter and a copy button.
 *
 * It keeps some thousands of records and shows the newest few hundred that pass the filter as rows;
 * older ones appear on demand.  Rows are added at most ten times a second.
 */

import { copyButton } from "./clipboard.js";
import { clock, h, icon } from "./dom.js";

const KEPT = 5000;
const ROWS = 200;
const EVERY_MS = 100;
const NEAR_END_PX = 60;
const FIELDS = 8; // how many fields a closed row shows
const VALUE = 120; // how many characters of a value it shows

/** Which records a category shows, by name prefixes. */
const CATEGORIES = [
  ["Turns", ["user.", "voice.", "turn."]],
  ["Speech", ["agent.response", "agent.speech", "agent.started", "agent.stopped", "agent.text", "agent.audio", "agent.utterance", "agent.generation", "agent.handoff"]],
  ["Routes", ["route."]],
  ["Tools", ["agent.tool", "agent.permission", "agent.question", "agent.job", "handle."]],
  ["State", ["call."]],
  ["Metrics", ["call.metric"]],
  ["Errors", ["agent.error", "call.stage_stalled", "call.event_loop_blocked", "page.refused", "page.lost", "page.microphone_refused", "page.no_sound"]],
  ["Page", ["page."]],
];
const OTHER = "Other";

export class EventLog {
  element;
  #records = [];
  #dropped = 0; // how many records are no longer kept
  #texts = new WeakMap();
  #off = new Set(); // categories that are not shown
  #words = "";
  #shownFrom = 0; // the number of the first record that has a row; numbers are counted from the call's start
  #shownTo = 0;
  #shown = false;
  #paused = false;
  #timer = null;
  #body = h("tbody", { role: "rowgroup" });
  #older = h("button", { type: "button", class: "tool older", onclick: () => this.#showOlder() }, "Show older");
  #count = h("p", { class: "hint", role: "status" });
  #scroller;
  #pause = h("button", { type: "button", class: "tool", onclick: () => this.#setPaused(!this.#paused) });
  #note = h("p", { class: "hint" });

  constructor() {
    this.#scroller = h("div", { class: "rows", tabindex: "0", role: "region", "aria-label": "Events" }, this.#older, this.#table());
    this.element = h("div", { class: "events" }, this.#tools(), this.#note, this.#scroller, this.#count);
    this.#setPaused(false);
  }

  setShown(shown) {
    this.#shown = shown;
    if (shown) this.#rebuild();
  }

  /** Shows what the server lets the page see. */
  setSource({ watching, words, allowed }) {
    if (watching) this.#note.textContent = words ? "" : "Words are hidden: the server does not show them here.";
    else if (allowed === "off") this.#note.textContent = "The server shows only what the page needs.";
    else this.#note.textContent = "";
    this.#note.hidden = !this.#note.textContent;
  }

  clear() {
    this.#records = [];
    this.#dropped = this.#shownFrom = this.#shownTo = 0;
    this.#rebuild();
  }

  add(record) {
    this.#records.push(record);
    if (this.#records.length > KEPT) {
      this.#records.shift();
      this.#dropped += 1;
    }
    if (this.#shown && !this.#paused) this.#timer ??= setTimeout(() => this.#append(), EVERY_MS);
  }

  /** The records that pass the filter, oldest first. */
  get filtered() {
    return this.#records.filter((record) => this.#passes(record));
  }

  // --- rows ---

  #append() {
    this.#timer = null;
    if (!this.#shown || this.#paused) return;
    const follow = this.#isAtEnd;
    const from = Math.max(this.#shownTo, this.#dropped);
    const fresh = this.#records.slice(from - this.#dropped).filter((record) => this.#passes(record));
    this.#shownTo = this.#dropped + this.#records.length;
    for (const record of fresh.slice(-ROWS)) this.#body.append(...this.#row(record));
    if (follow) this.#trim();
    this.#showCount();
    if (follow) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #rebuild() {
    this.#body.replaceChildren();
    if (!this.#shown) return;
    const newest = this.filtered.slice(-ROWS);
    for (const record of newest) this.#body.append(...this.#row(record));
    this.#shownTo = this.#dropped + this.#records.length;
    this.#showCount();
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #showOlder() {
    const first = this.#firstRecord;
    const all = this.filtered;
    const end = first ? all.indexOf(first) : all.length;
    const height = this.#scroller.scrollHeight;
    this.#body.prepend(...all.slice(Math.max(0, end - ROWS), Math.max(0, end)).flatMap((record) => this.#row(record)));
    this.#showCount();
    this.#scroller.scrollTop += this.#scroller.scrollHeight - height; // keep the visible rows in view
  }

  /** Keeps the table short while it follows the newest rows. */
  #trim() {
    while (this.#body.children.length > 3 * ROWS) this.#body.firstChild.remove();
  }

  get #isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  }

  get #firstRecord() {
    return this.#recordOf.get(this.#body.firstChild);
  }

  #recordOf = new WeakMap(); // row -> record

  #row(record) {
    const { t, name, source, data } = record;
    const open = h("button", { type: "button", class: "open", "aria-expanded": "false" }, name);
    const row = h(
      "tr",
      { role: "row", "data-category": categoryOf(name) },
      h("td", { role: "cell", class: "when" }, clock(t, 3)),
      h("th", { role: "rowheader", scope: "row" }, open, h("span", { class: "source" }, source)),
      h("td", { role: "cell", class: "what" }, ...fieldsOf(data).flatMap(field)),
    );
    open.addEventListener("click", () => this.#toggle(row, open, record));
    this.#recordOf.set(row, record);
    return [row];
  }

  #toggle(row, open, record) {
    const shown = open.ariaExpanded !== "true";
    open.ariaExpanded = String(shown);
    if (!shown) return row.nextSibling.remove();
    const copy = copyButton("Copy", () => toJson(record));
    const details = h("tr", { role: "row", class: "details" }, h("td", { role: "cell", colspan: "3" }, h("pre", { tabindex: "0" }, toJson(record)), copy));
    this.#recordOf.set(details, record);
    return row.after(details);
  }

  #showCount() {
    const all = this.filtered.length;
    const rows = this.#body.querySelectorAll("tr:not(.details)").length;
    this.#older.hidden = rows >= all;
    const kept = this.#dropped ? `; the oldest ${this.#dropped} are gone` : "";
    const words = `${all} of ${this.#records.length} events${kept}`;
    if (this.#count.textContent !== words) this.#count.textContent = words;
  }

  // --- filter ---

  #passes(record) {
    if (this.#off.has(categoryOf(record.name))) return false;
    return !this.#words || this.#textOf(record).includes(this.#words);
  }

  #textOf(record) {
    if (!this.#texts.has(record)) this.#texts.set(record, JSON.stringify(record).toLowerCase());
    return this.#texts.get(record);
  }

  #setPaused(paused) {
    this.#paused = paused;
    this.#pause.replaceChildren(icon(paused ? "M5 12h13M12 5l7 7-7 7" : "M8 5v14M16 5v14"), paused ? "Follow" : "Pause");
    if (!paused) this.#rebuild();
  }

  #tools() {
    const filter = h("input", {
      type: "search",
      "aria-label": "Show only events that contain these words",
      placeholder: "Filter",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => {
        this.#words = filter.value.trim().toLowerCase();
        this.#rebuild();
      },
    });
    return h(
      "div",
      { class: "tools" },
      filter,
      this.#pause,
      copyButton("Copy all", () => toJson(this.filtered)),
      h("div", { class: "chips", role: "group", "aria-label": "Kinds of events" }, ...[...CATEGORIES.map(([name]) => name), OTHER].map((name) => this.#chip(name))),
    );
  }

  #chip(name) {
    const chip = h("button", { type: "button", class: "chip", "aria-pressed": "true" }, name);
    chip.addEventListener("click", () => {
      const on = chip.ariaPressed !== "true";
      chip.ariaPressed = String(on);
      if (on) this.#off.delete(name);
      else this.#off.add(name);
      this.#rebuild();
    });
    return chip;
  }

  #table() {
    const head = ["Time", "Event and source", "Fields"].map((name) => h("th", { role: "columnheader", scope: "col" }, name));
    // Explicit roles, because the layout on a phone is not that of a table.
    return h("table", { role: "table" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...head)), this.#body);
  }
}

const categories = new Map();

/** The category of a record's name: that of the longest matching prefix. */
export function categoryOf(name) {
  let category = categories.get(name);
  if (category === undefined) {
    const fits = CATEGORIES.flatMap(([each, starts]) => starts.filter((start) => name.startsWith(start)).map((start) => [start.length, each]));
    category = fits.sort(([a], [b]) => b - a)[0]?.[1] ?? OTHER;
    categories.set(name, category);
  }
  return category;
}

/** The fields of an event as text: [[name, value]]; empty ones are left out. */
export function fieldsOf(data) {
  const all = Object.entries(data).flatMap(([name, value]) => flat(name, value));
  const rest = all.length - FIELDS;
  return rest > 1 ? [...all.slice(0, FIELDS), ["", `and ${rest} more`]] : all;
}

function flat(name, value) {
  if (value === null || value === undefined || value === "") return [];
  if (Array.isArray(value)) return value.length ? [[name, short(value.map(words).join(", "))]] : [];
  if (typeof value !== "object") return [[name, short(words(value))]];
  return Object.entries(value).flatMap(([inner, each]) => flat(`${name}.${inner}`, each));
}

function words(value) {
  if (typeof value === "number") return String(Math.round(value * 1000) / 1000);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function short(text) {
  return text.length > VALUE ? `${text.slice(0, VALUE).trimEnd()}…` : text;
}

/** A field followed by a space, so that a copied row reads as it looks. */
function field([name, value]) {
  const key = name ? [h("span", { class: "key" }, name), " "] : [];
  return [h("span", { class: "field" }, ...key, h("span", { class: "value" }, value)), " "];
}

function toJson(value) {
  return JSON.stringify(value, (_, field) => (field === undefined ? undefined : typeof field === "number" ? Math.round(field * 1e4) / 1e4 : field), 2);
}

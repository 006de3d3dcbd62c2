/**
 * Asks whether a tool may run, one question at a time.
 */

import { Card } from "./question-card.js";

const byId = (id) => document.getElementById(id);

export class Permissions {
  #on;
  #open = new Map(); // id -> {id, name, arguments}, in the order in which they were asked
  #shown = null; // the id of the shown question
  #answering = new Set(); // answered here, but not confirmed by the server yet
  #card = new Card(byId("question"));

  /** `on` has answer(id, allow, remember) and note(text). */
  constructor(on) {
    this.#on = on;
    byId("allow").addEventListener("click", () => this.#answer(true));
    byId("deny").addEventListener("click", () => this.#answer(false));
  }

  /** A tool asks. */
  ask({ id, name, arguments: given }) {
    if (!this.#open.has(id)) this.#open.set(id, { id, name, arguments: given ?? {} });
    this.#show();
  }

  /** A question was closed, here or elsewhere. */
  answered({ id, name, verdict, remembered }) {
    this.#answering.delete(id);
    this.#open.delete(id);
    this.#on.note(VERDICTS[verdict](name) + (remembered ? " It is remembered for this call." : ""));
    this.#show();
  }

  /** Synchronizes with the open questions after a reconnect. */
  sync(questions) {
    const ids = new Set(questions.map(({ id }) => id));
    for (const id of this.#open.keys()) if (!ids.has(id)) this.#open.delete(id);
    for (const id of this.#answering) if (!ids.has(id)) this.#answering.delete(id);
    for (const question of questions) this.#open.set(question.id, question);
    this.#show();
  }

  close() {
    this.#open.clear();
    this.#answering.clear();
    this.#show();
  }

  #answer(allow) {
    const id = this.#shown;
    if (id === null) return;
    this.#answering.add(id);
    this.#on.answer(id, allow, byId("remember").checked);
    this.#show();
  }

  #show() {
    const waiting = [...this.#open.values()].filter(({ id }) => !this.#answering.has(id));
    const question = waiting.find(({ id }) => id === this.#shown) ?? waiting[0];
    if (!question) return this.#hide();
    byId("question-more").textContent = waiting.length > 1 ? `1 of ${waiting.length} questions` : "";
    if (question.id !== this.#shown) this.#draw(question);
    return undefined;
  }

  #draw({ id, name, arguments: given }) {
    this.#shown = id;
    byId("question-tool").textContent = name;
    byId("question-with").replaceChildren(...Object.entries(given).flatMap(argument));
    byId("question-with").hidden = Object.keys(given).length === 0;
    byId("remember").checked = false;
    this.#card.show();
  }

  #hide() {
    this.#shown = null;
    this.#card.hide();
  }
}

const VERDICTS = {
  allowed: (name) => `You allowed ${name}.`,
  denied: (name) => `You did not allow ${name}.`,
  withdrawn: (name) => `The question about ${name} was withdrawn; it did not run.`,
};

function argument([name, value]) {
  const term = document.createElement("dt");
  term.textContent = name;
  const shown = document.createElement("dd");
  shown.textContent = typeof value === "string" && value ? value : JSON.stringify(value);
  return [term, shown];
}

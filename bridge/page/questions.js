/**
 * The questions that a running tool asks the person.
 *
 * One question is open at a time.  The buttons of its choices, typed text or the voice answer it;
 * only the server closes it.
 */

import { Card } from "./question-card.js";
import { h } from "./dom.js";

const byId = (id) => document.getElementById(id);

export class Questions {
  #on;
  #open = null; // {id, text, choices}
  #answered = null; // the id of the question that was answered here
  #card = new Card(byId("ask"));

  /** `on` has answer(id, text) and note(text). */
  constructor(on) {
    this.#on = on;
    byId("ask-nevermind").addEventListener("click", () => this.answer("Never mind"));
  }

  /** A tool asks. */
  ask(question) {
    this.sync(question);
  }

  /** A question was closed, for whatever reason. */
  closed({ id, outcome }) {
    if (OUTCOMES[outcome]) this.#on.note(OUTCOMES[outcome]);
    if (this.#open?.id === id) this.sync(null);
  }

  /** Synchronizes with the open question, or none, after a reconnect. */
  sync(question) {
    if (question?.id === this.#open?.id) return;
    this.#open = question;
    if (question) this.#draw(question);
    else this.#card.hide();
  }

  /** Answers the open question with a text; false if there is none. */
  answer(text) {
    const id = this.#open?.id;
    if (id === undefined || id === this.#answered) return false;
    this.#answered = id;
    this.#on.answer(id, text);
    this.#card.hide();
    return true;
  }

  #draw({ text, choices = [] }) {
    byId("ask-text").textContent = text;
    const keys = choices.map((choice) =>
      h("button", { type: "button", onclick: () => this.answer(choice) }, choice),
    );
    byId("ask-choices").replaceChildren(...keys);
    this.#card.show();
  }
}

const OUTCOMES = {
  timed_out: "The question was not answered in time.",
  interrupted: "The question was withdrawn.",
  withdrawn: "The question was withdrawn.",
};

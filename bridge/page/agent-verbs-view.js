/** Shows the state of Handle, and passes button presses to it. */

import { insteadOf, verbs as known } from "./about.js";
import { capName, capUse, clock, effectOf, short } from "./control-texts.js";
import { h, icon } from "./dom.js";

const TICK_MS = 250; // shorter than a second, so that none of them is skipped
const STATE_WORDS = {
  running: "",
  done: "",
  failed: "failed",
  stopped: "stopped",
  refused: "not allowed",
  background: "in the background",
};
const POLICY_WORDS = {
  cancel: "ends",
  finish: "may finish",
  shield: "is not cut",
  detach: "continues in the background",
};
const NEAR = 0.8; // the server also warns at four fifths of a cap
const byId = (id) => document.getElementById(id);

export class HandleView {
  #on;
  #view = null;
  #offersAll = false; // what is offered now: all verbs, or Stop alone
  #timer = null;
  #drawn = new Map(); // id of an element -> its last content

  /**
   * `on` has use(verb), redirect(), which opens its composer, and room(), which is called when the
   * transcript has more room or less.
   */
  constructor(on) {
    this.#on = on;
    byId("verbs").append(...verbsWithKeys().map((verb) => verbKey(verb, on)));
    byId("end-jobs").addEventListener("click", () => on.use(this.#view.endsJobs));
    byId("steps-toggle").addEventListener("click", () => this.#toggleSteps());
    // The transcript ends above the elements that float over the dock, so that they cover no words.
    new ResizeObserver(() => this.#makeRoom()).observe(byId("float"));
  }

  get isShown() {
    return !byId("handle").hidden;
  }

  show(view) {
    this.#view = view;
    this.#reveal(byId("handle"), view.shown);
    this.#showTask(view);
    this.#showSteps(view);
    this.#showStill(view);
    this.#showVerbs(view);
    this.#offersAll = isFull(view);
    byId("jobs").hidden = view.backgrounded === 0;
    text("jobs", view.backgrounded === 1 ? "1 job in the background" : `${view.backgrounded} jobs in the background`);
    this.#reveal(byId("end-jobs"), view.endsJobs !== null);
    this.#tick();
    clearInterval(this.#timer);
    if (view.shown) this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  // --- parts ---

  #showTask({ state, title, counts }) {
    byId("handle").dataset.state = state;
    text("task-title", title);
    text("task-step", counts);
  }

  #showSteps({ steps }) {
    byId("steps-toggle").hidden = steps.length < 2;
    const shape = JSON.stringify(steps.map(({ label, state }) => [label, state]));
    this.#redraw("steps", shape, () => steps.map(stepRow));
  }

  #showStill({ still }) {
    byId("still-box").hidden = still.length === 0;
    const shape = JSON.stringify(still.map(({ tool, policy }) => [tool, policy]));
    this.#redraw("still", shape, () => still.map(stillRow));
  }

  #showVerbs(view) {
    const { verbs, isPaused, mayHush, pending, cancels } = view;
    const all = isFull(view);
    byId("handle").dataset.offers = all ? "all" : "stop";
    const instead = { pause: isPaused ? insteadOf("pause") : "pause", cancel: cancels };
    const isShown = {
      barge_in: all ? mayHush && !isPaused : true,
      pause: all && (verbs[instead.pause]?.possible !== false || pending === instead.pause),
      redirect: all && view.state !== "stopping",
      cancel: all,
    }; // any other verb is offered where it is possible
    for (const { id } of byId("verbs").children) {
      const verb = instead[id] ?? id;
      const name = id === "barge_in" && !all ? "Stop" : known[verb].name;
      this.#verb(id, verb, name, isShown[id] ?? (all && verbs[id]?.possible === true), view);
    }
    const shown = [...byId("verbs").children].filter((key) => !key.hidden);
    byId("verbs").dataset.count = shown.length;
  }

  #verb(id, verb, name, shown, { verbs, pending }) {
    this.#reveal(byId(id), shown);
    text(`${id}-name`, pending === verb ? known[verb].busy : name);
    text(`${id}-effect`, effectOf(verbs[verb]?.text));
    byId(id).classList.toggle("busy", pending === verb);
    if (byId(id).dataset.verb === verb) return;
    byId(id).dataset.verb = verb;
    byId(id).querySelector("path").setAttribute("d", known[verb].icon);
  }

  #toggleSteps() {
    const open = byId("steps-toggle").ariaExpanded !== "true";
    byId("steps-toggle").ariaExpanded = String(open);
    byId("steps-toggle").ariaLabel = open ? "Hide the steps" : "Show the steps";
    byId("handle").classList.toggle("open", open);
  }

  // --- time ---

  #tick() {
    const now = performance.now();
    if (isFull(this.#view) !== this.#offersAll) return this.show(this.#view); // a step took long
    const { asOf, standing, isStill, activeMs, steps, still, armedUntil } = this.#view;
    const since = standing ? 0 : now - asOf;
    const ran = isStill ? 0 : now - asOf; // a tool goes on while the work begins to pause
    text("task-time", activeMs === null ? "" : clock(activeMs + since));
    byId("steps").querySelectorAll(".took").forEach((took, i) => {
      took.textContent = short(steps[i].ms + (steps[i].state === "running" ? ran : 0));
    });
    byId("still").querySelectorAll(".left").forEach((left, i) => {
      const { until, policy } = still[i];
      left.textContent = until === null ? POLICY_WORDS.detach : `${POLICY_WORDS[policy]}, at most ${Math.ceil(Math.max(0, until - now) / 1000)} s`;
    });
    this.#showCaps(since);
    byId("armed").hidden = now >= armedUntil;
    return undefined;
  }

  #showCaps(since) {
    const caps = Object.entries(this.#view.caps).map(([name, { used, limit }]) => {
      const value = name === "wall_s" ? Math.min(limit, used + since / 1000) : used;
      return { name, near: value >= NEAR * limit, words: capUse(name, value, limit) };
    });
    byId("caps").hidden = caps.length === 0;
    this.#redraw("caps", JSON.stringify(caps), () => caps.map(capRow));
  }

  // --- the document ---

  /** Redraws a list only if it changed; otherwise a screen reader loses its place. */
  #redraw(id, shape, rows) {
    if (this.#drawn.get(id) === shape) return;
    this.#drawn.set(id, shape);
    byId(id).replaceChildren(...rows());
  }

  /** Shows or hides; if a hidden part had the focus, it moves to a neighbour. */
  #reveal(part, shown) {
    const hadFocus = !shown && part.contains(document.activeElement);
    part.hidden = !shown;
    if (!hadFocus) return;
    const next = [...byId("verbs").children].find((key) => key.checkVisibility());
    (next ?? byId("transcript")).focus({ preventScroll: true });
  }

  #makeRoom() {
    const { style } = document.documentElement;
    const isEmpty = !byId("float").querySelector(":scope > :not([hidden])");
    if (isEmpty) return style.removeProperty("--covered");
    const height = `${byId("float").offsetHeight}px`;
    style.setProperty("--covered", height);
    style.setProperty("--float", height); // it stays; otherwise the words would jump at every answer
    return this.#on.room();
  }
}

/** The verbs that have a key of their own, the mildest first. */
export function verbsWithKeys() {
  return Object.keys(known).filter((verb) => !known[verb].place);
}

function verbKey(verb, on) {
  const { name, key, icon: path } = known[verb];
  const effect = h("span", { id: `${verb}-effect`, class: "effect", "aria-hidden": "true" });
  const made = h(
    "button",
    { id: verb, class: "verb", type: "button", "data-verb": verb, "aria-describedby": effect.id },
    icon(path),
    h("span", { id: `${verb}-name`, class: "name" }, name),
    effect,
    h("kbd", { "aria-hidden": "true" }, key),
  );
  if (key) made.setAttribute("aria-keyshortcuts", key.startsWith("Esc") ? "Escape" : key.toLowerCase());
  made.addEventListener("click", () => (verb === "redirect" ? on.redirect() : on.use(made.dataset.verb)));
  return made;
}

function isFull({ fullAt }) {
  return performance.now() >= fullAt;
}

function stepRow({ label, state }) {
  const row = element("li", "step");
  row.dataset.step = state;
  const words = STATE_WORDS[state];
  row.append(element("span", "mark-of-step"), element("span", "label", label));
  if (words) row.append(element("span", "word", words));
  row.append(element("span", "sr-only", state === "running" ? " running, " : state === "done" ? " done, " : " "));
  row.append(element("span", "took mono"));
  return row;
}

function stillRow({ tool }) {
  const row = element("li", "still");
  row.append(element("span", "label", tool), element("span", "left mono"));
  return row;
}

function capRow({ name, near, words }) {
  const row = element("li", near ? "cap near" : "cap");
  row.append(element("span", "what", capName(name)), element("span", "mono", words));
  if (near) row.append(element("span", "word", "near limit"));
  return row;
}

function text(id, words) {
  const part = byId(id);
  if (part.textContent !== words) part.textContent = words;
}

function element(name, className, words = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = words;
  return made;
}

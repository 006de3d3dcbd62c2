/** Shows the state of Handle, and passes button presses to it. */

import { capName, capUse, clock, effectOf, short } from "./control-texts.js";

const TICK_MS = 250; // shorter than a second, so that none of them is skipped
const BUSY = {
  pause: "Pausing…",
  resume: "Resuming…",
  redirect: "Redirecting…",
  cancel: "Cancelling…",
  background: "Moving…",
  barge_in: "Stopping…",
  emergency_stop: "Stopping…",
};
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
   * `on` has use(verb), pauseOrResume(), redirect(), which opens its composer, and room(), which
   * is called when the transcript has more room or less.
   */
  constructor(on) {
    this.#on = on;
    byId("hush").addEventListener("click", () => on.use("barge_in"));
    byId("pause").addEventListener("click", on.pauseOrResume);
    byId("redirect").addEventListener("click", on.redirect);
    byId("background").addEventListener("click", () => on.use("background"));
    byId("cancel").addEventListener("click", () => on.use(this.#view.cancels));
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
    const verb = isPaused ? "resume" : "pause";
    byId("handle").dataset.offers = all ? "all" : "stop";
    this.#verb("hush", "barge_in", all ? "Stop speaking" : "Stop", all ? mayHush && !isPaused : true, view);
    this.#verb("pause", verb, isPaused ? "Resume" : "Pause", all && (verbs[verb]?.possible !== false || pending === verb), view);
    byId("pause").dataset.verb = verb;
    this.#verb("redirect", "redirect", "Redirect", all && view.state !== "stopping", view);
    this.#verb("background", "background", "Background", all && verbs.background?.possible === true, view);
    this.#verb("cancel", cancels, cancels === "cancel" ? "Cancel" : "Stop now", all, view);
    const shown = [...byId("verbs").children].filter((key) => !key.hidden);
    byId("verbs").dataset.count = shown.length;
  }

  #verb(id, verb, name, shown, { verbs, pending }) {
    this.#reveal(byId(id), shown);
    text(`${id}-name`, pending === verb ? BUSY[verb] : name);
    text(`${id}-effect`, effectOf(verbs[verb]?.text));
    byId(id).classList.toggle("busy", pending === verb);
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

/**
 * The state of the agent's work, and the verbs that control it.
 *
 * Rules:
 * 1. The page acts at once: sound is flushed or held, the button says "Pausing…".  The server
 *    decides: a verb that did nothing is reverted.
 * 2. Work that could not be stopped is listed, with its deadline, until it is over.
 * 3. While the agent only thinks or speaks there is one button, Stop.  The other verbs appear with
 *    a tool, a question, a pause, a long step, or an app that asks for them.
 * 4. It uses neither the document nor the connection, so it can be tested alone.
 */

import { insteadOf, verbs as known } from "./about.js";
import { countsOf, endWords, receiptWords, stepsOf, titleOf } from "./control-texts.js";

const WORKING = new Set([
  "thinking",
  "speaking",
  "tool",
  "waiting_permission",
  "waiting_input",
  "pausing",
  "paused",
  "stopping",
]);
/** States in which there is more to decide than whether the agent continues. */
const ALL_VERBS_IN = new Set([
  "tool",
  "waiting_permission",
  "waiting_input",
  "pausing",
  "paused",
  "stopping",
]);
const LONG_MS = 2000; // a longer step is work, not a pause before an answer
const TWICE_MS = 1500; // two presses of Esc within this time belong together, like a double click
const FOLLOW = "follow"; // the request of the snapshots

export class Handle {
  #on;
  #state = "idle";
  #stateAt = 0; // when the state was reported, in ms
  #offersAll = false; // the app asks for all verbs at all times
  #now = null; // the last snapshot
  #nowAt = 0; // when it arrived, in ms
  #steps = []; // of the answer shown last, kept while its cut work ends
  #pending = new Map(); // request -> a verb without a receipt yet
  #receipts = new Map(); // id -> what it left running: Map(id -> {tool, policy, until})
  #isAudible = false;
  #escapedAt = -Infinity;
  #requests = 0;
  #over = false;

  /**
   * `on` has send(type, fields), silence(), hold(on), show(view), note(text), questions(list),
   * asked(question) and now(), which is the time in ms.
   */
  constructor(on) {
    this.#on = on;
  }

  get isWorking() {
    return WORKING.has(this.#state) || this.#isAudible;
  }

  /**
   * Asks the server for a snapshot of the call, now and whenever it changes.
   *
   * `offer` is what the app wants to be offered: "full" for all verbs whenever anything runs.
   */
  follow(offer = "auto") {
    this.#offersAll = offer === "full";
    this.#on.send("snapshot", { request: FOLLOW, follow: true });
  }

  /** The connection is lost or the call over: forget everything. */
  close() {
    this.#over = true;
    this.#pending.clear();
    this.#receipts.clear();
    this.#show();
  }

  // --- actions of the person ---

  /** Uses a verb; its effects on the page come first, then it is sent. */
  use(verb, text = "") {
    if (this.#over) return;
    if (known[verb]?.silences) this.#on.silence();
    if (verb === "pause") this.#on.hold(true);
    const request = `verb-${(this.#requests += 1)}`;
    this.#pending.set(request, verb);
    this.#on.send("control", { verb, request, ...(text && { text }) });
    this.#show();
  }

  /** Esc: the first press stops speech, the second the work, as the button says. */
  escape() {
    if (!this.#isShown()) return;
    const now = this.#on.now();
    const isSecond = now - this.#escapedAt < TWICE_MS;
    this.#escapedAt = isSecond ? -Infinity : now;
    if (isSecond) this.use(this.#cancels());
    else if (this.#mayHush(now < this.#fullAt())) this.use("barge_in");
    this.#show();
  }

  // --- messages of the server ---

  /** The state changed. */
  state(name) {
    if (name !== this.#state) this.#stateAt = this.#on.now();
    this.#state = name;
    this.#show();
  }

  /** Sound began or ended at the loudspeaker. */
  audible(isAudible) {
    this.#isAudible = isAudible;
    this.#show();
  }

  snapshot(message) {
    this.#now = message;
    this.#nowAt = this.#on.now();
    if (message.answer !== undefined) this.#steps = message.step_list;
    this.#on.questions(message.permissions);
    this.#on.asked(message.question ?? null);
    this.#show();
  }

  receipt(message) {
    this.#pending.delete(message.request);
    if (message.verb === "pause" && !message.accepted) this.#on.hold(false);
    if (!this.#receipts.has(message.id)) {
      const words = receiptWords(message);
      if (words) this.#on.note(words);
    }
    const running = message.still_running.map((one) => [one.id, this.#running(one)]);
    this.#receipts.set(message.id, new Map(running));
    this.#show();
  }

  settled({ id }) {
    const running = [...(this.#receipts.get(id)?.values() ?? [])];
    this.#receipts.delete(id);
    for (const { tool, until } of running) if (until !== null) this.#on.note(endWords(tool));
    this.#show();
  }

  /** A tool has its result. */
  toolEnded({ id, outcome, error }) {
    if (outcome !== "backgrounded") {
      const ended = [...this.#receipts.values()].find((running) => running.has(id))?.get(id);
      // The end of what runs in the background is told by the event of its job.
      if (ended && ended.until !== null) this.#on.note(endWords(ended.tool, outcome, error));
      for (const running of this.#receipts.values()) running.delete(id);
    }
    this.#steps = this.#steps.map((step) =>
      step.id === id && step.state === "running" ? { ...step, state: ENDED[outcome] ?? "stopped" } : step,
    );
    this.#show();
  }

  /** The server refused a message; true if the handle had sent it. */
  refused({ request, message }) {
    const verb = this.#pending.get(request);
    if (verb === undefined) return false;
    this.#pending.delete(request);
    if (verb === "pause") this.#on.hold(false);
    this.#on.note(`The server refused it: ${message}.`);
    this.#show();
    return true;
  }

  // --- the view ---

  #running({ tool, policy, deadline_ms: deadline }) {
    return { tool, policy, until: deadline === undefined ? null : this.#on.now() + deadline };
  }

  #isPaused() {
    return this.#state === "paused" || this.#state === "pausing";
  }

  /** Whether Stop is offered; `alone`, it also stops an agent that is thinking. */
  #mayHush(alone = false) {
    return (this.#isAudible || alone) && this.#now?.verbs.barge_in?.possible !== false;
  }

  /** When all verbs are offered, in ms; until then only Stop is. */
  #fullAt() {
    const { verbs = {} } = this.#now ?? {};
    const thinks = this.#state === "thinking" && !this.#isAudible;
    const isFull =
      this.#offersAll ||
      ALL_VERBS_IN.has(this.#state) ||
      // Keep the buttons in place between two tools.
      this.#steps.some(({ tool, state }) => tool && (thinks || state === "running")) ||
      this.#stillRunning().length > 0 ||
      (verbs.barge_in?.possible === false && verbs.cancel?.possible === true);
    if (isFull) return -Infinity;
    return thinks ? this.#stateAt + LONG_MS : Infinity;
  }

  /** A second cancel, while the first takes effect, skips every grace period. */
  #cancels() {
    const hasGrace = this.#stillRunning().some(({ until }) => until !== null);
    return this.#state === "stopping" || hasGrace ? insteadOf("cancel") : "cancel";
  }

  /** What ends the background jobs: a cancel spares tools that are to continue; null for nothing. */
  #endsJobs() {
    const { verbs = {}, backgrounded = 0 } = this.#now ?? {};
    if (this.#over || this.#isShown() || backgrounded === 0) return null;
    return ["cancel", insteadOf("cancel")].find((verb) => verbs[verb]?.possible) ?? null;
  }

  #isShown() {
    return !this.#over && (this.isWorking || this.#stillRunning().length > 0 || this.#pending.size > 0);
  }

  #stillRunning() {
    return [...this.#receipts.values()].flatMap((running) => [...running.values()]);
  }

  #show() {
    const now = this.#now;
    const shown = this.#isShown();
    if (!shown) this.#steps = [];
    this.#on.show({
      shown,
      state: this.#state,
      title: titleOf(this.#state, now, this.#isAudible),
      counts: countsOf(now),
      activeMs: now?.answer === undefined ? null : now.active_ms,
      asOf: this.#nowAt,
      standing: this.#isPaused(),
      isStill: this.#state === "paused",
      steps: stepsOf(this.#steps),
      caps: now?.caps ?? {},
      verbs: now?.verbs ?? {},
      isPaused: this.#isPaused(),
      mayHush: this.#mayHush(),
      fullAt: this.#fullAt(),
      cancels: this.#cancels(),
      pending: [...this.#pending.values()].at(-1) ?? null,
      still: this.#stillRunning(),
      backgrounded: this.#over ? 0 : (now?.backgrounded ?? 0),
      endsJobs: this.#endsJobs(),
      armedUntil: shown ? this.#escapedAt + TWICE_MS : -Infinity,
    });
  }
}

const ENDED = {
  completed: "done",
  completed_after_interrupt: "done",
  timed_out: "failed",
  denied: "refused",
  backgrounded: "background",
};

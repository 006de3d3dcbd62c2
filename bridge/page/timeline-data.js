/**
 * Builds what the timeline shows from the records of a call: states, holds, cuts and overlaps, each
 * with the decision about it and the reason.
 */

const LATE_S = 4; // how long after an overlap a decision may belong to it: words come late
const KEPT = 2000;

/** What each decision of turn taking means to people; others are not final. */
const MEANING = {
  interruption: "interruption",
  acknowledgement: "backchannel",
  noise: "false_alarm",
  echo: "false_alarm",
  too_few_words: "false_alarm",
  muted: "false_alarm",
};

export const KIND_WORDS = {
  interruption: "Interruption",
  backchannel: "Backchannel",
  false_alarm: "False alarm",
  overlap: "Both spoke",
};

export class Story {
  states = []; // {from, to, state}
  holds = []; // {from, to, reason}
  cuts = []; // {t, atMs, utterance}
  overlaps = []; // {from, to, kind, decision, rule, values, heldS, cutMs}
  #audible = false; // the agent is being heard
  #voice = false;
  #held = null; // the current hold of a barge-in
  #stopped = null; // {utterance, t} of the last cut
  #open = null; // the current overlap

  /** Adds a record; returns whether anything visible has changed. */
  add(record) {
    const act = this.#acts[record.name];
    if (act) act(record.data, record.t);
    return Boolean(act);
  }

  /** The call is over: ends everything that is under way. */
  close(t) {
    for (const span of [this.states.at(-1), this.holds.at(-1), this.#open]) if (span) span.to ??= t;
    this.#open = this.#held = null;
  }

  #acts = {
    "call.state_changed": ({ state }, t) => this.#state(state, t),
    "voice.started": (_, t) => this.#voiceBegins(t),
    "user.started_speaking": (_, t) => this.#voiceBegins(t),
    "voice.stopped": (_, t) => this.#voiceEnds(t),
    "user.stopped_speaking": (_, t) => this.#voiceEnds(t),
    "turn.transcription_failed": (_, t) => this.#voiceEnds(t),
    "agent.started_speaking": () => {
      this.#audible = true;
    },
    "agent.stopped_speaking": ({ utterance, cut }, t) => {
      this.#audible = false;
      if (cut) this.#stopped = { utterance, t };
      this.#closeIfOver(t);
    },
    "agent.speech_held": ({ reason }, t) => this.#hold(reason, t),
    "agent.speech_released": ({ held_s }, t) => this.#release(held_s, t),
    "agent.speech_cut": (data, t) => this.#cut(data, t),
    "turn.decided": (data, t) => this.#decided(data, t),
  };

  #state(state, t) {
    const last = this.states.at(-1);
    if (last) last.to ??= t;
    push(this.states, { from: t, to: null, state });
  }

  #voiceBegins(t) {
    this.#voice = true;
    if (this.#audible || this.#held) this.#openOverlap(t);
  }

  #voiceEnds(t) {
    this.#voice = false;
    this.#closeIfOver(t);
  }

  #openOverlap(t) {
    this.#open ??= push(this.overlaps, { from: t, to: null, kind: "overlap", decision: null, rule: null, values: null, heldS: null, cutMs: null });
    return this.#open;
  }

  #closeIfOver(t) {
    if (!this.#open || (this.#held && this.#audible) || (this.#voice && this.#audible)) return;
    this.#open.to = t;
    this.#open = null;
  }

  #hold(reason, t) {
    const hold = push(this.holds, { from: t, to: null, reason });
    if (reason !== "barge_in") return;
    this.#held = hold;
    this.#openOverlap(t);
  }

  #release(heldS, t) {
    const hold = this.holds.findLast((each) => each.to === null);
    if (hold) hold.to = t;
    if (hold && hold === this.#held) {
      const overlap = this.#about(t);
      if (overlap) overlap.heldS = heldS ?? t - hold.from;
      this.#held = null;
    }
    this.#closeIfOver(t);
  }

  #cut({ utterance, at_ms: atMs }, reportedAt) {
    // This arrives only when the player has reported what was heard, after the cut itself.
    const isKnown = this.#stopped?.utterance === utterance && reportedAt - this.#stopped.t <= LATE_S;
    const t = isKnown ? this.#stopped.t : reportedAt;
    push(this.cuts, { t, atMs, utterance });
    const overlap = this.#about(t);
    if (!overlap) return;
    overlap.kind = "interruption";
    overlap.cutMs = atMs;
    if (overlap.to !== null && t > overlap.to) overlap.to = t;
  }

  #decided({ about, decision, rule, values }, t) {
    if (about !== "barge_in") return;
    const overlap = this.#about(t);
    if (!overlap) return;
    Object.assign(overlap, { decision, rule, values: values ?? null });
    overlap.kind = overlap.cutMs === null ? (MEANING[decision] ?? "overlap") : "interruption";
  }

  /** The overlap that something at `t` belongs to: the current one, or one that has just ended. */
  #about(t) {
    const last = this.overlaps.at(-1);
    return last && (last.to === null || t - last.to <= LATE_S) ? last : null;
  }
}

/** What happened at an overlap, in words. */
export function describe(overlap) {
  const parts = [];
  const s = (value) => `${value.toFixed(2)} s`;
  if (overlap.heldS !== null) parts.push(`agent held for ${s(overlap.heldS)}`);
  if (overlap.cutMs !== null) parts.push(`agent cut after ${s(overlap.cutMs / 1000)} of speech`);
  else if (overlap.kind !== "interruption" && overlap.to !== null) parts.push("agent went on");
  if (overlap.rule) parts.push(`rule ${overlap.rule}${valuesOf(overlap)}`);
  return parts.join(", ");
}

function valuesOf({ values }) {
  const entries = Object.entries(values ?? {});
  return entries.length ? ` (${entries.map(([name, value]) => `${name} ${value}`).join(", ")})` : "";
}

function push(list, item) {
  list.push(item);
  if (list.length > KEPT) list.shift();
  return item;
}

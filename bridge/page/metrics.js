/** The measurements of a call: times with their history, and counts. */

const KEPT = 500; // values kept of one measure
const OTHERS = 24; // measures of the app that are kept
const SETTLE_S = 0.6; // after this time the levels around a cut are usually known
const PATIENCE_S = 3; // after this time a cut is measured with the levels received so far
const WAY_S = 0.35; // from the server's cut to silence here, on a slow line
const CALLER_LOUD = 85; // -40 dB: a voice at a usual microphone
const AGENT_LOUD = 42; // -50 dB: above the ramp of a cut
const BREATH_S = 0.25; // a pause up to this long does not end the caller's voice
const LOOK_BACK_S = 2.5;

/** The built-in measures, in the order in which they are shown: key, name, explanation, factor to ms. */
const MEASURES = [
  ["listening.decided_s", "End of turn", "from the caller's last sound to the end of their turn", 1000],
  ["answer.first_text_s", "First token", "from the end of the turn to the answer's first word", 1000],
  ["answer.first_audio_s", "First audio", "from the end of the turn to the answer's first sound", 1000],
  ["page.silent_after", "Cut", "from the start of the caller's voice to the agent's silence, measured on this page", 1000],
  ["page.round_trip", "Round trip", "to the server and back", 1],
];

export class Numbers {
  #series = new Map();
  #levels; // {mic, agent}
  #story;
  #waiting = []; // cuts whose latency is not known yet
  #underruns = 0;
  #typed = 0;

  constructor({ mic, agent, story }) {
    this.#levels = { mic, agent };
    this.#story = story;
    for (const [key, name, meaning, factor] of MEASURES) this.#series.set(key, { key, name, meaning, factor, unit: "ms", values: [] });
  }

  add({ t, name, data }) {
    if (name === "call.metric" && typeof data.value === "number") this.#measure(data, t);
    if (name === "page.round_trip") this.#addValue("page.round_trip", data.ms, t);
    if (name === "page.player_underrun") this.#underruns += 1;
    if (name === "agent.speech_cut") this.#waiting.push(this.#story.cuts.at(-1));
  }

  /** Whether there are cuts that are not measured yet. */
  get isSettling() {
    return this.#waiting.length > 0;
  }

  /** Measures the cuts whose levels are all known by `now`; returns whether there were any. */
  settle(now) {
    const known = Math.min(this.#levels.mic.end, this.#levels.agent.end);
    const isDue = ({ t }) => now >= t + SETTLE_S && (known >= t + WAY_S || now >= t + PATIENCE_S);
    const due = this.#waiting.filter(isDue);
    this.#waiting = this.#waiting.filter((cut) => !due.includes(cut));
    for (const cut of due) {
      cut.latency = silentAfter(this.#levels, cut.t);
      if (cut.latency !== null) this.#addValue("page.silent_after", cut.latency, cut.t);
    }
    return due.length > 0;
  }

  /** All measures: {key, name, meaning, unit, factor, values: [{t, value}]}. */
  get series() {
    return [...this.#series.values()];
  }

  /** Counts by name. */
  get counts() {
    const of = (kind) => this.#story.overlaps.filter((overlap) => overlap.kind === kind).length;
    return {
      Interruptions: of("interruption"),
      Backchannels: of("backchannel"),
      "False alarms": of("false_alarm"),
      Cuts: this.#story.cuts.length,
      Underruns: this.#underruns,
    };
  }

  #measure({ name, value, unit }, t) {
    if (!this.#series.has(name)) {
      if (this.#series.size >= MEASURES.length + OTHERS) return;
      const isTime = unit === "s";
      this.#series.set(name, { key: name, name, meaning: "", factor: isTime ? 1000 : 1, unit: isTime ? "ms" : unit, values: [] });
    }
    this.#addValue(name, value, t);
  }

  #addValue(key, value, t) {
    const { values, factor } = this.#series.get(key);
    values.push({ t, value: value * factor });
    if (values.length > KEPT) values.shift();
  }
}

/**
 * How long the agent was heard after the caller's voice began, around a cut at `t`; null if the
 * caller was not heard.  Exact to 20 ms, the step of the levels.
 */
export function silentAfter({ mic, agent }, t) {
  const silent = agent.lastLoud(t + WAY_S, AGENT_LOUD, t - LOOK_BACK_S);
  if (silent === null) return null;
  const voice = mic.startOfLoud(silent, CALLER_LOUD, BREATH_S, silent - LOOK_BACK_S);
  // A microphone that was loud before picks up the room or the agent, not the caller.
  if (voice === null || voice <= silent - LOOK_BACK_S + BREATH_S) return null;
  return Math.max(0, silent - voice);
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

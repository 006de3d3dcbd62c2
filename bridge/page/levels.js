/** Loudness over time, in steps of 20 ms: a ring of bytes that holds the last half hour. */

export const STEP_S = 0.02;
const KEPT_STEPS = 90_000;
const FLOOR_DB = -60;

/** A level between 0 (silence, or below -60 dB) and 255 (full scale) of an RMS between 0 and 1. */
export function toByte(rms) {
  if (!(rms > 0)) return 0;
  const share = 1 - (20 * Math.log10(rms)) / FLOOR_DB;
  return Math.round(255 * Math.max(0, Math.min(1, share)));
}

export class Levels {
  #bytes = new Uint8Array(KEPT_STEPS);
  #newest = -1; // the number of the newest step, counted from time 0

  /** The end of the newest step, in s. */
  get end() {
    return (this.#newest + 1) * STEP_S;
  }

  /** Records the level of the step that ends at `t`, in s; skipped steps are silent. */
  add(t, rms) {
    const step = Math.round(t / STEP_S) - 1;
    if (step < 0 || step <= this.#newest - KEPT_STEPS) return;
    for (let n = Math.max(this.#newest + 1, step - KEPT_STEPS + 1); n < step; n++) this.#bytes[n % KEPT_STEPS] = 0;
    const at = step % KEPT_STEPS;
    // Because clocks drift, two levels may fall into one step; the louder one counts.
    this.#bytes[at] = step > this.#newest ? toByte(rms) : Math.max(this.#bytes[at], toByte(rms));
    this.#newest = Math.max(this.#newest, step);
  }

  /** The loudest step that touches the time from `from` to `to`, 0 to 255. */
  loudest(from, to) {
    const first = Math.max(0, Math.floor(from / STEP_S), this.#newest - KEPT_STEPS + 1);
    const last = Math.min(this.#newest, Math.max(first, Math.ceil(to / STEP_S) - 1));
    let most = 0;
    for (let n = first; n <= last; n++) {
      if (this.#bytes[n % KEPT_STEPS] > most) most = this.#bytes[n % KEPT_STEPS];
    }
    return most;
  }

  /** The end of the last step before `t` that is at least as loud as `least`; null if none since `since`. */
  lastLoud(t, least, since) {
    for (let n = this.#step(t); n >= Math.max(0, this.#step(since), this.#newest - KEPT_STEPS + 1); n--) {
      if (n <= this.#newest && this.#bytes[n % KEPT_STEPS] >= least) return (n + 1) * STEP_S;
    }
    return null;
  }

  /** The start of the loud stretch that is under way at `t`, over gaps of up to `gap` s. */
  startOfLoud(t, least, gap, since) {
    let start = null;
    let quiet = 0;
    for (let n = this.#step(t); n >= Math.max(0, this.#step(since), this.#newest - KEPT_STEPS + 1); n--) {
      const loud = n <= this.#newest && this.#bytes[n % KEPT_STEPS] >= least;
      quiet = loud ? 0 : quiet + STEP_S;
      if (loud) start = n * STEP_S;
      else if (quiet > gap) break;
    }
    return start;
  }

  #step(t) {
    return Math.ceil(t / STEP_S - 1e-6) - 1;
  }
}

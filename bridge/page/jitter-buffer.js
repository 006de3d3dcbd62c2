/**
 * Decides how much audio is gathered before a sound: more on a line whose audio comes late.
 *
 * An underrun is a gap within an utterance; a longer one is a voice that thinks, and no fault of the line.
 */

const LEAST_MS = 80; // covers the jitter of a usual line; shorter than a person notices
const MOST_MS = 300; // the server sends at most 400 ms ahead of what is heard
const UNDERRUNS = 2; // this many within WITHIN_S let it grow
const WITHIN_S = 10;
const LONGEST_GAP_S = 1;
const CALM_S = 30; // after so long without an underrun it shrinks by half

export class JitterBuffer {
  #rate;
  #underruns = []; // the frames of the latest ones
  #ms = LEAST_MS;
  #calmSince = 0; // the frame of the last underrun, or of the last time that it shrank

  constructor(rate) {
    this.#rate = rate;
  }

  /** Audio of an utterance goes on at `frame`, after it had run out at `dry`. */
  goesOn(dry, frame) {
    if (frame - dry > LONGEST_GAP_S * this.#rate) return;
    this.#underruns = this.#underruns.filter((each) => each > frame - WITHIN_S * this.#rate);
    this.#underruns.push(frame);
    this.#calmSince = frame;
    if (this.#underruns.length >= UNDERRUNS) this.#ms = MOST_MS;
  }

  /** How many milliseconds are gathered before a sound. */
  ms(frame) {
    while (this.#ms > LEAST_MS && frame - this.#calmSince > CALM_S * this.#rate) {
      this.#ms = Math.max(LEAST_MS, this.#ms / 2);
      this.#calmSince += CALM_S * this.#rate;
    }
    return this.#ms;
  }
}

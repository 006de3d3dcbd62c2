/** Measures how loud the output is: 20 ms steps, five to a message, and no message during silence. */

const STEP_S = 0.02;
const STEPS = 5;

export class Meter {
  #rate;
  #report;
  #length; // samples of a step
  #sum = 0;
  #count = 0;
  #levels = [];

  /** `report` gets {kind: "level", levels, at, step}: RMS values; the last step ends at `at` s. */
  constructor(rate, report) {
    this.#rate = rate;
    this.#report = report;
    this.#length = Math.round(STEP_S * rate);
  }

  /** Measures the next samples; `frame` is the number of the first one. */
  push(samples, frame) {
    for (let i = 0; i < samples.length; i++) {
      this.#sum += samples[i] * samples[i];
      if (++this.#count === this.#length) this.#step((frame + i + 1) / this.#rate);
    }
  }

  #step(at) {
    this.#levels.push(Math.sqrt(this.#sum / this.#length));
    this.#sum = this.#count = 0;
    if (this.#levels.length < STEPS) return;
    if (this.#levels.some((level) => level > 0)) {
      this.#report({ kind: "level", levels: this.#levels, at, step: this.#length / this.#rate });
    }
    this.#levels = [];
  }
}

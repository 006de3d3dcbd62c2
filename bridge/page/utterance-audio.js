/** The audio of one utterance: received piece by piece, read at the device's rate. */

import { Resampler } from "./resampler.js";

export class Utterance {
  number;
  ended = false; // all its audio has arrived
  started = false; // its first sample was rendered
  running = false; // it is being rendered now: not waiting for more
  waitingSince = null; // frame at which unplayed audio began to wait; null if there is none
  dryAt = null; // frame at which its audio ran out before its end; null while it has some
  #sourceHz;
  #pieces = [];
  #received = 0;
  #resampler;

  constructor(number, sourceHz, deviceHz) {
    this.number = number;
    this.#sourceHz = sourceHz;
    this.#resampler = new Resampler(sourceHz, deviceHz);
  }

  /** How much was rendered, in ms. */
  get playedMs() {
    return (this.#resampler.position / this.#sourceHz) * 1000;
  }

  /** How much has arrived but was not rendered yet, in ms. */
  get queuedMs() {
    return (this.#received / this.#sourceHz) * 1000 - this.playedMs;
  }

  /** Appends PCM16 samples. */
  append(pcm) {
    this.#pieces.push(pcm);
    this.#received += pcm.length;
  }

  /** Fills `out` from `offset` on as far as the audio reaches; returns the number of samples. */
  read(out, offset) {
    let count = this.#resampler.read(out, offset);
    while (offset + count < out.length && this.#feed()) {
      count += this.#resampler.read(out, offset + count);
    }
    return count;
  }

  #feed() {
    const piece = this.#pieces.shift();
    if (piece) {
      this.#resampler.push(Float32Array.from(piece, (sample) => sample / 32768));
      return true;
    }
    if (!this.ended || this.#resampler.ended) return false;
    this.#resampler.end();
    return true;
  }
}

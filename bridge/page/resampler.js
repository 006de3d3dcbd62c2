/**
 * Streaming sample-rate conversion, shared by both audio worklets.
 *
 * A Kaiser-windowed sinc is tabulated once for each phase of the reduced ratio (24 kHz to 44.1 kHz:
 * 147 phases), so positions are whole numbers and never drift.  The filter looks both ways: output
 * sample n is the input exactly at time n * from / to, and the only delay is the look-ahead.
 */

const ZERO_CROSSINGS = 24; // of the sinc, on each side
const CUTOFF = 0.92; // of the lower Nyquist frequency: stop band starts where aliases would
const KAISER_BETA = 7; // about 70 dB down in the stop band

export class Resampler {
  #step; // input ticks from one output sample to the next ...
  #phases; // ... counted in 1 / #phases of an input sample
  #back; // input samples needed before the position
  #ahead; // and after it
  #table;
  #buffer;
  #first; // input index of #buffer[0]
  #filled; // samples in #buffer
  #base = 0; // the position: input sample #base and #phase / #phases
  #phase = 0;
  #received = 0;
  #ended = false;

  /** Rates in Hz, whole numbers. */
  constructor(fromHz, toHz) {
    const divisor = gcd(fromHz, toHz);
    this.#step = fromHz / divisor;
    this.#phases = toHz / divisor;
    const band = Math.min(1, toHz / fromHz);
    this.#ahead = fromHz === toHz ? 0 : Math.ceil(ZERO_CROSSINGS / band);
    this.#back = Math.max(0, this.#ahead - 1);
    this.#table = tabulate(this.#phases, this.#back, this.#ahead, band * CUTOFF);
    // Silence before the first sample, so that the filter can look back from it.
    this.#buffer = new Float32Array(4096 + this.#back + this.#ahead);
    this.#first = -this.#back;
    this.#filled = this.#back;
  }

  /** Where the next output sample lies, in input samples; never past what was pushed. */
  get position() {
    return Math.min(this.#received, this.#base + this.#phase / this.#phases);
  }

  get ended() {
    return this.#ended;
  }

  /** Appends input samples (-1..1). */
  push(samples) {
    this.#received += samples.length;
    this.#append(samples);
  }

  /** No more input: the look-ahead of the last samples is silence. */
  end() {
    this.#ended = true;
    this.#append(new Float32Array(this.#ahead));
  }

  /** Fills `out` from `offset` on as far as the input reaches; returns the number of samples. */
  read(out, offset = 0) {
    const taps = this.#back + this.#ahead + 1;
    const last = this.#ended ? this.#received : this.#received - this.#ahead;
    let written = offset;
    for (; written < out.length && this.#base < last; written++) {
      const from = this.#base - this.#back - this.#first;
      const row = this.#phase * taps;
      let sum = 0;
      for (let tap = 0; tap < taps; tap++) sum += this.#buffer[from + tap] * this.#table[row + tap];
      out[written] = sum;
      this.#advance();
    }
    return written - offset;
  }

  #advance() {
    this.#phase += this.#step;
    while (this.#phase >= this.#phases) {
      this.#phase -= this.#phases;
      this.#base += 1;
    }
  }

  #append(samples) {
    if (this.#filled + samples.length > this.#buffer.length) this.#makeRoom(samples.length);
    this.#buffer.set(samples, this.#filled);
    this.#filled += samples.length;
  }

  #makeRoom(count) {
    const used = Math.min(this.#filled, Math.max(0, this.#base - this.#back - this.#first));
    const kept = this.#buffer.subarray(used, this.#filled);
    if (kept.length + count > this.#buffer.length) {
      const larger = new Float32Array(2 * (kept.length + count));
      larger.set(kept);
      this.#buffer = larger;
    } else {
      this.#buffer.copyWithin(0, used, this.#filled);
    }
    this.#first += used;
    this.#filled -= used;
  }
}

function tabulate(phases, back, ahead, cutoff) {
  if (ahead === 0) return Float32Array.of(1);
  const taps = back + ahead + 1;
  const table = new Float32Array(phases * taps);
  for (let phase = 0; phase < phases; phase++) {
    const row = table.subarray(phase * taps, (phase + 1) * taps);
    let sum = 0;
    for (let tap = 0; tap < taps; tap++) {
      const distance = tap - back - phase / phases;
      row[tap] = sinc(cutoff * distance) * kaiser(distance / ahead);
      sum += row[tap];
    }
    for (let tap = 0; tap < taps; tap++) row[tap] /= sum; // the same loudness in every phase
  }
  return table;
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

function kaiser(x) {
  return Math.abs(x) >= 1 ? 0 : bessel(KAISER_BETA * Math.sqrt(1 - x * x)) / bessel(KAISER_BETA);
}

/** The modified Bessel function of the first kind and order 0, by its power series. */
function bessel(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function gcd(a, b) {
  return b === 0 ? a : gcd(b, a % b);
}

/** The microphone's worklet: device rate to 16 kHz PCM16 in 20 ms frames, with their level. */

import { Resampler } from "./resampler.js";

const TARGET_HZ = 16000;
const FRAME_SAMPLES = 320;

class Capture extends AudioWorkletProcessor {
  #resampler = new Resampler(sampleRate, TARGET_HZ);
  #frame = new Float32Array(FRAME_SAMPLES);
  #filled = 0;
  #muted = false;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => {
      this.#muted = data.muted;
    };
  }

  process([channels]) {
    this.#resampler.push(mono(channels));
    let count;
    while ((count = this.#resampler.read(this.#frame, this.#filled)) > 0) {
      this.#filled += count;
      if (this.#filled === FRAME_SAMPLES) this.#emit();
    }
    return true;
  }

  #emit() {
    this.#filled = 0;
    // Mute sends silence instead of stopping the track, because the server counts frames.
    if (this.#muted) this.#frame.fill(0);
    const pcm = Int16Array.from(this.#frame, toInt16);
    const level = Math.sqrt(this.#frame.reduce((sum, x) => sum + x * x, 0) / FRAME_SAMPLES);
    this.port.postMessage({ pcm: pcm.buffer, level, at: currentTime }, [pcm.buffer]);
  }
}

/** Averages the channels; a track that ended has none and counts as silence. */
function mono(channels) {
  if (channels.length === 0) return new Float32Array(128);
  if (channels.length === 1) return channels[0];
  return channels[0].map((_, i) => channels.reduce((sum, each) => sum + each[i], 0) / channels.length);
}

function toInt16(sample) {
  return Math.max(-32768, Math.min(32767, Math.round(sample * 32768)));
}

registerProcessor("bargein-capture", Capture);

/** The loudspeaker's worklet: a Playout on the audio thread, followed by a meter. */

import { Meter } from "./level-meter.js";
import { Playout } from "./playout.js";

const UTTERANCE_BYTES = 4; // each binary message starts with its utterance number

class Player extends AudioWorkletProcessor {
  #playout = new Playout(sampleRate, (report) => this.port.postMessage(report));
  #meter = new Meter(sampleRate, (report) => this.port.postMessage(report));
  #latency = 0; // frames from rendering to the loudspeaker
  #commands = {
    audio: ({ utterance, message }) => {
      const samples = (message.byteLength - UTTERANCE_BYTES) >> 1;
      this.#playout.audio(utterance, new Int16Array(message, UTTERANCE_BYTES, samples));
    },
    end: ({ utterance }) => this.#playout.end(utterance),
    flush: ({ fence, request }) => this.#playout.flush(fence, request),
    hold: ({ on }) => this.#playout.hold(on),
    latency: ({ seconds }) => {
      this.#playout.setLatency(seconds);
      this.#latency = Math.round(seconds * sampleRate);
    },
  };

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#commands[data.type](data);
  }

  process(_inputs, [[output]]) {
    this.#playout.render(output, currentFrame);
    this.#meter.push(output, currentFrame + this.#latency);
    return true;
  }
}

registerProcessor("bargein-player", Player);

/** Microphone and loudspeaker of one call: the audio context and its worklets. */

const MAX_PLAUSIBLE_LATENCY_S = 1; // above it a browser's answer is a start-up artefact

const VOLUME_RAMP_S = 0.01; // so that it does not click

const here = (name) => new URL(name, import.meta.url);

/** Whether this browser can play the agent's voice here; worklets need a secure address. */
export function canPlay() {
  return window.isSecureContext && typeof AudioContext === "function" && typeof AudioWorkletNode === "function";
}

/** Whether this browser lets a page choose the loudspeaker. */
export function canChooseSpeaker() {
  return typeof AudioContext === "function" && "setSinkId" in AudioContext.prototype;
}

export class CallAudio {
  context;
  #on;
  #raw;
  #player = null;
  #volume;
  #capture = null;
  #stream = null;
  #source = null;
  #muted = false;

  /**
   * Must be called in a click: browsers start sound only for a person's gesture.
   *
   * `on` has frame({pcm, level, at}), report(report), played({levels, at, step}),
   * contextState(state), microphoneEnded() and tap({hot, at}).  `raw` asks for the microphone without the browser's processing.
   */
  constructor(on, { raw = false } = {}) {
    this.#on = on;
    this.#raw = raw;
    // At the device's own rate: Firefox refuses a microphone in a context of another rate.
    this.context = new AudioContext({ latencyHint: "interactive" });
    this.context.addEventListener("statechange", () => on.contextState(this.context.state));
    this.#volume = this.context.createGain();
    this.#volume.connect(this.context.destination);
    this.resume();
  }

  /** Not awaited: without a gesture the browser leaves the promise open. */
  resume() {
    this.context.resume().catch(() => this.#on.contextState(this.context.state));
  }

  /** Loads the loudspeaker; with `tap`, also the tests' level meter on its output. */
  async openLoudspeaker({ tap = false } = {}) {
    await this.context.audioWorklet.addModule(here("player-worklet.js"));
    this.#player = this.#node("bargein-player", { numberOfInputs: 0 });
    this.#player.connect(this.#volume);
    this.#player.port.onmessage = ({ data }) => {
      if (data.kind === "level") return this.#on.played(data);
      this.#reportLatency();
      this.#on.report(data);
    };
    this.#reportLatency();
    if (tap) await this.#openTap();
  }

  /**
   * Opens a microphone in place of the one before; rejects as getUserMedia does.
   *
   * `deviceId` is a preference: if the device is gone, the browser picks another.  Returns the id
   * of the one that is open.
   */
  async openMicrophone(deviceId = "") {
    const [stream] = await Promise.all([
      this.#ask(deviceId),
      this.context.audioWorklet.addModule(here("capture-worklet.js")),
    ]);
    if (this.context.state === "closed") return stopTracks(stream);
    this.#closeMicrophone();
    this.#stream = stream;
    const [track] = stream.getAudioTracks();
    track.addEventListener("ended", () => this.#on.microphoneEnded()); // not for our own stop()
    this.#capture ??= this.#openCapture();
    this.#source = this.context.createMediaStreamSource(stream);
    this.#source.connect(this.#capture);
    return track.getSettings().deviceId ?? "";
  }

  /** Plays on another loudspeaker; empty or "default" is the system's.  Rejects if it is gone. */
  async setSpeaker(deviceId) {
    const id = deviceId === "default" ? "" : deviceId;
    if (canChooseSpeaker() && id !== this.context.sinkId) await this.context.setSinkId(id);
  }

  /** Sets how loud the agent is, from 0 to 1; half is heard as about half as loud. */
  setVolume(share) {
    this.#volume.gain.setTargetAtTime(share ** 2, this.context.currentTime, VOLUME_RAMP_S);
  }

  async #ask(deviceId) {
    const processing = !this.#raw;
    const wish = {
      echoCancellation: processing,
      noiseSuppression: processing,
      autoGainControl: processing,
      channelCount: 1,
    };
    const ask = (audio) => navigator.mediaDevices.getUserMedia({ audio });
    if (!deviceId) return ask(wish);
    // Not "ideal": Chromium would then open the default microphone anyway.
    return ask({ ...wish, deviceId: { exact: deviceId } }).catch((error) => {
      if (error.name === "NotAllowedError") throw error;
      return ask(wish); // it was unplugged, or its name has changed
    });
  }

  #closeMicrophone() {
    this.#source?.disconnect();
    if (this.#stream) stopTracks(this.#stream);
  }

  mute(muted) {
    this.#muted = muted;
    this.#capture?.port.postMessage({ muted });
  }

  /** Queues a binary message of the server (utterance number, then PCM16); transfers the buffer. */
  play(utterance, message) {
    this.#player.port.postMessage({ type: "audio", utterance, message }, [message]);
  }

  end(utterance) {
    this.#player.port.postMessage({ type: "end", utterance });
  }

  /** Silence now: drops all audio at or below `fence`, also what arrives later. */
  flush(fence, request) {
    this.#player.port.postMessage({ type: "flush", fence, request });
  }

  /** Silences at the next sample; with `on` false, continues from it. */
  hold(on) {
    this.#player.port.postMessage({ type: "hold", on });
  }

  close() {
    this.#closeMicrophone();
    if (this.context.state !== "closed") this.context.close();
  }

  #node(name, options) {
    return new AudioWorkletNode(this.context, name, { outputChannelCount: [1], ...options });
  }

  #openCapture() {
    const capture = this.#node("bargein-capture", {});
    capture.port.onmessage = ({ data }) => this.#on.frame(data);
    capture.port.postMessage({ muted: this.#muted });
    capture.connect(this.context.destination); // silent; Safari runs only what is connected
    return capture;
  }

  async #openTap() {
    await this.context.audioWorklet.addModule(here("test-output-worklet.js"));
    const tap = this.#node("bargein-tap", {});
    tap.port.onmessage = ({ data }) => this.#on.tap(data);
    this.#volume.connect(tap).connect(this.context.destination);
  }

  #reportLatency() {
    this.#player.port.postMessage({ type: "latency", seconds: outputLatency(this.context) });
  }
}

/** Seconds from rendering a sample to the loudspeaker, as the browser knows it now. */
function outputLatency(context) {
  const { contextTime, performanceTime } = context.getOutputTimestamp?.() ?? {};
  if (contextTime > 0 && performanceTime > 0) {
    const audible = contextTime + (performance.now() - performanceTime) / 1000;
    const latency = context.currentTime - audible;
    if (latency >= 0 && latency < MAX_PLAUSIBLE_LATENCY_S) return latency;
  }
  return (context.baseLatency || 0) + (context.outputLatency || 0);
}

function stopTracks(stream) {
  for (const track of stream.getTracks()) track.stop();
}

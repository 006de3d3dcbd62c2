/** One call: joins the socket, the audio, the transcript and the controls. */

import { CallAudio } from "./audio.js";
import {
  callEnded,
  LOST,
  MICROPHONE_ENDED,
  microphoneProblem,
  NO_SOUND,
  refusal,
  SUSPENDED,
} from "./problems.js";
import { callUrl, Socket, whyRefused } from "./socket.js";

const WORKING = new Set([
  "thinking",
  "speaking",
  "tool",
  "waiting_permission",
  "waiting_input",
  "pausing",
  "paused",
  "stopping",
]);
const MIC_HOT = 1000 / 32768; // level from which the journal calls the microphone hot
const ON_THE_WIRE = ["utterance", "played_ms", "queued_ms", "underruns", "request"];

export class Call {
  #ui;
  #transcript;
  #journal;
  #options;
  #audio = null;
  #socket = null;
  #over = false;
  #state = { name: "idle", number: -1 };
  #url = null;
  #greeted = false; // the server has said hello
  #newest = -1; // the highest number of an utterance of which audio came
  #audible = new Set(); // utterances that are being played
  #stopping = false;
  #wasHot = false;

  /** `options`: {textOnly, token, raw, tap}. */
  constructor(ui, transcript, journal, options) {
    this.#ui = ui;
    this.#transcript = transcript;
    this.#journal = journal;
    this.#options = options;
  }

  get context() {
    return this.#audio?.context ?? null;
  }

  get framesDropped() {
    return this.#socket?.framesDropped ?? 0;
  }

  get over() {
    return this.#over;
  }

  /** Opens sound and microphone as far as there are any, then the line.  Call it in a click. */
  async start() {
    this.#ui.hideNotice();
    this.#ui.setPhase("connecting");
    this.#ui.setState("connecting");
    this.#ui.setMeans({ audio: false, microphone: false });
    this.#ui.setMuted(false);
    if (!this.#options.textOnly) await this.#openAudio();
    if (this.#over) return;
    this.#transcript.clear({ textOnly: !this.#audio });
    this.#url = callUrl({ textOnly: !this.#audio, token: this.#options.token });
    this.#socket = new Socket(this.#url, {
      open: () => this.#journal.note("open"),
      audio: (utterance, message) => this.#playAudio(utterance, message),
      message: (message) => this.#receive(message),
      close: (closed) => this.#closed(closed),
    });
  }

  /** The Stop key: silent here first, then the agent is told. */
  stop() {
    this.#journal.note("stop_key", { at: this.context?.currentTime });
    this.#stopping = true;
    if (this.#newest >= 0) this.#flush(this.#newest);
    this.#socket?.send("stop");
    this.#showStop();
  }

  hangup() {
    this.#socket?.send("hangup");
    this.#finish(callEnded("You hung up."));
  }

  /** Sends typed words; false if there is no line to send them on. */
  say(text) {
    if (!this.#socket?.isOpen) return false;
    this.#socket.send("text", { text });
    return true;
  }

  mute(on) {
    this.#audio?.mute(on);
    this.#socket?.send("mute", { on });
    this.#ui.setMuted(on);
  }

  resume() {
    this.#audio?.resume();
  }

  async openMicrophone() {
    this.#ui.hideNotice();
    try {
      await this.#audio.openMicrophone();
      this.#ui.setMeans({ audio: true, microphone: true });
    } catch (error) {
      this.#journal.note("microphone_refused", { name: error.name });
      this.#ui.showNotice(microphoneProblem(error));
    }
  }

  // --- sound ---

  async #openAudio() {
    try {
      this.#audio = new CallAudio(
        {
          frame: (frame) => this.#sendFrame(frame),
          report: (report) => this.#playbackReport(report),
          contextState: (state) => this.#contextState(state),
          microphoneEnded: () => this.#microphoneEnded(),
          tap: ({ hot, at }) => this.#journal.note(hot ? "out_hot" : "out_silent", { at }),
        },
        { raw: this.#options.raw },
      );
      await this.#audio.openLoudspeaker({ tap: this.#options.tap });
    } catch (error) {
      this.#journal.note("no_sound", { name: error.name, message: error.message });
      this.#audio?.close();
      this.#audio = null;
      return this.#ui.showNotice(NO_SOUND);
    }
    this.#ui.setMeans({ audio: true, microphone: false });
    await this.openMicrophone();
    this.#contextState(this.#audio.context.state);
  }

  #contextState(state) {
    this.#journal.note("context", { state });
    if (this.#over) return;
    if (state === "running") this.#ui.hideNotice(SUSPENDED.id);
    else if (state !== "closed") this.#ui.showNotice(SUSPENDED); // iOS also says "interrupted"
  }

  #microphoneEnded() {
    this.#ui.setMeans({ audio: true, microphone: false });
    if (!this.#over) this.#ui.showNotice(MICROPHONE_ENDED);
  }

  #sendFrame({ pcm, level, at }) {
    const hot = level > MIC_HOT;
    if (hot !== this.#wasHot) this.#journal.note(hot ? "mic_hot" : "mic_silent", { at });
    this.#wasHot = hot;
    this.#ui.setLevel(level);
    if (!this.#over) this.#socket?.sendFrame(pcm);
  }

  #playAudio(utterance, message) {
    this.#newest = Math.max(this.#newest, utterance);
    this.#audio?.play(utterance, message);
  }

  #flush(fence, request) {
    if (this.#audio) this.#audio.flush(fence, request);
    else if (request !== undefined) {
      this.#socket.send("playback.flushed", { utterance: fence, played_ms: 0, request });
    }
  }

  #playbackReport(report) {
    this.#journal.note(`player_${report.kind}`, report);
    if (report.kind === "start") this.#audible.add(report.utterance);
    if (report.kind === "done") this.#audible.delete(report.utterance);
    if (report.kind === "flushed") this.#audible.clear();
    this.#showStop();
    if (report.kind === "late" || report.kind === "overflow") return; // ours alone
    const fields = ON_THE_WIRE.filter((name) => report[name] !== undefined);
    const message = Object.fromEntries(fields.map((name) => [name, rounded(report[name])]));
    this.#socket?.send(`playback.${report.kind}`, message);
  }

  // --- messages of the server ---

  #messages = {
    hello: ({ agent, audio }) => this.#begin(agent, audio),
    clear: ({ utterance, request, reason }) => {
      this.#journal.note("clear", { utterance, reason, at: this.context?.currentTime });
      this.#flush(utterance, request);
      this.#transcript.endOfAnswer();
    },
    hold: ({ on }) => {
      this.#journal.note("hold", { on, at: this.context?.currentTime });
      this.#audio?.hold(on);
    },
    "utterance.end": ({ utterance }) => this.#audio?.end(utterance),
    transcript: ({ role, text, final, utterance }) => {
      if (role === "user") this.#transcript.userText(text, final);
      else this.#transcript.agentText(utterance, text);
    },
    spoken: ({ utterance, text }) => this.#transcript.spoken(utterance, text),
    cut: (message) => this.#transcript.cut(message.utterance, message),
    state: ({ state, number }) => this.#setState(state, number),
    event: ({ name, data }) => this.#event(name, data),
    error: ({ code }) => this.#serverError(code),
    pong: () => {},
    ended: ({ reason }) => this.#finish(callEnded(endWords(reason))),
  };

  #receive(message) {
    if (this.#over) return;
    const { type } = message;
    this.#journal.note("message", { type, message });
    if (Object.hasOwn(this.#messages, type)) this.#messages[type](message);
  }

  #begin(agent, audio) {
    this.#ui.setAgent(agent || "Voice agent");
    this.#greeted = true;
    if (!audio) this.#goWithoutSound();
    this.#ui.setPhase("live");
    this.#setState("idle", 0);
  }

  /** The agent has no voice: nobody would hear the microphone either. */
  #goWithoutSound() {
    this.#audio?.close();
    this.#audio = null;
    this.#ui.hideNotice();
    this.#ui.setMeans({ audio: false, microphone: false });
    this.#transcript.clear({ textOnly: true });
  }

  #setState(name, number) {
    if (number < this.#state.number) return; // an old one that was overtaken
    this.#state = { name, number };
    this.#stopping = false;
    this.#ui.setState(name);
    if (!WORKING.has(name)) this.#transcript.settle();
    this.#showStop();
  }

  #event(name, data) {
    if (name === "agent.generation_complete") this.#transcript.endOfAnswer();
    const words = EVENT_WORDS[name]?.(data ?? {});
    if (words) this.#transcript.note(words);
  }

  #serverError(code) {
    if (!this.#greeted) this.#finish(refusal(code));
    else if (code === "agent_error") this.#transcript.note("Something failed on the agent's side.");
    else this.#transcript.note(`The server did not accept what this page sent (${code}).`);
  }

  // --- the end ---

  async #closed({ opened, code }) {
    this.#journal.note("close", { code });
    if (this.#over) return;
    this.#finish(opened ? LOST : refusal(await whyRefused(this.#url)));
  }

  #finish(notice) {
    if (this.#over) return;
    this.#over = true;
    this.#audio?.close();
    this.#socket?.close();
    this.#audible.clear();
    this.#transcript.close();
    this.#ui.setStop({ shown: false, stopping: false });
    this.#ui.setLevel(0);
    this.#ui.setPhase("ended");
    this.#ui.setState("closed");
    this.#ui.showNotice(notice);
  }

  #showStop() {
    const busy = WORKING.has(this.#state.name) || this.#audible.size > 0;
    const stopping = this.#stopping || this.#state.name === "stopping";
    this.#ui.setStop({ shown: busy && !this.#over, stopping: stopping && busy });
  }
}

const EVENT_WORDS = {
  "agent.tool_call": ({ name }) => `The agent uses ${name}`,
  "agent.handoff": ({ target }) => `You now talk to ${target}`,
  "agent.dtmf": ({ button }) => `The agent pressed ${button}`,
  "call.transfer": ({ target_phone_number: number }) => `The call is passed on to ${number}`,
};

const END_WORDS = {
  agent_ended: "The agent hung up.",
  agent_error: "Something failed on the agent's side.",
  ended: "The agent hung up.",
  failed: "Something failed on the agent's side.",
  hangup: "You hung up.",
  shutdown: "The server was stopped.",
  silence: "The server heard nothing from this page for too long.",
};

function endWords(reason) {
  return END_WORDS[reason] ?? `Reason: ${reason}.`;
}

function rounded(value) {
  return typeof value === "number" ? Math.round(value * 1000) / 1000 : value;
}

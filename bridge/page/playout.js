/**
 * Feeds the loudspeaker: utterances one after the other, on the sample clock.
 *
 * Rules:
 * 1. A fence is final: no audio at or below it is heard again, however late it arrives.
 * 2. Silence first: `flush` drops everything at once and leaves a 4 ms ramp, so nothing clicks.
 * 3. While held, it renders silence and consumes nothing, and then continues at the same sample.
 *    The ramp that a hold mixes in to avoid a click is removed again at the release.
 * 4. Reports say what was heard: "start", "position", "underrun" and "done" are sent when the sound
 *    leaves the loudspeaker, which is the output latency after it was rendered.  "flushed" counts
 *    all rendered audio, because the device's buffer can't be taken back.
 *
 * It knows no worklet, and no clock but the frame it is given, so it can be tested to the sample.
 */

import { Fence } from "./fence.js";
import { JitterBuffer } from "./jitter-buffer.js";
import { Utterance } from "./utterance-audio.js";

const SOURCE_HZ = 24000;
const RAMP_MS = 4;
const POSITION_MS = 100;
const MAX_QUEUED_MS = 300_000; // limits what a flooding server can fill to 14 MB
const KEPT_RECORDS = 64; // utterances whose played time can still be asked for

export class Playout {
  #rate;
  #send;
  #buffer;
  #queue = []; // utterances, lowest number first; the first one is played
  #fence = new Fence();
  #highest = -1; // the highest number that was ever queued
  #frame = 0; // the next frame to render
  #latency = 0; // frames from rendering to the loudspeaker
  #runs = []; // {utterance, from, to, playedMs}: which frames held what, for the reports
  #waiting = []; // {frame, report}: reports whose sound has not left the loudspeaker
  #records = new Map(); // utterance -> played ms, once it is over
  #tail = new Float32Array(0); // ramps to mix in, of cut or held audio
  #held = false;
  #level = 0; // the last sample rendered before the hold
  #nextPosition = 0;
  #underruns = 0;

  /** `report` gets plain objects {kind, utterance, played_ms, queued_ms, underruns, ...}. */
  constructor(deviceHz, report) {
    this.#rate = deviceHz;
    this.#buffer = new JitterBuffer(deviceHz);
    this.#send = report;
  }

  /** Sets how long a rendered sample takes to the loudspeaker. */
  setLatency(seconds) {
    this.#latency = Math.round(seconds * this.#rate);
  }

  /** Queues PCM16 samples of an utterance. */
  audio(number, pcm) {
    if (this.#isLate(number)) return this.#report("late", number, { played_ms: this.#played(number) });
    if (this.#queuedMs() > MAX_QUEUED_MS) return this.#report("overflow", number, {});
    const utterance = this.#open(number);
    utterance.append(pcm);
    if (utterance.dryAt !== null) this.#buffer.goesOn(utterance.dryAt, this.#frame);
    utterance.dryAt = null;
    utterance.waitingSince ??= this.#frame;
  }

  /** All audio of an utterance has arrived. */
  end(number) {
    if (!this.#isLate(number)) this.#open(number).ended = true;
  }

  /** Drops all audio at or below `fence`, now and in future, and reports "flushed". */
  flush(fence, request) {
    this.#fence.raiseTo(fence);
    this.#release((entry) => entry.report.utterance <= fence);
    const cut = this.#queue.filter((utterance) => utterance.number <= fence);
    this.#queue = this.#queue.filter((utterance) => utterance.number > fence);
    if (cut[0]?.running) this.#fadeOut(cut[0]);
    for (const utterance of cut) this.#record(utterance);
    for (const { number, queuedMs } of cut) {
      if (number !== fence) this.#report("flushed", number, { dropped_ms: queuedMs });
    }
    const dropped_ms = cut.find((utterance) => utterance.number === fence)?.queuedMs ?? 0;
    this.#report("flushed", fence, { dropped_ms, ...(request !== undefined && { request }) });
  }

  /** Holds everything at the next sample, or continues from it. */
  hold(on) {
    if (on === this.#held) return;
    this.#held = on;
    if (on) this.#stand();
    else this.#resume();
  }

  /** Renders the next block; `frame` is the number of its first sample on the device's clock. */
  render(out, frame) {
    this.#frame = frame;
    out.fill(0);
    let filled = 0;
    while (!this.#held && filled < out.length && this.#mayPlay(frame + filled)) {
      filled += this.#queue[0].read(out, filled);
      if (filled < out.length) this.#drained(frame + filled);
    }
    if (!this.#held) this.#level = out.at(-1);
    this.#mixTail(out);
    this.#frame = frame + out.length;
    this.#release((entry) => entry.frame + this.#latency <= this.#frame);
    if (this.#frame >= this.#nextPosition) this.#reportPosition();
  }

  // --- the queue ---

  #isLate(number) {
    const known = this.#queue.some((utterance) => utterance.number === number);
    return this.#fence.drops(number) || (!known && number <= this.#highest);
  }

  #open(number) {
    const known = this.#queue.find((utterance) => utterance.number === number);
    if (known) return known;
    const opened = new Utterance(number, SOURCE_HZ, this.#rate);
    // Audio arrives in order: all utterances before this one are complete.
    for (const earlier of this.#queue) earlier.ended = true;
    this.#queue.push(opened);
    this.#highest = number;
    return opened;
  }

  #queuedMs() {
    return this.#queue.reduce((sum, utterance) => sum + utterance.queuedMs, 0);
  }

  #mayPlay(frame) {
    const head = this.#queue[0];
    if (!head) return false;
    if (head.running) return true;
    const waited = head.waitingSince === null ? 0 : frame - head.waitingSince;
    const neededMs = this.#buffer.ms(frame);
    const enough = head.queuedMs >= neededMs || waited >= (neededMs / 1000) * this.#rate;
    if (!head.ended && (head.waitingSince === null || !enough)) return false;
    this.#start(head, frame);
    return true;
  }

  #start(head, frame) {
    head.running = true;
    this.#openRun(head, frame);
    if (!head.started) this.#reportWhenHeard("start", head.number, frame, { played_ms: 0 });
    head.started = true;
  }

  #drained(frame) {
    const head = this.#queue[0];
    this.#stopRun(frame);
    head.running = false;
    head.waitingSince = null;
    const played_ms = head.playedMs;
    if (head.ended) {
      this.#queue.shift();
      this.#record(head);
      this.#reportWhenHeard("done", head.number, frame, { played_ms });
    } else {
      this.#underruns += 1;
      head.dryAt = frame;
      this.#reportWhenHeard("underrun", head.number, frame, { played_ms });
    }
  }

  #openRun(head, from) {
    this.#runs.push({ utterance: head.number, from, to: null, playedMs: head.playedMs });
  }

  #stopRun(frame) {
    const run = this.#runs.at(-1);
    if (run) run.to ??= frame;
  }

  #record(utterance) {
    this.#records.set(utterance.number, utterance.playedMs);
    if (this.#records.size > KEPT_RECORDS) this.#records.delete(this.#records.keys().next().value);
  }

  // --- the hold ---

  #stand() {
    const head = this.#queue[0];
    if (!head?.running) return;
    this.#mix(this.#ramp().fill(this.#level));
    this.#stopRun(this.#frame);
    this.#reportWhenHeard("position", head.number, this.#frame, { played_ms: head.playedMs, stands: true });
  }

  #resume() {
    const head = this.#queue[0];
    if (head?.running) {
      this.#openRun(head, this.#frame);
      this.#mix(this.#ramp().fill(-this.#level));
    } else if (head && head.waitingSince !== null) {
      head.waitingSince = this.#frame; // what would have followed it was not sent either
    }
  }

  // --- the cut ---

  #fadeOut(utterance) {
    if (this.#held) return; // it is silent already
    const ramp = this.#ramp();
    const length = utterance.read(ramp, 0);
    this.#stopRun(this.#frame + length);
    this.#mix(ramp.subarray(0, length));
  }

  #ramp() {
    return new Float32Array(Math.round((RAMP_MS / 1000) * this.#rate));
  }

  /** Mixes samples into the next blocks, falling to zero. */
  #mix(samples) {
    const mixed = new Float32Array(Math.max(samples.length, this.#tail.length));
    mixed.set(this.#tail);
    samples.forEach((sample, i) => (mixed[i] += sample * (1 - (i + 1) / samples.length)));
    this.#tail = mixed;
  }

  #mixTail(out) {
    const length = Math.min(out.length, this.#tail.length);
    for (let i = 0; i < length; i++) out[i] += this.#tail[i];
    this.#tail = this.#tail.subarray(length);
  }

  // --- reports ---

  #played(number) {
    const queued = this.#queue.find((utterance) => utterance.number === number);
    return queued?.playedMs ?? this.#records.get(number) ?? 0;
  }

  #report(kind, utterance, fields) {
    this.#send({
      kind,
      utterance,
      played_ms: this.#played(utterance),
      queued_ms: this.#queuedMs(),
      underruns: this.#underruns,
      latency_ms: (this.#latency / this.#rate) * 1000,
      at: this.#frame / this.#rate,
      ...fields,
    });
  }

  #reportWhenHeard(kind, utterance, frame, fields) {
    this.#waiting.push({ frame, report: { kind, utterance, fields } });
  }

  #release(isDue) {
    const due = this.#waiting.filter(isDue);
    this.#waiting = this.#waiting.filter((entry) => !due.includes(entry));
    for (const { report } of due) this.#report(report.kind, report.utterance, report.fields);
  }

  #reportPosition() {
    this.#nextPosition = this.#frame + Math.round((POSITION_MS / 1000) * this.#rate);
    const heard = this.#frame - this.#latency;
    const oldest = heard - this.#rate;
    this.#runs = this.#runs.filter((run) => run.to === null || run.to > oldest);
    const run = this.#runs.findLast((each) => each.from <= heard);
    if (!run || (run.to !== null && run.to <= heard)) return;
    if (this.#fence.drops(run.utterance)) return; // "flushed" was its last report
    const played_ms = run.playedMs + ((heard - run.from) / this.#rate) * 1000;
    this.#report("position", run.utterance, { played_ms });
  }
}

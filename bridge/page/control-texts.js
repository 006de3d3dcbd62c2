/** The agent's work in words: titles, steps and what a verb did. */

import { stateWords, verbs } from "./about.js";

const PHASES = {
  connect: "Thinking",
  thinking: "Thinking",
  tool_call: "Thinking",
  between_tools: "Thinking",
  text: "Answering",
  speaking: "Speaking",
  permission: "Asks permission",
  input: "Waits for you",
  stopping: "Stopping",
};
/** States in which the agent has the floor, or works. */
const TITLES = new Set(["pausing", "paused", "stopping", "waiting_permission", "waiting_input", "speaking", "thinking", "tool"]);

const ENDS = {
  completed: "has completed",
  completed_after_interrupt: "has completed all the same",
  effect_unknown: "was stopped; it may have taken effect in part",
  timed_out: "took too long and was stopped; it may have taken effect in part",
  cancelled_before_effect: "was stopped before it had any effect",
  not_started: "was not started",
  denied: "was refused",
  withdrawn: "did not run",
};

/** A tool's name for people. */
export function toolWords(name) {
  return sentence(name.replaceAll("_", " ").trim());
}

function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What the agent does, in a few words. */
export function titleOf(state, now, isAudible) {
  if (state === "pausing" || state === "paused" || state === "stopping") {
    return withLabel(sentence(stateWords(state)), now);
  }
  if (now?.answer !== undefined && now.phase === "tool" && now.label) return toolWords(now.label);
  if (isAudible) return "Speaking";
  return (TITLES.has(state) ? sentence(stateWords(state)) : PHASES[now?.phase]) ?? "At work";
}

function withLabel(words, now) {
  return now?.answer !== undefined && now.phase === "tool" && now.label
    ? `${words}: ${toolWords(now.label)}`
    : words;
}

/** "step 2 of 5", "step 2", or nothing. */
export function countsOf(now) {
  if (!now?.step) return "";
  return now.steps === undefined ? `step ${now.step}` : `step ${now.step} of ${now.steps}`;
}

/** The steps as they are listed. */
export function stepsOf(steps) {
  return steps.map(({ tool, state, elapsed_ms: ms }) => ({
    label: tool ? toolWords(tool) : "Thinking",
    state,
    ms,
  }));
}

/** The line of the transcript for a receipt; empty if it needs none. */
export function receiptWords({ verb, accepted, reason, stopped, still_running: running }) {
  if (!accepted) return `${verbs[verb]?.name ?? verb} did nothing: ${reasonWords(reason)}.`;
  const words = [verbs[verb]?.did];
  if (stopped.length) words.push(`Stopped: ${listOf(stopped)}.`);
  const ending = running.filter(({ deadline_ms: ms }) => ms !== undefined);
  const staying = running.filter(({ deadline_ms: ms }) => ms === undefined);
  if (ending.length) words.push(`Still running: ${listOf(ending)}.`);
  if (staying.length) words.push(`In the background: ${listOf(staying)}.`);
  return words.filter(Boolean).join(" ");
}

/** How a tool ended that a receipt had left running; without an outcome, only that it has. */
export function endWords(tool, outcome, error = false) {
  const words = error && outcome === "completed" ? "has failed" : (ENDS[outcome] ?? "has ended");
  return `${tool} ${words}.`;
}

function reasonWords(reason) {
  const [, by] = /^superseded_by (\w+)$/.exec(reason) ?? [];
  return by ? `${(verbs[by]?.name ?? by).toLowerCase()} is under way` : reason;
}

function listOf(tools) {
  return tools.map(({ tool }) => tool).join(", ");
}

/** What `describe()` says, without the name of its verb: "Cancel: the work ends." */
export function effectOf(text = "") {
  return sentence(text.replace(/^[^:]+: /, "").replace(/\.$/, ""));
}

/** A duration as m:ss. */
export function clock(ms) {
  const seconds = Math.max(0, ms) / 1000;
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}

/** How long a step took: "0.3 s", "42 s", "1:30". */
export function short(ms) {
  return ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : ms < 60_000 ? `${Math.round(ms / 1000)} s` : clock(ms);
}

const CAPS = {
  steps: "steps",
  wall_s: "time",
  tool_calls: "tool calls",
  tokens: "tokens",
  cost: "cost",
  repeats: "repeats",
};

/** What a cap limits. */
export function capName(cap) {
  return CAPS[cap] ?? cap;
}

/** How much of a cap is used: "3/8", "0:12/2:00". */
export function capUse(cap, used, limit) {
  if (cap === "wall_s") return `${clock(used * 1000)}/${clock(limit * 1000)}`;
  if (cap === "cost") return `${used.toFixed(2)}/${limit.toFixed(2)}`;
  return `${used.toLocaleString("en")}/${limit.toLocaleString("en")}`;
}

const JOB_ENDS = {
  capped: "was stopped at its limit",
  failed: "has failed",
  stopped: "was stopped",
  timed_out: "took too long",
};

const EVENTS = {
  "agent.tool_call": ({ name }) => `The agent uses ${name}`,
  "agent.handoff": ({ target }) => `You now talk to ${target}`,
  "agent.dtmf": ({ button }) => `The agent wants to press ${button}`,
  "agent.job_finished": ({ name, ended }) => `${name} ${JOB_ENDS[ended] ?? "is done"}, in the background`,
  "call.cap_warning": ({ which, used, limit }) =>
    `Near the limit: ${capName(which)} ${capUse(which, used, limit)}`,
  "call.answer_ended": ({ outcome, capped }) =>
    outcome === "capped" ? `The agent stopped at its limit: ${capName(capped)}` : "",
  "call.transfer": ({ target_phone_number: number }) => `The agent wants to transfer you to ${number}`,
  "call.action_completed": ({ action }) =>
    action === "transfer" ? "You were transferred" : "The key was pressed",
  "call.action_failed": ({ action, reason }) =>
    `${action === "transfer" ? "You were not transferred" : "The key was not pressed"}: ${reason}`,
};

/** The line of the transcript for an event; empty if it needs none. */
export function eventWords(name, data) {
  return EVENTS[name]?.(data) ?? "";
}

/**
 * The page people talk to.  Its address decides how:
 * - `?mode=text`: no sound, no microphone;
 * - `?conversation=NAME`: continues the conversation of that name, where the agent allows it;
 * - `#token=…`: the bearer token, in the fragment so that no request log contains it; the page takes
 *   it out of the address bar;
 * - `?raw=1`: the microphone without echo cancellation, for tests and for headsets;
 * - `?tap=1`: also logs when the loudspeaker becomes loud and silent, for tests.
 */

import { audio, hears, name, verbs } from "./about.js";
import { token } from "./access-token.js";
import { Call } from "./call.js";
import { canPlay } from "./audio.js";
import { Settings } from "./devices.js";
import { Drawer } from "./drawer-tabs.js";
import { h } from "./dom.js";
import { HandleView, verbsWithKeys } from "./agent-verbs-view.js";
import { Journal } from "./page-log.js";
import { SaveTranscript } from "./save-transcript.js";
import { keepCall, popKeptCall } from "./call-over-reload.js";
import { Keyboard } from "./keyboard.js";
import { Permissions } from "./permissions.js";
import { INSECURE, NO_WORKLET } from "./problems.js";
import { Questions } from "./questions.js";
import { RedirectComposer } from "./redirect-form.js";
import { TalkKey } from "./talk-key.js";
import { Transcript } from "./transcript.js";
import { Ui } from "./controls.js";

const query = new URLSearchParams(location.search);
const textOnly = query.get("mode") === "text";

const journal = new Journal();
let call = null;

function start(options = {}) {
  call = new Call({ ui, transcript, journal, permissions, questions, settings, view }, {
    textOnly: textOnly || !canPlay(),
    token: token.value,
    conversation: query.get("conversation"),
    raw: query.get("raw") === "1",
    tap: query.get("tap") === "1",
    agentHears: hears,
    ...options,
  });
  call.start();
}

const NOTICE_ACTIONS = {
  again: () => start(),
  resume: () => call.resume(),
  microphone: () => call.openMicrophone(),
};

const ui = new Ui({
  talk: () => start(),
  type: () => start({ textOnly: true }),
  hangup: () => call.hangup(),
  mute: (on) => call.mute(on),
  text: (text) => call.say(text),
  notice: (name) => NOTICE_ACTIONS[name](),
});
const transcript = new Transcript(ui.transcriptList);
new SaveTranscript(transcript, () => document.title);
const permissions = new Permissions({
  answer: (id, allow, remember) => call.answerPermission(id, allow, remember),
  note: (text) => transcript.note(text),
});
const questions = new Questions({
  answer: (id, text) => call.answerQuestion(id, text),
  note: (text) => transcript.note(text),
});
const settings = new Settings({
  microphone: (id) => call?.openMicrophone(id),
  speaker: (id) => call?.setSpeaker(id),
  volume: (share) => call?.setVolume(share),
  key: (button) => call?.press(button),
});
const composer = new RedirectComposer({ redirect: (text) => call.handle.use("redirect", text) });
const talkKey = new TalkKey({ open: () => call.talk(true), close: () => call.talk(false) });
const view = new HandleView({
  use: (verb) => call.handle.use(verb),
  redirect: () => composer.open(),
  room: () => transcript.follow(),
});

const drawer = new Drawer(document.getElementById("drawer"), document.getElementById("tools"), {
  watch: (on) => call?.watch(on),
  canStop: () => !document.getElementById("handle").hidden,
  lettersOn: () => settings.lettersOn,
});
journal.observe((entry) => drawer.add(entry));

// A shortcut works only while the page offers its action.
const pressKey = (id) => () => {
  const key = document.getElementById(id);
  if (key.checkVisibility()) key.click();
};
const letters = verbsWithKeys().map((verb) => [verbs[verb].key, verb]).filter(([key]) => key.length === 1);
document.getElementById("verb-letters").append(...letters.flatMap(([letter]) => [h("kbd", {}, letter), " "]));
new Keyboard(
  {
    escape: () => call.handle.escape(),
    talk: (isDown) => (isDown ? talkKey.press("space") : talkKey.release("space")),
    isLive: () => ui.isLive,
    lettersOn: () => settings.lettersOn,
  },
  { ...Object.fromEntries(letters.map(([letter, verb]) => [letter.toLowerCase(), pressKey(verb)])), m: pressKey("mute") },
);

addEventListener("beforeunload", (event) => {
  if (call?.isLive) event.preventDefault(); // the browser asks whether to leave
});
addEventListener("pagehide", () => keepCall(call?.keepsake()));
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) popKeptCall(); // the same page is back, and reconnects by itself
});

if (textOnly || !canPlay()) ui.setMode("text");
if (!textOnly && !canPlay()) ui.showNotice(window.isSecureContext ? NO_WORKLET : INSECURE);

/** Shows, before the call, who answers and whether it hears and speaks. */
function meetAgent() {
  if (name) ui.setAgent(name);
  if (!audio) ui.setMode("written");
  else if (!hears && !textOnly && canPlay()) ui.setMode("voice");
}

const kept = popKeptCall();
if (kept) start({ kept, textOnly: !kept.audio });
meetAgent();

/** For tests and problem reports. */
window.bargein = {
  log: journal.entries,
  get context() {
    return call?.context ?? null;
  },
  get framesDropped() {
    return call?.framesDropped ?? 0;
  },
};

/**
 * The page people talk to.  Its address decides how:
 * - `?mode=text`: no sound, no microphone;
 * - `#token=…`: the bearer token, kept in the fragment so that no log of requests holds it;
 * - `?raw=1`: the microphone without echo cancelling, for tests and for headsets;
 * - `?tap=1`: also notes when the loudspeaker is loud and silent, for tests.
 */

import { Call } from "./call.js";
import { Journal } from "./journal.js";
import { canPlay } from "./audio.js";
import { INSECURE, NO_SOUND } from "./problems.js";
import { Transcript } from "./transcript.js";
import { Ui } from "./ui.js";

const query = new URLSearchParams(location.search);
const fragment = new URLSearchParams(location.hash.slice(1));
const textOnly = query.get("mode") === "text";

const journal = new Journal();
let call = null;

function start(options = {}) {
  call = new Call(ui, transcript, journal, {
    textOnly: textOnly || !canPlay(),
    token: fragment.get("token"),
    raw: query.get("raw") === "1",
    tap: query.get("tap") === "1",
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
  stop: () => call.stop(),
  hangup: () => call.hangup(),
  mute: (on) => call.mute(on),
  text: (text) => call.say(text),
  notice: (name) => NOTICE_ACTIONS[name](),
});
const transcript = new Transcript(ui.transcriptList);

if (textOnly || !canPlay()) ui.setTextOnly();
if (!textOnly && !canPlay()) ui.showNotice(window.isSecureContext ? NO_SOUND : INSECURE);

/** For tests and for people who report a problem. */
window.bargein = {
  log: journal.entries,
  get context() {
    return call?.context ?? null;
  },
  get framesDropped() {
    return call?.framesDropped ?? 0;
  },
};

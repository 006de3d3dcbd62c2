/** The notices for problems, which say what to do.  Each is {id, title, text, action?}. */

const TYPE_INSTEAD = "You can continue by typing.";
const CALL_AGAIN = { name: "again", label: "Call again" };
const TRY_MICROPHONE = { name: "microphone", label: "Try again" };

export const INSECURE = {
  id: "insecure",
  title: "This address is not secure",
  text: `Browsers allow the microphone only on https:// pages and on localhost. To talk, open this page over https. ${TYPE_INSTEAD}`,
};

export const SUSPENDED = {
  id: "suspended",
  title: "The sound is paused",
  text: "Your browser holds the sound back until you tap.",
  action: { name: "resume", label: "Tap to resume" },
};

export const WAITING = {
  id: "suspended",
  title: "Your call is still here",
  text: "The agent waits in mid-sentence. Your browser plays no sound until you tap.",
  action: { name: "resume", label: "Continue" },
};

export const MICROPHONE_ENDED = {
  id: "microphone-ended",
  title: "The microphone is gone",
  text: `It was unplugged, or its permission was withdrawn. ${TYPE_INSTEAD}`,
  action: TRY_MICROPHONE,
};

export const DEAF = {
  id: "deaf",
  title: "The agent cannot hear you",
  text: `Its speech input failed; its log says why. ${TYPE_INSTEAD}`,
};

export const NO_SOUND = {
  id: "no-sound",
  title: "The sound did not start",
  text: `This browser could not play audio. ${TYPE_INSTEAD}`,
};

const REFUSED = {
  id: "refused",
  title: "No connection to the agent",
  text: "The server did not answer. Check that it is running and that you are online.",
  action: CALL_AGAIN,
};

export const NO_WORKLET = {
  id: "no-worklet",
  title: "This browser is too old to talk",
  text: `It cannot play a voice while it arrives. Use a newer browser. ${TYPE_INSTEAD}`,
};

export const LOST = {
  id: "lost",
  title: "The connection was lost",
  text: "It did not come back in time, so the call has ended. The transcript of the call stays below.",
  action: CALL_AGAIN,
};

const MICROPHONE = {
  NotAllowedError: {
    id: "denied",
    title: "The microphone is blocked",
    text: `Allow it for this page in your browser's address bar or settings. ${TYPE_INSTEAD}`,
    action: TRY_MICROPHONE,
  },
  NotFoundError: {
    id: "no-microphone",
    title: "No microphone was found",
    text: `Plug one in, or switch it on in your system's settings. ${TYPE_INSTEAD}`,
    action: TRY_MICROPHONE,
  },
  NotReadableError: {
    id: "microphone-busy",
    title: "The microphone is in use",
    text: `Another program is using it. Close that program. ${TYPE_INSTEAD}`,
    action: TRY_MICROPHONE,
  },
  AbortError: {
    id: "microphone-failed",
    title: "The microphone did not start",
    text: `Unplug it and plug it in again, or choose another one. ${TYPE_INSTEAD}`,
    action: TRY_MICROPHONE,
  },
};

const SERVER = {
  resume_expired: {
    id: "over",
    title: "The call is over",
    text: "It ended while the connection was lost. The transcript of the call stays below.",
    action: CALL_AGAIN,
  },
  conversation_in_use: {
    id: "conversation-in-use",
    title: "This conversation is going on elsewhere",
    text: "Another call has it open, perhaps in another tab. End that call, then call again.",
    action: CALL_AGAIN,
  },
  conversation_refused: {
    id: "conversation-refused",
    title: "This conversation cannot be opened here",
    text: "Its name is not valid, or the agent does not let you open it. To start a new one, remove ?conversation=… from the address.",
    action: CALL_AGAIN,
  },
  unauthorized: {
    id: "unauthorized",
    title: "The server asks for a token",
    text: "This page has no token, or a wrong one. Open it with #token=… at the end of its address.",
    action: CALL_AGAIN,
  },
  forbidden: {
    id: "forbidden",
    title: "This page may not call",
    text: "The server does not accept calls from this address. Open the page from the server itself.",
    action: CALL_AGAIN,
  },
  server_full: {
    id: "full",
    title: "All lines are busy",
    text: "The server cannot take another call right now. Try again in a little while.",
    action: CALL_AGAIN,
  },
  draining: {
    id: "draining",
    title: "The server is about to restart",
    text: "It takes no new calls until then. Try again in a minute.",
    action: CALL_AGAIN,
  },
};

/** What to say when getUserMedia failed with `error`. */
export function microphoneProblem(error) {
  return (
    MICROPHONE[error.name] ?? {
      id: "microphone",
      title: "The microphone could not be opened",
      text: `The browser says: ${error.message || error.name}. ${TYPE_INSTEAD}`,
      action: TRY_MICROPHONE,
    }
  );
}

/** What to say when the server refused the call with `code` (undefined if it said nothing). */
export function refusal(code) {
  return SERVER[code] ?? REFUSED;
}

/** The notice of a call that ended normally. */
export function callEnded(reason) {
  return { id: "ended", title: "The call has ended", text: reason, action: CALL_AGAIN };
}

/** The call's WebSocket: native protocol, version 1. */

const WHY_TIMEOUT_MS = 3000;
const MAX_BUFFERED_BYTES = 65_536; // two seconds of microphone audio: older speech is useless
const UTTERANCE_BYTES = 4;
const GIVEN_UP = 4000; // a close code that does not mean that the person has left

/** The address of the call, relative to the page, so that it also works behind a path prefix. */
export function callUrl({ textOnly, token, conversation }) {
  const url = new URL("ws", document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = "";
  url.hash = "";
  if (textOnly) url.searchParams.set("mode", "text");
  if (conversation) url.searchParams.set("conversation", conversation);
  if (token) url.searchParams.set("token", token);
  return url;
}

/**
 * The server's error code for a refused call; undefined if the server does not answer.
 *
 * Browsers hide why a WebSocket was refused, but the same address also answers plain requests.
 */
export async function whyRefused(callAddress) {
  const url = new URL(callAddress);
  url.protocol = url.protocol === "wss:" ? "https:" : "http:";
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(WHY_TIMEOUT_MS) });
    return (await response.json()).code;
  } catch {
    return undefined; // no answer, or not JSON: there is no code
  }
}

export class Socket {
  framesDropped = 0;
  #socket;

  /** `on` has open(), audio(utterance, message), message(message) and close({code}). */
  constructor(url, on) {
    this.#socket = new WebSocket(url);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => on.open();
    this.#socket.onmessage = ({ data }) => {
      if (typeof data === "string") return deliver(data, on);
      if (data.byteLength < UTTERANCE_BYTES) return undefined;
      return on.audio(new DataView(data).getUint32(0, true), data);
    };
    this.#socket.onclose = ({ code }) => on.close({ code });
  }

  get isOpen() {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  sendText(text) {
    if (this.isOpen) this.#socket.send(text);
  }

  /** Sends a microphone frame, or drops and counts it when the line can't keep up. */
  sendFrame(pcm) {
    if (!this.isOpen) return;
    if (this.#socket.bufferedAmount > MAX_BUFFERED_BYTES) this.framesDropped += 1;
    else this.#socket.send(pcm);
  }

  /** Closes once everything sent so far has left, because the person hung up. */
  close() {
    this.#socket.close(1000);
  }

  /** Abandons a dead connection; its events no longer arrive. */
  abandon() {
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close(GIVEN_UP);
  }
}

function deliver(data, on) {
  let message;
  try {
    message = JSON.parse(data);
  } catch {
    message = { type: "unreadable" };
  }
  on.message(message);
}

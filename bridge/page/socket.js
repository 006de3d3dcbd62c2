/** The call's WebSocket: native protocol, version 1. */

const WHY_TIMEOUT_MS = 3000;
const MAX_BUFFERED_BYTES = 65_536; // two seconds of microphone: older speech is of no use
const PING_EVERY_MS = 10_000; // only keeps the line warm; nothing depends on its timing
const UTTERANCE_BYTES = 4;

/** The address of the call: beside the page, so that it also works behind a path prefix. */
export function callUrl({ textOnly, token }) {
  const url = new URL("ws", document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = "";
  url.hash = "";
  if (textOnly) url.searchParams.set("mode", "text");
  if (token) url.searchParams.set("token", token);
  return url;
}

/**
 * The server's error code for a call that it did not open, or undefined if it does not answer.
 *
 * Browsers hide why a WebSocket was refused, but the same address answers a plain request.
 */
export async function whyRefused(callAddress) {
  const url = new URL(callAddress);
  url.protocol = url.protocol === "wss:" ? "https:" : "http:";
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(WHY_TIMEOUT_MS) });
    return (await response.json()).code;
  } catch {
    return undefined; // nobody there, or no JSON: then there is no code either
  }
}

export class Socket {
  framesDropped = 0;
  #socket;
  #pings = null;

  /**
   * `on` has open(), audio(utterance, message), message(message) and close({opened, code}).
   */
  constructor(url, on) {
    let opened = false;
    this.#socket = new WebSocket(url);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => {
      opened = true;
      this.#pings = setInterval(() => this.send("ping", { t: performance.now() }), PING_EVERY_MS);
      on.open();
    };
    this.#socket.onmessage = ({ data }) => {
      if (typeof data === "string") return deliver(data, on);
      if (data.byteLength < UTTERANCE_BYTES) return undefined;
      return on.audio(new DataView(data).getUint32(0, true), data);
    };
    this.#socket.onclose = ({ code }) => {
      clearInterval(this.#pings);
      on.close({ opened, code });
    };
  }

  get isOpen() {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  send(type, fields = {}) {
    if (this.isOpen) this.#socket.send(JSON.stringify({ type, ...fields }));
  }

  /** Sends a microphone frame, or drops and counts it when the line can't keep up. */
  sendFrame(pcm) {
    if (!this.isOpen) return;
    if (this.#socket.bufferedAmount > MAX_BUFFERED_BYTES) this.framesDropped += 1;
    else this.#socket.send(pcm);
  }

  /** Closes once everything sent so far has left. */
  close() {
    this.#socket.close(1000);
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

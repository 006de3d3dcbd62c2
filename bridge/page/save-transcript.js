/** Saves the transcript of a call, as text to paste or as a file. */

import { copyOnClick } from "./clipboard.js";

export class SaveTranscript {
  #transcript;
  #agent;

  /** `agent()` returns the agent's name.  The buttons are those of every `.save-transcript` of the page. */
  constructor(transcript, agent) {
    this.#transcript = transcript;
    this.#agent = agent;
    for (const place of document.querySelectorAll(".save-transcript")) {
      copyOnClick(place.querySelector(".copy"), () => this.#text());
      place.querySelector(".download").addEventListener("click", () => this.#download());
    }
  }

  #text() {
    return `${this.#agent()}, ${new Date().toLocaleString()}\n\n${this.#transcript.text}\n`;
  }

  #download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.#text()], { type: "text/plain" }));
    link.download = fileName(this.#agent(), new Date());
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // some browsers read it only then
  }
}

/** "cafe-lumen-2026-11-22-1830.txt": a name that every file system accepts. */
export function fileName(agent, when) {
  const plain = agent.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const words = plain.normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-");
  const name = words.replace(/^-+|-+$/g, "") || "call";
  const two = (number) => String(number).padStart(2, "0");
  const day = [when.getFullYear(), two(when.getMonth() + 1), two(when.getDate())].join("-");
  return `${name}-${day}-${two(when.getHours())}${two(when.getMinutes())}.txt`;
}

/** Copies text to the clipboard and confirms it on the button. */

import { h } from "./dom.js";

const SAID_MS = 1500; // how long the button shows the result

/** A button of the drawer that copies the result of `text()`. */
export function copyButton(words, text) {
  const button = h("button", { type: "button", class: "tool" }, words);
  copyOnClick(button, text);
  return button;
}

/** Makes a button copy the result of `text()` at that moment. */
export function copyOnClick(button, text) {
  const words = button.textContent;
  button.addEventListener("click", async () => {
    const done = await copy(text());
    button.textContent = done ? "Copied" : "Copy failed";
    setTimeout(() => (button.textContent = words), SAID_MS);
  });
}

/** Copies a text, even on an insecure address, where pages have no clipboard. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { "aria-hidden": "true", class: "sr-only" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

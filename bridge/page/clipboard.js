/** Copies text to the clipboard and confirms it on the button. */

import { h } from "./dom.js";

const SAID_MS = 1500; // how long the key says what came of it

/** A key of the drawer that copies what `text()` gives. */
export function copyButton(words, text) {
  const button = h("button", { type: "button", class: "tool" }, words);
  copyOnClick(button, text);
  return button;
}

/** Has a key copy what `text()` gives at that moment. */
export function copyOnClick(button, text) {
  const words = button.textContent;
  button.addEventListener("click", async () => {
    const done = await copy(text());
    button.textContent = done ? "Copied" : "Copy failed";
    setTimeout(() => (button.textContent = words), SAID_MS);
  });
}

/** Copies a text; also at an insecure address, where there is no clipboard for pages. */
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

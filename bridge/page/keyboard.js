/**
 * The keys of the page: Esc, P, R, B, M and space.
 *
 * Letters work outside of text fields, without a modifier.  The settings can switch them off, for
 * people who control their computer by speech.
 */

export class Keyboard {
  #on;
  #letters;

  /**
   * `on` has escape(), talk(isDown), isLive() and lettersOn(); `letters` has the action of each letter.
   */
  constructor(on, letters) {
    this.#on = on;
    this.#letters = letters;
    document.addEventListener("keydown", (event) => this.#down(event));
    document.addEventListener("keyup", (event) => {
      if (event.key === " ") this.#on.talk(false);
    });
  }

  #down(event) {
    if (event.defaultPrevented || event.isComposing || !this.#on.isLive()) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (!event.repeat) this.#on.escape();
    } else if (!isTyped(event.target) && this.#on.lettersOn()) this.#letter(event);
  }

  #letter(event) {
    if (event.key === " ") {
      if (isPressed(event.target)) return; // space presses the focused button
      event.preventDefault(); // it would scroll
      if (!event.repeat) this.#on.talk(true);
      return;
    }
    const does = this.#letters[event.key.toLowerCase()];
    if (!does || event.repeat) return;
    event.preventDefault();
    does();
  }
}

function isTyped(target) {
  return target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable=true]") ?? false;
}

function isPressed(target) {
  return target.matches?.("button, a, summary, input, [role=tab]") ?? false;
}

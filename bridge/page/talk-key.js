/**
 * Push to talk: pressed, the key opens the microphone; released, it closes it.
 *
 * It works with a pointer, the keyboard (space, or Enter on the key itself) and a screen reader,
 * whose clicks toggle it.  Losing the window, the pointer or the focus releases the key: a
 * microphone left open unnoticed is worse than a word cut off.
 */

const byId = (id) => document.getElementById(id);

const HOLD = "Hold to talk";

export class TalkKey {
  #on;
  #key = byId("talk-key");
  #by = null; // what presses it: "pointer", "key", "space" or "click"

  /** `on` has open() and close(). */
  constructor(on) {
    this.#on = on;
    this.#byPointer();
    this.#byKeyboard();
    this.#key.addEventListener("click", (event) => {
      if (event.detail === 0 && !event.pointerType) this.#toggle(); // no pointer: a screen reader
    });
    window.addEventListener("blur", () => this.release());
    document.addEventListener("visibilitychange", () => document.hidden && this.release());
  }

  /** Releases the key. */
  release(by = this.#by) {
    if (this.#by === null || this.#by !== by) return;
    this.#by = null;
    this.#show();
    this.#on.close();
  }

  /** Presses the key; "space" is pressed anywhere on the page. */
  press(by) {
    if (this.#by !== null || this.#key.hidden) return;
    this.#by = by;
    this.#show();
    this.#on.open();
  }

  #toggle() {
    if (this.#by === "click") this.release("click");
    else this.press("click");
  }

  #show() {
    const isPressed = this.#by !== null;
    this.#key.ariaPressed = String(isPressed);
    byId("talk-key-word").textContent = isPressed ? "Listening" : HOLD;
    this.#key.ariaLabel = isPressed ? `Listening: ${HOLD.toLowerCase()}` : HOLD; // it names the word shown
  }

  #byPointer() {
    const key = this.#key;
    key.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      key.setPointerCapture(event.pointerId);
      this.press("pointer");
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      key.addEventListener(end, () => this.release("pointer"));
    }
    key.addEventListener("contextmenu", (event) => event.preventDefault()); // a long touch
  }

  #byKeyboard() {
    const key = this.#key;
    key.addEventListener("keydown", (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault(); // suppress the browser's own click
      if (!event.repeat) this.press("key");
    });
    key.addEventListener("keyup", (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      this.release("key");
    });
    key.addEventListener("blur", () => this.release("key"));
  }
}

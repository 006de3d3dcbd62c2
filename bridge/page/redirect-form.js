/** The text box of Redirect: what should the agent do instead? */

const byId = (id) => document.getElementById(id);

export class RedirectComposer {
  #form = byId("redirect-form");
  #text = byId("redirect-text");

  /** `on` has redirect(text). */
  constructor(on) {
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      const words = this.#text.value.trim();
      if (!words) return this.#text.focus();
      on.redirect(words);
      return this.close();
    });
    byId("redirect-back").addEventListener("click", () => this.close());
    this.#form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target === this.#text && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#form.requestSubmit();
      } else if (event.key === "Escape") {
        event.preventDefault(); // here Esc leaves the text box, and stops nothing
        this.close();
      }
    });
  }

  get isOpen() {
    return !this.#form.hidden;
  }

  open() {
    this.#form.hidden = false;
    byId("float").classList.add("composing");
    this.#text.focus();
  }

  close() {
    if (!this.isOpen) return;
    const hadFocus = this.#form.contains(document.activeElement);
    this.#form.hidden = true;
    this.#text.value = "";
    byId("float").classList.remove("composing");
    if (!hadFocus) return;
    const key = byId("redirect");
    (key.checkVisibility() ? key : byId("transcript")).focus({ preventScroll: true });
  }
}

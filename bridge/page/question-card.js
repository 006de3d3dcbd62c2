/**
 * A card with a question.
 *
 * The focus moves to the card, not to one of its buttons, so that a key meant for something else
 * answers nothing.  It does not move while a person types, and returns to where it was afterwards.
 */
export class Card {
  #box;
  #before = null; // where the focus was

  constructor(box) {
    this.#box = box;
  }

  show() {
    if (this.#box.hidden) this.#before = document.activeElement;
    this.#box.hidden = false;
    if (!isTyping(document.activeElement)) this.#box.focus({ preventScroll: true });
  }

  hide() {
    const hadFocus = this.#box.contains(document.activeElement);
    this.#box.hidden = true;
    if (!hadFocus) return;
    const before = this.#before?.isConnected && this.#before.checkVisibility() ? this.#before : null;
    const place = before && before !== document.body ? before : document.getElementById("transcript");
    place.focus({ preventScroll: true });
  }
}

function isTyping(element) {
  return element?.matches?.("input[type=text], textarea") && element.value !== "";
}

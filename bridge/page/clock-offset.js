/**
 * Converts times of another clock to the page's clock.
 *
 * No message is early, so the least delayed one shows best how far the clocks are apart.  Only
 * recent messages count, because clocks drift, and that of a starved audio context falls behind.
 */

export class Offset {
  #window;
  #jump;
  #least = Infinity; // in this window
  #before = Infinity; // in the previous window
  #since = -Infinity;

  /**
   * `window`, in s: the least delay is taken over the last one to two windows.  A clock that stood
   * still, like that of a suspended audio context, is set anew by a message that seems to be at least
   * `jump` s late.
   */
  constructor(window, jump = Infinity) {
    this.#window = window;
    this.#jump = jump;
  }

  /** The page's time of an event at `theirs` on the other clock, received at `ours`; in s. */
  note(theirs, ours) {
    const delay = ours - theirs;
    if (delay >= this.#difference + this.#jump) this.#least = this.#before = Infinity;
    if (ours - this.#since > this.#window) {
      this.#before = this.#least;
      this.#least = Infinity;
      this.#since = ours;
    }
    this.#least = Math.min(this.#least, delay);
    return theirs + this.#difference;
  }

  get #difference() {
    return Math.min(this.#least, this.#before);
  }
}

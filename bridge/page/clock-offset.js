/**
 * Converts times of another clock to ours.
 *
 * No message is early, so the least delayed one shows best how far the two clocks are apart.  Only
 * recent messages count, because clocks drift, and that of a starved audio context falls behind.
 */

export class Offset {
  #window;
  #jump;
  #least = Infinity; // of this window
  #before = Infinity; // of the one before
  #since = -Infinity;

  /**
   * `window`: the least delay is that of the last one to two windows, in s.  A clock that stood
   * still, as that of a suspended audio context does, starts again at a message that seems to be
   * `jump` s late or more.
   */
  constructor(window, jump = Infinity) {
    this.#window = window;
    this.#jump = jump;
  }

  /** Our time of an event that the other clock dates `theirs` and that we hear of at `ours`, in s. */
  note(theirs, ours) {
    const delay = ours - theirs;
    if (delay >= this.#known + this.#jump) this.#least = this.#before = Infinity;
    if (ours - this.#since > this.#window) {
      this.#before = this.#least;
      this.#least = Infinity;
      this.#since = ours;
    }
    this.#least = Math.min(this.#least, delay);
    return theirs + this.#known;
  }

  get #known() {
    return Math.min(this.#least, this.#before);
  }
}

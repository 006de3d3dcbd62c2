/**
 * Which positions of the player the server is told.
 *
 * The server carries the last position on by its clock, so it is told only what that cannot know: a
 * position that is elsewhere, where the player stands, and at times that all is well.
 */

const TELL_EVERY_MS = 250; // for as long the server takes the last position for the truth
const FORESEEN_MS = 20; // below it the server plans nothing anew (DRIFT_S)

export class Positions {
  #told = null; // {utterance, played_ms, now}: where the player went on from, as the server knows it

  /** Whether the server needs a report, which then counts as told; `now` is in milliseconds. */
  isNews({ kind, utterance, played_ms, stands }, now) {
    if (kind === "position" && !stands && this.#isForeseen(utterance, played_ms, now)) return false;
    const goesOn = (kind === "start" || kind === "position") && !stands;
    this.#told = goesOn ? { utterance, played_ms, now } : null;
    return true;
  }

  #isForeseen(utterance, played_ms, now) {
    if (this.#told?.utterance !== utterance) return false;
    const passed = now - this.#told.now;
    return passed < TELL_EVERY_MS && Math.abs(played_ms - this.#told.played_ms - passed) < FORESEEN_MS;
  }
}

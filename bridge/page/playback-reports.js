/**
 * Decides which positions of the player are reported to the server.
 *
 * The server extrapolates the last position by its clock, so the page reports only what that cannot
 * foresee: a position that differs, a player that stands still, and now and then that all is well.
 */

const REPORT_EVERY_MS = 250; // the server trusts the last position for this long
const FORESEEN_MS = 20; // the server ignores smaller differences (DRIFT_S)

export class PlaybackReports {
  #reported = null; // {utterance, played_ms, now}: the last position that the server knows

  /** Whether the server needs a report, which then counts as sent; `now` is in milliseconds. */
  isNews({ kind, utterance, played_ms, stands }, now) {
    if (kind === "position" && !stands && this.#isForeseen(utterance, played_ms, now)) return false;
    const goesOn = (kind === "start" || kind === "position") && !stands;
    this.#reported = goesOn ? { utterance, played_ms, now } : null;
    return true;
  }

  #isForeseen(utterance, played_ms, now) {
    if (this.#reported?.utterance !== utterance) return false;
    const passed = now - this.#reported.now;
    return passed < REPORT_EVERY_MS && Math.abs(played_ms - this.#reported.played_ms - passed) < FORESEEN_MS;
  }
}

/** `window.bargein.log`: what happened, for tests and problem reports. */

const MAX_ENTRIES = 5000;

export class Journal {
  entries = [];
  #observers = new Set();

  /** Logs an event with its fields; `at` is in seconds of the audio clock if there is one. */
  note(ev, fields = {}) {
    const entry = { ev, wall_ms: performance.now(), ...fields };
    this.entries.push(entry);
    if (this.entries.length > MAX_ENTRIES) this.entries.shift();
    this.#notify(entry);
  }

  /** Passes observers events that are too frequent to keep: audio and its level. */
  pass(ev, fields = {}) {
    if (this.#observers.size) this.#notify({ ev, wall_ms: performance.now(), ...fields });
  }

  /**
   * Calls `fn` with each entry from now on; returns a function that stops this.
   *
   * Besides the kept entries, `fn` gets "mic_level" {level, at} (RMS, every 20 ms), "agent_level"
   * {levels, at, step} (RMS of the played audio; the last step ends at `at`) and "sent" {type, message}.
   */
  observe(fn) {
    this.#observers.add(fn);
    return () => this.#observers.delete(fn);
  }

  #notify(entry) {
    for (const fn of this.#observers) {
      try {
        fn(entry);
      } catch (error) {
        console.error("an observer of the call failed", error); // it must not disturb the call
      }
    }
  }
}

/** `window.bargein.log`: what happened, for tests and for people who report a problem. */

const MAX_ENTRIES = 5000;

export class Journal {
  entries = [];
  #observers = new Set();

  /** Logs an event with its fields; `at` is in seconds of the audio clock if there is one. */
  note(ev, fields = {}) {
    const entry = { ev, wall_ms: performance.now(), ...fields };
    this.entries.push(entry);
    if (this.entries.length > MAX_ENTRIES) this.entries.shift();
    this.#tell(entry);
  }

  /** Passes observers what is too frequent to keep: audio and its level. */
  pass(ev, fields = {}) {
    if (this.#observers.size) this.#tell({ ev, wall_ms: performance.now(), ...fields });
  }

  /**
   * Has `fn` called with each entry from now on; returns a function that ends it.
   *
   * Besides what is kept it gets "mic_level" {level, at} (RMS, each 20 ms), "agent_level" {levels,
   * at, step} (RMS of what is played, the last step ending at `at`) and "sent" {type, message}.
   */
  observe(fn) {
    this.#observers.add(fn);
    return () => this.#observers.delete(fn);
  }

  #tell(entry) {
    for (const fn of this.#observers) {
      try {
        fn(entry);
      } catch (error) {
        console.error("an observer of the call failed", error); // it must not hold up the call
      }
    }
  }
}

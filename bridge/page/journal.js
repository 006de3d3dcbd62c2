/** `window.bargein.log`: what happened, for tests and for people who report a problem. */

const MAX_ENTRIES = 5000;

export class Journal {
  entries = [];

  /** Notes an event with its fields; `at` is seconds on the audio clock where there is one. */
  note(ev, fields = {}) {
    this.entries.push({ ev, wall_ms: performance.now(), ...fields });
    if (this.entries.length > MAX_ENTRIES) this.entries.shift();
  }
}

/**
 * Keeps a call while its page reloads.
 *
 * The call is in this tab's storage only while the page is reloading, so a duplicated tab finds no
 * call to take over.
 */

const KEPT_UNDER = "bargein.call";

/** Stores what `Call.keepsake()` returns; null stores nothing. */
export function keepCall(keepsake) {
  if (!keepsake) return;
  try {
    sessionStorage.setItem(KEPT_UNDER, JSON.stringify(keepsake));
  } catch {
    // Storage is full or disabled: the call ends with its page.
  }
}

/** Returns what was stored and removes it; null if there is none, or the server has stopped waiting. */
export function popKeptCall() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT_UNDER));
    sessionStorage.removeItem(KEPT_UNDER);
    return kept && Date.now() - kept.line.at < kept.line.resumeMs ? kept : null;
  } catch {
    return null;
  }
}

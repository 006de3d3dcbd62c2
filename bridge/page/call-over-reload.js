/**
 * A call that is kept while its page is loaded anew.
 *
 * It lies in this tab's storage from the moment in which the page goes until it is back: a tab that
 * is duplicated meanwhile finds nothing, and so takes no call away.
 */

const KEPT_UNDER = "bargein.call";

/** Keeps what `Call.keepsake()` gives; nothing for null. */
export function keepCall(keepsake) {
  if (!keepsake) return;
  try {
    sessionStorage.setItem(KEPT_UNDER, JSON.stringify(keepsake));
  } catch {
    // No room, or a browser that keeps nothing: then the call ends with its page.
  }
}

/** Takes out what was kept; null if there is nothing, or the server waits no longer. */
export function takeKeptCall() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT_UNDER));
    sessionStorage.removeItem(KEPT_UNDER);
    return kept && Date.now() - kept.line.at < kept.line.resumeMs ? kept : null;
  } catch {
    return null;
  }
}

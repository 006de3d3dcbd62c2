/**
 * The bearer token in the page's address, `#token=…`.
 *
 * It leaves the address bar at once: from there it would go into the history, screenshots and shared
 * links.  This tab keeps it, so that a reload needs no other.
 */

class AccessToken {
  #keptUnder = `bargein.token ${location.pathname}`; // others may live at the same origin
  #value;

  constructor() {
    this.#value = this.#kept();
    this.#moveIntoTab();
    addEventListener("hashchange", () => this.#moveIntoTab()); // a new one was typed behind the address
  }

  /** The token; null for none. */
  get value() {
    return this.#value || null;
  }

  #moveIntoTab() {
    const fragment = new URLSearchParams(location.hash.slice(1));
    const given = fragment.get("token");
    if (given === null) return;
    this.#value = given;
    try {
      sessionStorage.setItem(this.#keptUnder, given);
    } catch {
      // Storage is full or disabled: a reload asks for the token.
    }
    fragment.delete("token");
    const rest = fragment.toString();
    history.replaceState(history.state, "", `${location.pathname}${location.search}${rest && `#${rest}`}`);
  }

  #kept() {
    try {
      return sessionStorage.getItem(this.#keptUnder);
    } catch {
      return null;
    }
  }
}

/** The token; taken as soon as this file is read, since the page waits for the server's description. */
export const token = new AccessToken();

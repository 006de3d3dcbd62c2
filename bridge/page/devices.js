/** The choice of the microphone, and the other settings of the person. */

const KEPT_UNDER = "bargein.settings";

const byId = (id) => document.getElementById(id);

export class Settings {
  #on;
  #kept = read();

  /** `on` has microphone(deviceId) and key(button). */
  constructor(on) {
    this.#on = on;
    byId("microphone").addEventListener("change", ({ target }) => {
      this.#keep({ microphone: target.value });
      on.microphone(target.value);
    });
    byId("letters").checked = this.lettersOn;
    byId("letters").addEventListener("change", ({ target }) => this.#keep({ letters: target.checked }));
    byId("keypad").addEventListener("click", ({ target }) => {
      if (target.value) on.key(target.value);
    });
    byId("settings-toggle").addEventListener("click", () => this.#open(byId("settings").hidden));
    byId("settings").addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.#open(false);
    });
    document.addEventListener("pointerdown", ({ target }) => {
      if (!byId("settings").contains(target) && !byId("settings-toggle").contains(target)) this.#open(false);
    });
    navigator.mediaDevices?.addEventListener("devicechange", () => this.list());
  }

  /** The microphone that was chosen before; empty for the system's. */
  get microphone() {
    return this.#kept.microphone ?? "";
  }

  get lettersOn() {
    return this.#kept.letters !== false;
  }

  /** Lists the microphones; `used` is the id of the one that is open. */
  async list(used = byId("microphone").value) {
    const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
    const inputs = devices.filter(({ kind, deviceId }) => kind === "audioinput" && deviceId);
    byId("microphone").replaceChildren(...inputs.map(option));
    byId("microphone").value = inputs.some(({ deviceId }) => deviceId === used) ? used : "default";
    byId("microphone-box").hidden = inputs.length === 0;
  }

  #open(open) {
    const held = byId("settings").contains(document.activeElement);
    byId("settings").hidden = !open;
    byId("settings-toggle").ariaExpanded = String(open);
    const first = [...byId("settings").querySelectorAll("select, input")].find((each) => each.checkVisibility());
    if (open) first?.focus();
    else if (held) byId("settings-toggle").focus();
  }

  #keep(change) {
    this.#kept = { ...this.#kept, ...change };
    try {
      localStorage.setItem(KEPT_UNDER, JSON.stringify(this.#kept));
    } catch {
      // A browser that keeps nothing: then it holds for this visit.
    }
  }
}

function option({ deviceId, label }, index) {
  const made = document.createElement("option");
  made.value = deviceId;
  made.textContent = label || `Microphone ${index + 1}`;
  return made;
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEPT_UNDER)) ?? {};
  } catch {
    return {};
  }
}

/** Lets a person choose microphone, loudspeaker, volume and the other settings. */

import { canChooseSpeaker } from "./audio.js";

const KEPT_UNDER = "bargein.settings";
const NAMES = { microphone: "Microphone", speaker: "Loudspeaker" }; // of devices without a name

const byId = (id) => document.getElementById(id);

export class Settings {
  #on;
  #kept = read();

  /** `on` has microphone(deviceId), speaker(deviceId), volume(share) and key(button). */
  constructor(on) {
    this.#on = on;
    byId("microphone").addEventListener("change", ({ target }) => {
      this.#keep({ microphone: target.value });
      on.microphone(target.value);
    });
    byId("speaker").addEventListener("change", ({ target }) => {
      this.#keep({ speaker: target.value });
      on.speaker(target.value);
    });
    byId("volume").value = 100 * this.volume;
    byId("volume").addEventListener("input", ({ target }) => {
      this.#keep({ volume: target.value / 100 });
      on.volume(this.volume);
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

  /** The loudspeaker that was chosen before; empty for the system's. */
  get speaker() {
    return this.#kept.speaker ?? "";
  }

  /** How loud the agent is, from 0 to 1. */
  get volume() {
    const { volume } = this.#kept;
    return volume >= 0 && volume <= 1 ? volume : 1;
  }

  get lettersOn() {
    return this.#kept.letters !== false;
  }

  /** Lists the devices; `used` is the id of the microphone that is open. */
  async list(used = byId("microphone").value) {
    const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
    const of = (wanted) => devices.filter(({ kind, deviceId }) => kind === wanted && deviceId);
    offer("microphone", of("audioinput"), used);
    const isThere = offer("speaker", canChooseSpeaker() ? of("audiooutput") : [], this.speaker);
    if (this.speaker && !isThere) this.#on.speaker(""); // it was unplugged: use the system's
  }

  #open(open) {
    const hadFocus = byId("settings").contains(document.activeElement);
    byId("settings").hidden = !open;
    byId("settings-toggle").ariaExpanded = String(open);
    const first = [...byId("settings").querySelectorAll("select, input")].find((each) => each.checkVisibility());
    if (open) first?.focus();
    else if (hadFocus) byId("settings-toggle").focus();
  }

  #keep(change) {
    this.#kept = { ...this.#kept, ...change };
    try {
      localStorage.setItem(KEPT_UNDER, JSON.stringify(this.#kept));
    } catch {
      // Storage is disabled: the setting lasts for this visit.
    }
  }
}

/** Offers devices in a list; returns whether the used one is among them. */
function offer(id, devices, used) {
  const isThere = devices.some(({ deviceId }) => deviceId === used);
  byId(id).replaceChildren(...devices.map((device, index) => option(device, `${NAMES[id]} ${index + 1}`)));
  byId(id).value = isThere ? used : "default";
  byId(`${id}-box`).hidden = devices.length === 0;
  return isThere;
}

function option({ deviceId, label }, name) {
  const made = document.createElement("option");
  made.value = deviceId;
  made.textContent = label || name;
  return made;
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEPT_UNDER)) ?? {};
  } catch {
    return {};
  }
}

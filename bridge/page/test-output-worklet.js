/** For tests (?tap=1): reports when the player's output becomes loud or silent, on the sample clock. */

const AUDIBLE = 0.004;

class Tap extends AudioWorkletProcessor {
  #hot = false;

  process([[input]]) {
    const hot = input !== undefined && input.some((sample) => Math.abs(sample) > AUDIBLE);
    if (hot !== this.#hot) this.port.postMessage({ hot, at: currentTime });
    this.#hot = hot;
    return true;
  }
}

registerProcessor("bargein-tap", Tap);

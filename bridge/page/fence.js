/**
 * The fence: drops the audio of a cut utterance, however late it arrives.
 *
 * The numbers of utterances only rise, and so does the fence.
 */
export class Fence {
  #number = -1; // the first utterance may be 0

  /** Drops the audio of an utterance and of all earlier ones from now on. */
  raiseTo(utterance) {
    this.#number = Math.max(this.#number, utterance);
  }

  /** Whether the audio of an utterance is dropped. */
  drops(utterance) {
    return utterance <= this.#number;
  }
}

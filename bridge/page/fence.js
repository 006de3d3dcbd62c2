/**
 * The fence: audio of an utterance that was cut is dropped, however late it arrives.
 *
 * The numbers of utterances only rise, and so does the fence.
 */
export class Fence {
  #number = -1; // the first utterance may be 0

  /** Drops the audio of an utterance, and of all before it, from now on. */
  raiseTo(utterance) {
    this.#number = Math.max(this.#number, utterance);
  }

  /** Whether the audio of an utterance is dropped. */
  drops(utterance) {
    return utterance <= this.#number;
  }
}

/**
 * What the server tells before a call: about the agent, and about the verbs and states of calls.
 *
 * `verbs` has, from the mildest to the strongest, for each verb its name, its name while it is
 * `busy`, what it `did`, its icon and key, whether it `silences` the agent, and the `place` that it
 * takes instead of another verb.  `states` has the words for each state.
 */

export const { name, audio = true, hears = true, verbs = {}, states = {} } = await readAbout();

async function readAbout() {
  try {
    const answer = await fetch(new URL("agent.json", import.meta.url));
    return await answer.json();
  } catch {
    return {}; // the call will show what there is
  }
}

/** A state in words; one that is not known as it is. */
export function stateWords(state) {
  return states[state] ?? state;
}

/** The verb that takes the place of another one. */
export function insteadOf(verb) {
  return Object.keys(verbs).find((other) => verbs[other].place === verb) ?? verb;
}

/** Makes elements: `h("button", {type: "button", "aria-label": "Close"}, "text", child)`. */

const SVG = "http://www.w3.org/2000/svg";

/** `on…` properties are listeners; a value of null or false leaves the attribute out. */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** An icon of the page's kind: lines of 24 by 24. */
export function icon(path) {
  return svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: path }));
}

/** Seconds as people read them on a clock: 1:02.3. */
export function clock(t, digits = 1) {
  const tens = 10 ** digits;
  const whole = Math.max(0, Math.round(t * tens)) / tens; // rounded first, so that 59.96 is 1:00.0
  const seconds = (whole % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return `${Math.floor(whole / 60)}:${seconds}`;
}

// People's boxes and outlines, drawn over a picture as SVG.

const SVG = document.getElementById("drawing").namespaceURI;

export function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function twice(tag, attributes) {
  // A light line below the coloured one, so that it is seen on any picture.
  return [drawn(tag, { ...attributes, class: "under" }), drawn(tag, attributes)];
}

export const over = (viewBox, ...children) => drawn("svg", { viewBox, "aria-hidden": "true" }, ...children);

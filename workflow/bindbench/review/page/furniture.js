// What the frame of review.html holds of a page: filters, buttons, the help; built once out of its view.

export const by = (id) => document.getElementById(id);
const SIGNS = { ArrowRight: "→", ArrowLeft: "←", ArrowDown: "↓", ArrowUp: "↑" };
const IN_LARGE = ["accept", "reject", "confirm"];

export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function words(text) {
  // Nodes of a text in which [a] is a key.
  return text.split(/\[([^\]]+)\]/).map((piece, index) => (index % 2 ? element("kbd", {}, piece) : piece));
}

function keysOf(action, keys) {
  const bound = Object.keys(keys).filter((key) => keys[key] === action);
  return bound.map((key) => SIGNS[key] || (key.startsWith("Shift+") ? key.slice(6).toUpperCase() : key));
}

function button([action, label], keys, more = {}) {
  return element("button", { type: "button", "data-do": action, ...more }, ...words(`[${keysOf(action, keys)[0]}] `), label);
}

const usualButtons = [
  ["undo", "Undo"], ["previous", "Previous"], ["next", "Next"], ["nextOpen", "Next open"], ["enlarge", "Enlarge"], ["help", "Help"],
];

const usualHelp = ({ noun, items }) => [
  ["undo", "undo your last press, and the one before"],
  ["next", `next ${noun}`],
  ["previous", `previous ${noun}`],
  ["nextOpen", `next ${noun} with open ${items}`],
  ["enlarge", "enlarge what is chosen; again or [Esc] closes it"],
];

function filter(name, label, options) {
  const made = options.map(([value, text]) => element("option", { value }, text));
  return element("label", {}, `${label} `, element("select", { id: `filter-${name}` }, ...made));
}

export function furnish(view, keys) {
  // keys: what each key does.
  document.title = view.title;
  by("name").textContent = view.title;
  by("bar").setAttribute("aria-label", `${view.items} judged`);
  by("filters").setAttribute("aria-label", `Which ${view.nouns} are shown`);
  const facets = Object.entries(view.facets).map(([name, label]) => filter(name, label, [["", "any"]]));
  by("filters").replaceChildren(filter("state", "Show", [["all", "all"], ...view.states]), ...facets);
  const bound = ([action]) => keysOf(action, keys).length > 0; // a page may have no key for a usual action
  by("keys").replaceChildren(...[...view.buttons, ...usualButtons.filter(bound)].map((one) => button(one, keys)));
  const large = view.buttons.filter(([action]) => IN_LARGE.includes(action)).map((one) => button(one, keys));
  const close = element("button", { type: "button", "data-close": "", autofocus: "" }, ...words("[z] Close"));
  by("large-keys").replaceChildren(...large, close);
  by("large-note").replaceChildren(...words(view.largeNote));
  const usual = usualHelp(view).filter(bound).map(([action, text]) => [keysOf(action, keys).map((key) => `[${key}]`).join(" "), text]);
  const lines = [...view.help, ...usual];
  by("help-keys").replaceChildren(
    ...lines.flatMap(([pressed, text]) => [element("dt", {}, ...words(pressed)), element("dd", {}, ...words(text))]),
  );
  by("help-note").textContent = view.note;
}

export function offer(view, entries) {
  // The filters' values, of what the server holds; once.
  for (const name of Object.keys(view.facets)) {
    const values = [...new Set(entries.map(({ facets }) => facets[name]))];
    by(`filter-${name}`).append(...values.map((value) => element("option", { value }, String(value))));
  }
}

// The page of multibind/labelling.py: a generated person in one dimension at a time, beside everyone of the photograph.
import { drawn, over, twice } from "/outlines.js";
import { act, begin, by, choose, element, judge, line, say, seen, showPicture, showStanding, standing } from "/review.js";

const WHAT = {
  face: "who it is, by the face alone",
  appearance: "hair and clothes, not the face",
  pose: "the posture: trunk, head, arms and legs",
  expression: "what the face shows: the feeling, the mouth, the eyes",
};
const SIGNS = { yes: "✓ yes", no: "✗ no", unclear: "? cannot tell", open: "○ open" };

const isOpen = (item) => standing(item.id).verdict === "open";
const ownOf = ({ items, slot }) => items.find((item) => item.slot === slot);
const othersOf = ({ items, slot }) => items.filter((item) => item.slot !== slot);

// ---------------------------------------------------------------------------------------------------------- answers

function answer(crop, answers, goesOn = true) {
  // answers: [[item, verdict]]. Goes on to the next open crop once both questions are answered.
  if (!answers.length || !seen(crop.items)) return;
  judge(answers.map(([item, verdict]) => line(item, verdict)));
  choose(crop.items.indexOf(answers[0][0]));
  if (goesOn && !crop.items.some(isOpen)) act("nextOpen");
}

function confused(crop, slot) {
  // A letter means that the others, while they are open, are not meant; more letters may follow, so nothing goes on.
  const item = crop.items.find((one) => one.slot === slot);
  if (!item) return say(`There is no ${slot} in this photograph.`);
  if (slot === crop.slot) return say(`${slot} is the person who should be here: press y or n.`);
  const rest = othersOf(crop).filter((one) => one !== item && isOpen(one));
  const verdict = standing(item.id).verdict === "yes" ? "no" : "yes";
  answer(crop, [[item, verdict], ...rest.map((one) => [one, "no"])], false);
}

const actions = {
  yes: (crop) => answer(crop, [[ownOf(crop), "yes"]]),
  no: (crop) => answer(crop, [[ownOf(crop), "no"]]),
  nobody: (crop) => answer(crop, othersOf(crop).map((item) => [item, "no"])),
  unclear: (crop) => answer(crop, crop.items.filter(isOpen).map((item) => [item, "unclear"])),
  skip: () => act("nextOpen"),
  ...Object.fromEntries([..."ABCD"].map((slot) => [`confused${slot}`, (crop) => confused(crop, slot)])),
};

// ------------------------------------------------------------------------------------------------------------ cards

function outlined(crop, viewBox) {
  const group = drawn("g", { class: `slot-${crop.slot}` }, ...twice("path", { d: crop.outline }));
  return over(viewBox, group);
}

function card(name, title, css, overlay = [], index = null) {
  const picture = element(
    "button",
    {
      type: "button", class: "picture", "aria-label": `Enlarge ${title}`,
      onclick: () => { if (index !== null) choose(index); act("enlarge"); },
    },
    element("span", { class: "holder", "data-picture": name, "data-title": title }, ...overlay),
  );
  const attributes = { class: `card ${css}`, "aria-label": title, "data-index": index };
  return element("article", attributes, element("p", { class: "title" }, element("b", {}, title)),
    ...(index === null ? [] : [element("p", { class: "standing" })]), picture);
}

function question(id, keys, text) {
  return element("p", { class: "question", id }, ...keys.flatMap((key) => [element("kbd", {}, key), " "]), text);
}

function draw(crop) {
  const { slot, width, height, box } = crop;
  const others = othersOf(crop).map((item) => item.slot);
  const asked = element(
    "section",
    { class: "asked", "aria-label": "Questions" },
    element("h2", {}, `${crop.dimension}: `, element("span", {}, WHAT[crop.dimension])),
    question("question-own", ["y", "n"], `Is the generated person consistent with ${slot}, who should be here?`),
    question("question-other", [...others.map((other) => other.toLowerCase()), "0"],
      `Is it confused with ${others.join(" or ")}: does it show theirs? A letter for each, or 0 for nobody.`),
  );
  const generated = card("generated", "generated image", `slot-${slot}`, [outlined(crop, `0 0 ${width} ${height}`)]);
  const person = card("crop", "generated person", `slot-${slot} person`, [outlined(crop, box.map(Math.trunc).join(" "))]);
  const reference = card("reference", `reference of ${slot}`, `slot-${slot}`);
  const targets = crop.items.map((item, index) =>
    card(`target_${item.slot}`, item.name, `target slot-${item.slot}`, [], index));
  by("cards").replaceChildren(
    asked,
    element("div", { class: "line made" }, generated, person, reference),
    element("div", { class: "line targets" }, ...targets),
  );
}

function show(crop, chosen) {
  for (const holder of document.querySelectorAll("#cards .holder")) {
    showPicture(holder, holder.dataset.picture, holder.dataset.title);
  }
  for (const one of document.querySelectorAll(".card[data-index]")) {
    const index = Number(one.dataset.index);
    const css = showStanding(one.querySelector(".standing"), crop.items[index].id);
    const { slot } = crop.items[index];
    one.className = `card target slot-${slot} ${css}${slot === crop.slot ? " own" : ""}${index === chosen ? " chosen" : ""}`;
  }
  by("question-own").classList.toggle("answered", !isOpen(ownOf(crop)));
  by("question-other").classList.toggle("answered", !othersOf(crop).some(isOpen));
}

begin({
  title: "Labels",
  note: "Both may be yes, for a mixture of two people, and both no, for somebody else or a blur. People who are alike in the "
    + "photograph already are not confused for that: ask whether the generated person shows more of the other than its own "
    + "target does. Judge the named dimension alone, from what is to be seen.",
  noun: "crop",
  nouns: "crops",
  items: "questions",
  key: "label",
  signs: SIGNS,
  movesOn: false,
  facets: { dimension: "Dimension" },
  states: [["open", "open"], ["done", "labelled"]],
  keys: {
    y: "yes", n: "no", a: "confusedA", b: "confusedB", c: "confusedC", d: "confusedD", 0: "nobody", x: "unclear", s: "skip",
    ArrowDown: "down", ArrowUp: "up", r: null, p: null, o: null,
  },
  actions,
  buttons: [["yes", "Consistent"], ["no", "Not consistent"], ["nobody", "Confused with nobody"], ["unclear", "Cannot tell"],
    ["skip", "Skip"]],
  largeNote: "[↑] or [↓] compares with another person.",
  help: [
    ["[y] [n]", "the generated person is, or is not, consistent with the one who should be there"],
    ["[a] … [d]", "it is confused with this other person; again takes it back; the others are not meant"],
    ["[0]", "it is confused with nobody"],
    ["[x]", "what is not answered yet cannot be told: nothing to be seen, or no person"],
    ["[s]", "go on to the next open crop; what is skipped comes again at the next start"],
    ["[↑] [↓]", "choose whom to compare with, enlarged"],
  ],
  digits: () => -1,
  entries: ({ crops }) => crops.map(([id, dimension, columns]) => ({
    id, facets: { dimension }, items: [...columns].map((column) => `${id}/${column}`),
  })),
  path: (crop) => `/crops/${crop}`,
  adopt: (crop) => ({
    ...crop,
    id: crop.crop,
    title: `${crop.dimension} of ${crop.slot}`,
    items: crop.columns.map((slot) => ({
      id: `${crop.crop}/${slot}`, slot, sha256: crop.sha256, pictures: ["generated", "crop", `target_${slot}`],
      name: slot === crop.slot ? `${slot}, who should be here` : `${slot}, another`, title: `beside ${slot}`,
    })),
  }),
  pictures: ({ id, columns }) =>
    ["generated", "crop", "reference", ...columns.map((slot) => `target_${slot}`)].map((name) => [name, `/pictures/${id}/${name}`]),
  reasons: () => [],
  totals(verdicts) {
    const done = verdicts.filter((of) => !of.includes("open")).length;
    return { done, all: verdicts.length, text: `${done} of ${verdicts.length} crops labelled` };
  },
  place: ({ facets }) => facets.dimension,
  aside: ({ stale }) => (stale ? `; ${stale} earlier labels are of pictures that were generated again` : ""),
  draw,
  show,
  showLarge(crop, item) {
    const figure = (name, text) => {
      const holder = element("span", { class: "holder" });
      showPicture(holder, name, text);
      return element("figure", {}, holder, element("figcaption", {}, text));
    };
    by("large-holder").replaceChildren(figure("crop", "generated person"), figure(`target_${item.slot}`, item.name));
    by("large-more").replaceChildren(...(crop.generator ? [element("p", { class: "soft" }, `made by ${crop.generator}`)] : []));
  },
});

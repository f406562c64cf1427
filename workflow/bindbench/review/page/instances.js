// The page of multibind/reviewing.py: an instance of MultiBind at a time, with a verdict for each of its parts.
import { drawn, over, twice } from "/outlines.js";
import { act, begin, by, choose, element, showPicture, showStanding } from "/review.js";

const KEY_OF = { instance: "i", background: "9", annotation: "d", prompt: "t" };
const NAMES = {
  instance: "the instance", crop: "crop and mask", reference: "reference", background: "background", annotation: "description",
  prompt: "prompt",
};
const SLOTS = "ABCD";

const keyOf = ({ part, slot }) => KEY_OF[part] || String(SLOTS.indexOf(slot) + (part === "crop" ? 1 : 5));
const nameOf = ({ part, slot }) => (slot ? `${NAMES[part]} of ${slot}` : NAMES[part]);
const pictureOf = ({ part, slot }) => (slot ? `${part}_${slot}` : part === "background" ? part : "target");
const isText = ({ part }) => part === "annotation" || part === "prompt";

// -------------------------------------------------------------------------------------------- drawn over a picture

function outlined(instance, slot) {
  const part = instance.parts.find((one) => one.part === "crop" && one.slot === slot);
  return part && part.outline ? twice("path", { d: part.outline }) : [];
}

function boxes(instance) {
  // Every subject's box with its letter.
  const size = Math.max(instance.width, instance.height) / 22;
  return instance.subjects.map(({ slot, box: [x, y, width, height] }) => {
    const [left, top] = [Math.max(0, x), Math.max(0, y)];
    const plate = { x: left, y: top, width: size * 1.3, height: size * 1.3, class: "plate" };
    const letter = { x: left + size * 0.65, y: top + size * 0.68, "font-size": size };
    return drawn("g", { class: `slot-${slot}` }, ...twice("rect", { x, y, width, height }), ...outlined(instance, slot),
      drawn("rect", plate), drawn("text", letter, slot));
  });
}

function overlay(instance, part) {
  if (part.part === "instance") {
    return [over(`0 0 ${instance.width} ${instance.height}`, ...boxes(instance))];
  }
  const subject = part.part === "crop" && instance.subjects.find(({ slot }) => slot === part.slot);
  if (!subject) return [];
  const group = drawn("g", { class: `slot-${part.slot}` }, ...outlined(instance, part.slot));
  return [over(subject.box.join(" "), group)];
}

// ------------------------------------------------------------------------------------------------------------ texts

function description(instance) {
  return instance.annotation.flatMap(([slot, title, lines]) => [
    element("h3", { class: slot ? `slot-${slot}` : null }, title),
    element("dl", {}, ...lines.flatMap(([name, words]) => [
      element("dt", { class: name ? null : "unnamed" }, name), element("dd", { class: name ? null : "unnamed" }, words),
    ])),
  ]);
}

function prompt(instance) {
  return instance.prompt.map(([slot, pieces]) =>
    element("p", { class: slot ? `block slot-${slot}` : null },
      ...pieces.map(([named, words]) => (named ? element("mark", { class: `slot-${named}` }, words) : words))));
}

const text = (instance, part) => (part.part === "prompt" ? prompt(instance) : description(instance));

// ------------------------------------------------------------------------------------------------------------ cards

function missing(part) {
  const why = part.problems.length ? `: ${part.problems.join(", ")}` : "";
  return element("article", { class: "card missing" }, `No ${nameOf(part)} was made${why}.`);
}

function card(instance, part) {
  if (!part.sha256) return missing(part);
  const index = instance.items.indexOf(part);
  const css = part.slot ? ` slot-${part.slot}` : "";
  const title = element(
    "button",
    { type: "button", class: "title", "aria-pressed": "false", onclick: () => choose(index) },
    element("kbd", {}, keyOf(part)),
    element("b", {}, part.name),
    element("span", {}, part.model || ""),
  );
  const problems = element("p", { class: "problems" }, part.problems.length ? `⚠ ${part.problems.join(", ")}` : "");
  const facts = element("p", { class: "facts" }, part.facts);
  const small = part.slot ? " small" : "";
  const shown = isText(part)
    ? element("div", { class: "text" }, ...text(instance, part))
    : element(
        "button",
        { type: "button", class: `picture${small}`, "aria-label": `Enlarge ${part.name}`, onclick: () => { choose(index); act("enlarge"); } },
        element("span", { class: "holder" }, ...overlay(instance, part)),
      );
  return element("article", { class: `card${css}`, "aria-label": part.name, "data-index": index, "data-slot": part.slot },
    title, element("p", { class: "standing" }), problems, shown, facts);
}

function draw(instance) {
  const cards = (...kinds) => instance.parts.filter(({ part }) => kinds.includes(part)).map((part) => card(instance, part));
  by("cards").replaceChildren(
    element("div", { class: "line" }, ...cards("instance"), ...cards("background")),
    element("div", { class: "line slots" }, ...cards("crop")),
    element("div", { class: "line slots" }, ...cards("reference")),
    element("div", { class: "texts" }, ...cards("annotation"), ...cards("prompt")),
  );
}

function showCard(card, part, isChosen) {
  const css = showStanding(card.querySelector(".standing"), part.id);
  const slot = part.slot ? ` slot-${part.slot}` : "";
  card.className = `card ${css}${slot}${isChosen ? " chosen" : ""}`;
  card.querySelector(".title").setAttribute("aria-pressed", String(isChosen));
  const holder = card.querySelector(".holder");
  if (holder) showPicture(holder, pictureOf(part), part.title);
}

begin({
  title: "Screening",
  note: "A rejected part is made again and then is open again; the other parts keep their verdicts. An instance with a rejected "
    + "part stays out of the data set. Nothing is to be judged by who somebody is: names, origin and other sensitive traits "
    + "have no place in annotations.",
  noun: "instance",
  nouns: "instances",
  items: "parts",
  key: "part",
  movesOn: false,
  facets: { problems: "Checks", subjects: "Subjects", source: "Source" },
  states: [["open", "with open parts"], ["rejected", "with rejected parts"], ["accepted", "all accepted"]],
  buttons: [["acceptAll", "Accept the instance, go on"], ["accept", "Accept this part"], ["reject", "Reject this part…"],
    ["confirm", "Confirm proposal"]],
  largeNote: "Its key, [↑] or [↓] shows another part.",
  help: [
    ["[a]", "accept the instance: every part of it that is not rejected; and go on"],
    ["[1] … [4]", "choose the crop and mask of subject A to D"],
    ["[5] … [8]", "choose the reference of subject A to D"],
    ["[9] [d] [t]", "choose the background, the description (annotation), the text (prompt)"],
    ["[i]", "choose the instance as a whole: its photograph, and the choice of it"],
    ["[↑] [↓]", "the part before or after the chosen one"],
    ["[r]", "reject the chosen part, then a digit or words for the reason"],
    ["[y]", "accept the chosen part alone"],
    ["[c]", "confirm what a model proposes for it"],
  ],
  keys: { a: "acceptAll", y: "accept", ArrowDown: "down", ArrowUp: "up" },
  digits: (key, { items }) => items.findIndex((part) => keyOf(part) === key),
  entries: ({ instances }) => instances.map(({ instance, subjects, source, problems, parts }) => ({
    id: instance, facets: { subjects, source, problems: problems ? "found something" : "found nothing" }, items: parts,
  })),
  path: (instance) => `/instances/${encodeURIComponent(instance)}`,
  adopt(answer) {
    const parts = answer.parts.map((part) => ({
      ...part, name: nameOf(part), title: `${nameOf(part)} (${answer.instance})`, pictures: [pictureOf(part)],
    }));
    return { ...answer, id: answer.instance, parts, items: parts.filter(({ sha256 }) => sha256) };
  },
  pictures: ({ id, items }) => [...new Set(items.map(pictureOf))].map((name) => [name, `/pictures/${encodeURIComponent(id)}/${name}`]),
  reasons: ({ part }, { reasons }) => reasons[part],
  place: ({ facets }) => `${facets.subjects} subjects, ${facets.source}`,
  aside: () => "",
  draw,
  show(instance, chosen) {
    for (const card of document.querySelectorAll(".card[data-index]")) {
      const index = Number(card.dataset.index);
      showCard(card, instance.items[index], index === chosen);
    }
  },
  showLarge(instance, part) {
    const holder = by("large-holder");
    if (holder.dataset.part !== part.id || !holder.querySelector("img, .text")) {
      holder.dataset.part = part.id;
      if (isText(part)) holder.replaceChildren(element("div", { class: "text" }, ...text(instance, part)));
      else holder.replaceChildren(...overlay(instance, part));
    }
    if (!isText(part)) showPicture(holder, pictureOf(part), part.title);
    by("large-more").replaceChildren(
      element("p", { id: "large-problems", class: "problems" }, part.problems.length ? `⚠ ${part.problems.join(", ")}` : ""),
      element("p", { id: "large-facts", class: "soft" }, [part.model, part.facts].filter(Boolean).join("; ")),
    );
  },
});

// The page of review/scenes.py: a question of SABER at a time, the query and its four candidates side by side.
import { act, begin, by, choose, element, showPicture, showStanding } from "/review.js";

const ticks = new Map(); // scene -> indices of ticked bindings; not saved

function bindings(scene) {
  const ticked = ticks.get(scene.id) || new Set();
  ticks.set(scene.id, ticked);
  return scene.bindings.map((binding, index) => {
    const words = `${binding.realised} ${binding.object}`;
    const box = element("input", {
      type: "checkbox",
      onchange(event) {
        if (event.target.checked) ticked.add(index);
        else ticked.delete(index);
        event.target.blur();
      },
    });
    box.checked = ticked.has(index);
    const text = element("span", {}, binding.held ? words : element("u", { title: "not a binding of the query" }, words));
    return element("li", {}, element("label", {}, box, text));
  });
}

function card(scene, index) {
  const title = element(
    "button",
    { type: "button", class: "title", "aria-pressed": "false", onclick: () => choose(index) },
    element("kbd", {}, String(index + 1)),
    element("b", {}, scene.role),
    element("span", {}, scene.kind),
  );
  const picture = element(
    "button",
    { type: "button", class: "picture", "aria-label": `Enlarge ${scene.role}`, onclick: () => { choose(index); act("enlarge"); } },
  );
  const words = element(
    "div",
    { class: "words" },
    element("ul", { class: "bindings", "aria-label": `Bindings of ${scene.role}` }, ...bindings(scene)),
    element("p", { class: "caption" }, element("b", {}, "Image asked for"), scene.generation_caption),
    element("p", { class: "caption" }, element("b", {}, "Caption"), scene.caption),
  );
  const standing = element("p", { class: "standing" });
  const label = `${scene.role}, ${scene.kind}`;
  return element("article", { class: "card", "aria-label": label }, title, standing, picture, words);
}

function showCard(card, scene, isChosen) {
  const css = showStanding(card.querySelector(".standing"), scene.id);
  card.className = `card ${css}${isChosen ? " chosen" : ""}`;
  card.querySelector(".title").setAttribute("aria-pressed", String(isChosen));
  showPicture(card.querySelector(".picture"), scene.id, `${scene.role}: ${scene.generation_caption}`);
}

begin({
  title: "Screening",
  note: "The boxes before the bindings are for your own counting and are not saved. A candidate's underlined bindings are not "
    + "the query's: that is intended. The picture has to match its own list.",
  noun: "question",
  nouns: "questions",
  items: "scenes",
  key: "scene",
  movesOn: true,
  facets: { size: "Objects", subset: "Subset" },
  states: [["open", "with open scenes"], ["rejected", "with rejected scenes"], ["accepted", "all five accepted"]],
  buttons: [["accept", "Accept"], ["reject", "Reject…"], ["confirm", "Confirm proposal"], ["acceptAll", "Accept the rest, go on"]],
  largeNote: "[1] to [5] another scene, [a] accept, [r] reject",
  help: [
    ["[1] … [5]", "choose a scene: the query, candidates 1 to 4"],
    ["[a]", "accept it: every object is there once, with its own attribute, and nothing else"],
    ["[r]", "reject it, then a digit or words for the reason"],
    ["[c]", "confirm what a model proposes for it"],
    ["[A] (Shift+a)", "accept every scene of the question that is not rejected, and go on"],
  ],
  keys: { a: "accept", "Shift+a": "acceptAll" },
  digits: (key, { items }) => (/^[1-9]$/.test(key) && Number(key) <= items.length ? Number(key) - 1 : -1),
  entries: (review) => review.questions.map(([id, subset, size, items]) => ({ id, facets: { size, subset }, items })),
  path: (question) => `/questions/${encodeURIComponent(question)}`,
  adopt: ({ question, scenes }) => ({
    id: question,
    items: scenes.map((scene) => ({
      ...scene, id: scene.scene, name: scene.role, title: `${scene.role}: ${scene.kind}`, pictures: [scene.scene],
    })),
  }),
  pictures: ({ items }) => items.map(({ id }) => [id, `/images/${encodeURIComponent(id)}`]),
  reasons: (scene, review) => review.reasons,
  place: ({ facets }) => `${facets.size} objects, ${facets.subset}`,
  aside: (review) => (review.without_images ? `; ${review.without_images} questions without images` : ""),
  draw: ({ items }) => by("cards").replaceChildren(...items.map(card)),
  show(question, chosen) {
    document.querySelectorAll(".card").forEach((card, index) => showCard(card, question.items[index], index === chosen));
  },
  showLarge(question, scene) {
    const picture = element("img", { id: "large-picture", src: question.pictures[scene.id] || "", alt: scene.generation_caption });
    by("large-holder").replaceChildren(element("div", { class: "picture" }, picture));
    by("large-more").replaceChildren(element("ul", { id: "large-bindings", class: "bindings" }, ...bindings(scene)));
  },
});

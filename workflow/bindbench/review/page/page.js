// The page of review/scenes.py: one question at a time, a verdict for each of its five scenes, saved at every press.
//
// A press is first kept in this browser (localStorage), then sent, and forgotten here once the server has it on disk; so
// neither a server that is gone nor a page that is closed loses one. It has an id, so that sending it twice is harmless.
"use strict";

const LATER = 3000; // milliseconds until an unsent press is tried again
const PATIENCE = 15000; // milliseconds that an answer may take
const KEPT = 5; // questions whose pictures are held
const by = (id) => document.getElementById(id);

let token = "";
let review = null; // the answer to /state
let standings = {}; // by scene
let current = null; // the question that is shown: what /questions answers, with pictures: {scene: address of a blob}
let place = 0; // its index among review.questions
let chosen = 0; // which of its five scenes is selected
let wanted = 0; // counts page turns, so that a late answer of an earlier one is dropped
const held = new Map(); // question -> promise of its answer
const ticks = new Map(); // scene -> indices of ticked bindings; not saved

// ---------------------------------------------------------------------------------------------------- the server

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(path, body) {
  const response = await fetch(path, {
    method: body ? "POST" : "GET",
    headers: { "X-Review-Token": token, ...(body ? { "Content-Type": "application/json" } : {}) },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE),
  });
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    throw new Refused(response.status, told.error || `the server answered ${response.status}`);
  }
  return response;
}

const json = async (path, body) => (await request(path, body)).json();

function explain(error) {
  if (!(error instanceof Refused)) return "The server does not answer. Start it again where it ran.";
  if (error.status === 403) return "The server was started anew: open the address that it printed.";
  return `Refused: ${error.message}.`;
}

// ------------------------------------------------------------------------------------------ presses: kept, then sent

const prefix = () => `press.${review.journal}.`;

function pending() {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix())).sort();
  return keys.map((key) => ({ key, ...JSON.parse(localStorage.getItem(key)) }));
}

function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

let lastStamp = 0;

function keep(body, expected) {
  // expected: how each scene of the press will stand; shown until the server's answer.
  lastStamp = Math.max(Date.now(), lastStamp + 1); // presses are sent in the order in which they were made
  localStorage.setItem(`${prefix()}${String(lastStamp).padStart(15, "0")}.${body.press}`, JSON.stringify({ body, expected }));
  lay();
  send();
}

let sending = false;
let timer = 0;

async function send() {
  if (sending) return;
  sending = true;
  clearTimeout(timer);
  let told = null;
  try {
    for (let [first] = pending(); first; [first] = pending()) {
      say("Saving…");
      try {
        const answer = await json("/presses", first.body);
        localStorage.removeItem(first.key);
        Object.assign(standings, answer.standings);
        lay();
        told = () => say(`Saved at ${new Date().toLocaleTimeString([], { hour12: false })}.`, "saved");
      } catch (error) {
        if (!(error instanceof Refused) || error.status === 403 || error.status >= 500) throw error;
        localStorage.removeItem(first.key); // it will never be taken: tell, and show what stands
        await readState();
        const message = `Not saved. ${explain(error)}`;
        told = () => say(message, "error");
      }
    }
  } catch (error) {
    const count = pending().length;
    const kept = `${count} ${count === 1 ? "press is" : "presses are"} kept in this browser.`;
    told = () => say(`Not saved yet. ${explain(error)} ${kept}`, "error", true);
    timer = setTimeout(send, LATER);
  }
  sending = false;
  show();
  if (told) told();
  if (current && Object.keys(current.troubles).length) go(place, chosen); // the server may be back
}

function lay() {
  for (const { expected } of pending()) {
    for (const [scene, after] of Object.entries(expected)) standings[scene] = { ...after, unsaved: true };
  }
}

async function readState() {
  review = await json("/state");
  standings = review.standings;
  lay();
}

// ------------------------------------------------------------------------------------------------ verdicts and undo

const standing = (scene) => standings[scene] || { verdict: "open", by_person: false };
const undoable = () => JSON.parse(sessionStorage.getItem(`undo.${review.journal}`) || "[]");
const setUndoable = (stack) => sessionStorage.setItem(`undo.${review.journal}`, JSON.stringify(stack.slice(-200)));

function judge(items) {
  const before = Object.fromEntries(items.map((item) => [item.scene, standing(item.scene)]));
  const body = { press: newId(), verdicts: items };
  setUndoable([...undoable(), { press: body.press, question: current.question, before }]);
  keep(body, Object.fromEntries(items.map(({ scene, verdict, reason }) => [scene, { verdict, reason, by_person: true }])));
}

function seen(scenes) {
  if (scenes.every((scene) => current.pictures[scene.scene])) return true;
  say("A picture is not there yet; what was not seen cannot be judged.", "error");
  return false;
}

const item = (scene, verdict, reason = null) => ({ scene: scene.scene, sha256: scene.sha256, verdict, reason });

function give(verdict, reason) {
  const scene = current.scenes[chosen];
  if (!seen([scene])) return;
  judge([item(scene, verdict, reason)]);
  const order = [1, 2, 3, 4].map((step) => (chosen + step) % 5);
  const open = order.find((index) => standing(current.scenes[index].scene).verdict === "open");
  if (open !== undefined && !by("large").open) choose(open);
  else show();
}

// ----------------------------------------------------------------------------------------------------------- actions

const actions = {
  accept: () => give("accepted", null),
  reject() {
    const scene = current.scenes[chosen];
    if (!seen([scene])) return;
    const proposal = standing(scene.scene).proposal;
    by("reject-title").textContent = `Reject ${scene.role}: why?`;
    by("own").value = proposal && proposal.verdict === "rejected" ? proposal.reason || "" : "";
    by("reject-own").disabled = !by("own").value.trim();
    by("reject").showModal();
    by("reasons").querySelector("button").focus();
  },
  confirm() {
    const proposal = standing(current.scenes[chosen].scene).proposal;
    if (proposal) give(proposal.verdict, proposal.verdict === "rejected" ? proposal.reason || "unreadable" : null);
    else say("No model proposed anything for this scene.");
  },
  acceptAll() {
    if (!seen(current.scenes)) return;
    const left = current.scenes.filter((scene) => {
      const { verdict, by_person } = standing(scene.scene);
      return verdict === "open" || (verdict === "accepted" && !by_person);
    });
    if (left.length) judge(left.map((scene) => item(scene, "accepted")));
    turn(1);
  },
  undo() {
    const stack = undoable();
    const last = stack.pop();
    if (!last) return say("Nothing to undo in this tab.");
    setUndoable(stack);
    keep({ press: newId(), undoes: last.press }, last.before);
    const index = review.questions.findIndex(([question]) => question === last.question);
    chosen = review.questions[index][3].indexOf(Object.keys(last.before)[0]);
    if (index === place) show();
    else go(index, chosen);
  },
  next: () => turn(1),
  previous: () => turn(-1),
  nextOpen() {
    const count = review.questions.length;
    for (let step = 1; step <= count; step++) {
      const index = (place + step) % count;
      if (fits(index, "open")) return go(index);
    }
    say("Nothing is open here.");
  },
  enlarge() {
    if (by("large").open) return by("large").close();
    by("large").showModal();
    show();
  },
  help: () => by("help").showModal(),
};

function act(name) {
  if (!review) return;
  if (!current && !["help", "undo", "nextOpen"].includes(name)) return;
  actions[name]();
}

// -------------------------------------------------------------------------------------------------- which questions

const filter = (name) => by(`filter-${name}`).value;

function fits(index, state = filter("state")) {
  const [, subset, size, scenes] = review.questions[index];
  if (filter("size") && String(size) !== filter("size")) return false;
  if (filter("subset") && subset !== filter("subset")) return false;
  const verdicts = scenes.map((scene) => standing(scene).verdict);
  if (state === "all") return true;
  return state === "accepted" ? verdicts.every((verdict) => verdict === state) : verdicts.includes(state);
}

function turn(step) {
  for (let index = place + step; index >= 0 && index < review.questions.length; index += step) {
    if (fits(index)) return go(index);
  }
  say(step > 0 ? "This is the last question that fits the filters." : "This is the first question that fits the filters.");
  show();
}

function start() {
  // The first question with something open that fits; else where this tab was.
  const indices = review.questions.map((_, index) => index).filter((index) => fits(index));
  const last = review.questions.findIndex(([question]) => question === sessionStorage.getItem("question"));
  const open = indices.find((index) => fits(index, "open"));
  const index = open ?? (indices.includes(last) ? last : indices[0]);
  if (index !== undefined) return go(index);
  current = null;
  wanted++;
  show();
}

function hold(index) {
  const [question] = review.questions[index];
  if (!held.has(question)) {
    const promise = json(`/questions/${encodeURIComponent(question)}`).then((answer) => {
      answer.pictures = {};
      answer.troubles = {};
      for (const { scene } of answer.scenes) {
        request(`/images/${encodeURIComponent(scene)}`)
          .then((response) => response.blob())
          .then((blob) => { answer.pictures[scene] = URL.createObjectURL(blob); })
          .catch((error) => {
            answer.troubles[scene] = explain(error);
            held.delete(question); // asked again at the next visit
          })
          .finally(() => { if (current === answer) show(); });
      }
      return answer;
    });
    promise.catch(() => held.delete(question));
    held.set(question, promise);
    for (const [old, dropped] of held) {
      if (held.size <= KEPT) break;
      if (old === question || (current && old === current.question)) continue;
      held.delete(old);
      dropped.then((answer) => Object.values(answer.pictures).forEach((url) => URL.revokeObjectURL(url))).catch(() => {});
    }
  }
  return held.get(question);
}

async function go(index, choose) {
  const turnNumber = ++wanted;
  const [question] = review.questions[index];
  try {
    const answer = await hold(index);
    if (turnNumber !== wanted) return;
    current = answer;
    place = index;
    const open = answer.scenes.findIndex(({ scene }) => standing(scene).verdict === "open");
    chosen = choose ?? Math.max(open, 0);
    sessionStorage.setItem("question", question);
    draw();
    scrollTo(0, 0);
    const ahead = review.questions.findIndex((_, later) => later > index && fits(later));
    if (ahead >= 0) hold(ahead).catch(() => {});
  } catch (error) {
    if (turnNumber !== wanted) return;
    say(`${question} cannot be shown. ${explain(error)}`, "error", true);
    again = () => go(index, choose);
  }
}

let again = null; // what "Try again" does besides sending what is kept

// ------------------------------------------------------------------------------------------------------------ drawing

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function say(message, kind = "", retry = false) {
  by("status").textContent = message;
  by("status").className = kind;
  by("retry").hidden = !retry;
}

function look(scene) {
  // How a scene stands, as a class and words.
  const { verdict, reason, by: who, by_person, proposal, unsaved } = standing(scene);
  const small = [];
  if (unsaved) small.push("not saved yet");
  if (who) small.push(`by ${who}`);
  if (proposal) {
    const opinion = `${proposal.verdict}${proposal.reason ? `, ${proposal.reason}` : ""}`;
    return { css: "proposed", text: `◌ ${verdict}; proposed: ${opinion}`, small: `by ${proposal.by || "a model"}, not confirmed` };
  }
  if (verdict === "accepted" && !by_person) small.push("by default");
  const signs = { accepted: "✓ accepted", rejected: "✗ rejected", open: "○ open" };
  return { css: verdict, text: signs[verdict] + (reason ? `: ${reason}` : ""), small: small.join(", ") };
}

function bindings(scene) {
  const ticked = ticks.get(scene.scene) || new Set();
  ticks.set(scene.scene, ticked);
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

function draw() {
  // The five cards of the current question, from nothing.
  by("cards").replaceChildren(
    ...current.scenes.map((scene, index) => {
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
      return element(
        "li",
        {},
        element(
          "article",
          { class: "card", "aria-label": `${scene.role}, ${scene.kind}` },
          title,
          element("p", { class: "standing" }),
          picture,
          element(
            "div",
            { class: "words" },
            element("ul", { class: "bindings", "aria-label": `Bindings of ${scene.role}` }, ...bindings(scene)),
            element("p", { class: "caption" }, element("b", {}, "Image asked for"), scene.generation_caption),
            element("p", { class: "caption" }, element("b", {}, "Caption"), scene.caption),
          ),
        ),
      );
    }),
  );
  show();
}

function choose(index) {
  chosen = index;
  show();
  document.querySelectorAll(".card .picture")[index].scrollIntoView({ block: "nearest" });
}

function show() {
  // Everything that changes while a question is shown.
  showHeader();
  by("note").hidden = current !== null;
  by("cards").hidden = current === null;
  for (const button of document.querySelectorAll("[data-do]")) {
    button.disabled = current === null && !["help", "undo", "nextOpen"].includes(button.dataset.do);
  }
  if (!current) {
    by("note").textContent = "No question fits the filters.";
    return;
  }
  document.querySelectorAll(".card").forEach((card, index) => showCard(card, current.scenes[index], index === chosen));
  const proposed = Boolean(standing(current.scenes[chosen].scene).proposal);
  document.querySelectorAll("[data-do=confirm]").forEach((button) => { button.hidden = !proposed; });
  if (by("large").open) showLarge(current.scenes[chosen]);
}

function showStanding(paragraph, scene) {
  const { css, text, small } = look(scene);
  paragraph.className = `standing ${css}`;
  paragraph.replaceChildren(text, ...(small ? [element("small", {}, small)] : []));
  return css;
}

function showCard(card, scene, isChosen) {
  const css = showStanding(card.querySelector(".standing"), scene.scene);
  card.className = `card ${css}${isChosen ? " chosen" : ""}`;
  card.querySelector(".title").setAttribute("aria-pressed", String(isChosen));
  const picture = card.querySelector(".picture");
  const url = current.pictures[scene.scene];
  if (url && !picture.querySelector("img")) {
    picture.replaceChildren(element("img", { src: url, alt: `${scene.role}: ${scene.generation_caption}` }));
  } else if (!url) {
    picture.textContent = current.troubles[scene.scene] || "loading…";
  }
}

function showLarge(scene) {
  by("large-name").textContent = `${scene.role}: ${scene.kind}`;
  showStanding(by("large-standing"), scene.scene);
  by("large-bindings").replaceChildren(...bindings(scene));
  const url = current.pictures[scene.scene];
  if (url) by("large-picture").setAttribute("src", url);
  by("large-picture").setAttribute("alt", scene.generation_caption);
}

function showHeader() {
  const all = review.questions.flatMap(([, , , scenes]) => scenes).map((scene) => standing(scene).verdict);
  const count = (verdict) => all.filter((other) => other === verdict).length;
  const done = all.length - count("open");
  by("bar").max = all.length;
  by("bar").value = done;
  const missing = review.without_images;
  by("totals").textContent =
    `${done} of ${all.length} done, ${count("open")} open, ${count("rejected")} rejected` +
    (missing ? `; ${missing} questions without images` : "");
  by("name").textContent = current ? current.question : "Screening";
  if (!current) return by("place").replaceChildren();
  const [, subset, size] = review.questions[place];
  const fitting = review.questions.map((_, index) => index).filter((index) => fits(index));
  const position = fitting.indexOf(place) + 1;
  const where = position ? `question ${position} of ${fitting.length}` : `${fitting.length} questions fit the filters`;
  by("place").textContent = `${size} objects, ${subset}; ${where}`;
}

// --------------------------------------------------------------------------------------------------------- the person

const KEYS = {
  a: "accept", r: "reject", c: "confirm", u: "undo", n: "next", p: "previous", o: "nextOpen", z: "enlarge", "?": "help",
  ArrowRight: "next", ArrowLeft: "previous",
};

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !review) return;
  const typing = ["text"].includes(event.target.type) || event.target.tagName === "SELECT";
  if (by("reject").open) {
    const digit = Number(event.key);
    if (typing || !/^[0-9]$/.test(event.key) || event.repeat) return;
    event.preventDefault();
    if (digit === 0) by("own").focus();
    else if (review.reasons[digit - 1]) rejectFor(review.reasons[digit - 1]);
    return;
  }
  if (by("help").open || typing) return;
  if (event.key >= "1" && event.key <= "5" && event.key.length === 1) {
    if (current) choose(Number(event.key) - 1);
    return;
  }
  // Shift decides, not the letter's case: Caps Lock must not accept five scenes.
  const letter = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const name = letter === "a" && event.shiftKey ? "acceptAll" : KEYS[letter];
  if (!name || (event.repeat && !["next", "previous"].includes(name))) return;
  event.preventDefault();
  if (by("large").open && !["accept", "reject", "confirm", "undo", "enlarge"].includes(name)) return;
  act(name);
}

function rejectFor(reason) {
  by("reject").close();
  give("rejected", reason);
}

function furnish() {
  // Everything that depends on what the server holds, once.
  by("reasons").replaceChildren(
    ...review.reasons.map((reason, index) =>
      element("li", {}, element("button", { type: "button", onclick: () => rejectFor(reason) },
        element("kbd", {}, String(index + 1)), ` ${reason}`))),
  );
  const values = (column) => [...new Set(review.questions.map((question) => question[column]))];
  by("filter-size").append(...values(2).map((size) => element("option", { value: size }, String(size))));
  by("filter-subset").append(...values(1).map((subset) => element("option", { value: subset }, subset)));
}

function listen() {
  document.addEventListener("keydown", key);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) act(button.dataset.do);
    const close = event.target.closest("[data-close]");
    if (close) close.closest("dialog").close();
  });
  by("own").addEventListener("input", () => { by("reject-own").disabled = !by("own").value.trim(); });
  by("reject").querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const reason = by("own").value.trim();
    if (reason) rejectFor(reason);
  });
  for (const name of ["state", "size", "subset"]) {
    by(`filter-${name}`).addEventListener("change", (event) => {
      event.target.blur();
      start();
    });
  }
  by("retry").addEventListener("click", async () => {
    say("Trying again…");
    const repeat = again;
    again = null;
    await send();
    if (repeat) await repeat();
  });
  addEventListener("focus", async () => {
    // Somebody else may have judged meanwhile.
    if (!review || sending || pending().length) return;
    const read = await json("/state").catch(() => null);
    if (!read || sending || pending().length) return;
    standings = read.standings;
    show();
  });
}

async function begin() {
  const given = decodeURIComponent(location.hash.slice(1));
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname); // not into bookmarks or over a shoulder
  }
  token = sessionStorage.getItem("token") || "";
  if (!token) {
    by("note").hidden = false;
    by("note").textContent = "Open the whole address that the program printed: it ends with this session's token.";
    return;
  }
  try {
    await readState();
  } catch (error) {
    say(explain(error), "error", true);
    again = begin;
    return;
  }
  furnish();
  if (pending().length) await send();
  else say("Each press is saved at once.");
  start();
}

addEventListener("hashchange", () => location.reload());
listen();
begin();

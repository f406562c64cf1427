// What the pages of review/ share: one entry at a time, a verdict for each of its items, saved at every press.
//
// A press is first kept in this browser (localStorage), then sent, and forgotten here once the server has it on disk; so
// neither a server that is gone nor a page that is closed loses one. It has an id, so that sending it twice is harmless.
//
// A page calls begin(view). Its view says:
//   title, note          the page's name, and a paragraph of its help
//   noun, nouns, items   what an entry is called (question, questions), and what is judged, in the plural (scenes)
//   key                  the name of an item's id in the journal: scene
//   entries(state)       of the answer to /state: [{id, facets: {name: value}, items: [ids]}]
//   path(id)             where an entry is asked for
//   adopt(answer)        makes of that answer an entry: {id, items: [{id, sha256, name, title, pictures: [names], trouble}]};
//                        title, if it has one, is shown in place of the id
//   pictures(entry)      [[name, path]] of its pictures
//   facets, states       labels of the filters by facet, and [[value, words]] of the filter of states besides "all"
//   place(entry), aside(state)   what the header says of the entry that is shown, and after the counts
//   totals(verdicts)     in place of the usual counts: {done, all, text}; verdicts: of the items of each entry
//   signs                in place of the usual ones: a sign and a word by verdict
//   reasons(item, state) for which an item may be rejected
//   movesOn              whether a verdict leads to the next open item
//   keys                 actions of further keys, null for none; Shift+a is apart from a
//   actions              functions of further actions
//   buttons, help        [[action, words]], and [[keys, words]] in which [a] is a key; largeNote: beside what is enlarged
//   digits(key, entry)   the item that a key chooses: its index, or -1
//   draw(entry), show(entry, chosen), showLarge(entry, item)   the entry from nothing, what changes, the enlarged item

import { by, element, furnish, offer } from "/furniture.js";

export { by, element };

const LATER = 3000; // milliseconds until an unsent press is tried again
const PATIENCE = 15000; // milliseconds that an answer may take
const KEPT = 5; // entries whose pictures are held
const SIGNS = { accepted: "✓ accepted", rejected: "✗ rejected", open: "○ open" };

let view = null;
let token = "";
let review = null; // the answer to /state
let entries = []; // of the view
let standings = {}; // by item
let current = null; // the entry that is shown, with pictures: {name: address of a blob} and troubles: {name: why not}
let place = 0; // its index among entries
let chosen = 0; // which of its items is selected
let wanted = 0; // counts page turns, so that a late answer of an earlier one is dropped
const held = new Map(); // entry -> promise of its answer

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
  // expected: how each item of the press will stand; shown until the server's answer.
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
    for (const [item, after] of Object.entries(expected)) standings[item] = { ...after, unsaved: true };
  }
}

async function readState() {
  review = await json("/state");
  entries = view.entries(review);
  standings = review.standings;
  lay();
}

// ------------------------------------------------------------------------------------------------ verdicts and undo

export const standing = (item) => standings[item] || { verdict: "open", by_person: false };
const undoable = () => JSON.parse(sessionStorage.getItem(`undo.${review.journal}`) || "[]");
const setUndoable = (stack) => sessionStorage.setItem(`undo.${review.journal}`, JSON.stringify(stack.slice(-200)));

export function judge(verdicts) {
  const before = Object.fromEntries(verdicts.map((line) => [line[view.key], standing(line[view.key])]));
  const body = { press: newId(), verdicts };
  setUndoable([...undoable(), { press: body.press, entry: current.id, before }]);
  const after = verdicts.map((line) => [line[view.key], { verdict: line.verdict, reason: line.reason, by_person: true }]);
  keep(body, Object.fromEntries(after));
}

export function seen(items) {
  const trouble = items.map((item) => item.trouble).find(Boolean);
  if (trouble) say(`This cannot be judged: ${trouble}.`, "error");
  else if (items.every((item) => item.pictures.every((name) => current.pictures[name]))) return true;
  else say("A picture is not there yet; what was not seen cannot be judged.", "error");
  return false;
}

export const line = (item, verdict, reason = null) => ({ [view.key]: item.id, sha256: item.sha256, verdict, reason });

function give(verdict, reason) {
  const { items } = current;
  if (!seen([items[chosen]])) return;
  judge([line(items[chosen], verdict, reason)]);
  const order = items.map((_, step) => (chosen + step) % items.length).slice(1);
  const open = order.find((index) => standing(items[index].id).verdict === "open");
  if (view.movesOn && open !== undefined && !by("large").open) choose(open);
  else show();
}

// ----------------------------------------------------------------------------------------------------------- actions

const actions = {
  accept: () => give("accepted", null),
  reject() {
    const item = current.items[chosen];
    if (!seen([item])) return;
    const { proposal } = standing(item.id);
    by("reject-title").textContent = `Reject ${item.name}: why?`;
    by("own").value = proposal && proposal.verdict === "rejected" ? proposal.reason || "" : "";
    by("reject-own").disabled = !by("own").value.trim();
    offerReasons(item);
    by("reject").showModal();
    by("reasons").querySelector("button").focus();
  },
  confirm() {
    const { proposal } = standing(current.items[chosen].id);
    if (proposal) give(proposal.verdict, proposal.verdict === "rejected" ? proposal.reason || "unreadable" : null);
    else say("No model proposed anything here.");
  },
  acceptAll() {
    if (!seen(current.items)) return;
    const left = current.items.filter((item) => {
      const { verdict, by_person } = standing(item.id);
      return verdict === "open" || (verdict === "accepted" && !by_person);
    });
    if (left.length) judge(left.map((item) => line(item, "accepted")));
    turn(1);
  },
  undo() {
    const stack = undoable();
    const last = stack.pop();
    if (!last) return say("Nothing to undo in this tab.");
    setUndoable(stack);
    keep({ press: newId(), undoes: last.press }, last.before);
    const index = entries.findIndex(({ id }) => id === last.entry);
    if (index < 0) return show(); // of an earlier session, which had more
    chosen = Math.max(0, entries[index].items.indexOf(Object.keys(last.before)[0]));
    if (index === place) show();
    else go(index, chosen);
  },
  next: () => turn(1),
  previous: () => turn(-1),
  nextOpen() {
    const count = entries.length;
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
  down: () => choose((chosen + 1) % current.items.length),
  up: () => choose((chosen + current.items.length - 1) % current.items.length),
  help: () => by("help").showModal(),
};

export function act(name) {
  if (!review) return;
  if (!current && !["help", "undo", "nextOpen"].includes(name)) return;
  (actions[name] || view.actions[name])(current);
}

// --------------------------------------------------------------------------------------------------- which entries

const filter = (name) => by(`filter-${name}`).value;

function fits(index, state = filter("state")) {
  const { facets, items } = entries[index];
  if (Object.keys(view.facets).some((name) => filter(name) && String(facets[name]) !== filter(name))) return false;
  const verdicts = items.map((item) => standing(item).verdict);
  if (state === "all") return true;
  if (state === "done") return !verdicts.includes("open");
  return state === "accepted" ? verdicts.every((verdict) => verdict === state) : verdicts.includes(state);
}

function turn(step) {
  for (let index = place + step; index >= 0 && index < entries.length; index += step) {
    if (fits(index)) return go(index);
  }
  say(`This is the ${step > 0 ? "last" : "first"} ${view.noun} that fits the filters.`);
  show();
}

function start() {
  // The first entry with something open that fits; else where this tab was.
  const indices = entries.map((_, index) => index).filter((index) => fits(index));
  const last = entries.findIndex(({ id }) => id === sessionStorage.getItem(view.noun));
  const open = indices.find((index) => fits(index, "open"));
  const index = open ?? (indices.includes(last) ? last : indices[0]);
  if (index !== undefined) return go(index);
  current = null;
  wanted++;
  show();
}

function hold(index) {
  const { id } = entries[index];
  if (!held.has(id)) {
    const promise = json(view.path(id)).then((answer) => {
      const entry = { ...view.adopt(answer), pictures: {}, troubles: {} };
      for (const [name, path] of view.pictures(entry)) {
        request(path)
          .then((response) => response.blob())
          .then((blob) => { entry.pictures[name] = URL.createObjectURL(blob); })
          .catch((error) => {
            entry.troubles[name] = explain(error);
            held.delete(id); // asked again at the next visit
          })
          .finally(() => { if (current === entry) show(); });
      }
      return entry;
    });
    promise.catch(() => held.delete(id));
    held.set(id, promise);
    for (const [old, dropped] of held) {
      if (held.size <= KEPT) break;
      if (old === id || (current && old === current.id)) continue;
      held.delete(old);
      dropped.then((entry) => Object.values(entry.pictures).forEach((url) => URL.revokeObjectURL(url))).catch(() => {});
    }
  }
  return held.get(id);
}

async function go(index, choose) {
  const turnNumber = ++wanted;
  const { id } = entries[index];
  try {
    const entry = await hold(index);
    if (turnNumber !== wanted) return;
    current = entry;
    place = index;
    const open = entry.items.findIndex((item) => standing(item.id).verdict === "open");
    chosen = choose ?? Math.max(open, 0);
    sessionStorage.setItem(view.noun, id);
    view.draw(entry);
    show();
    scrollTo(0, 0);
    const ahead = entries.findIndex((_, later) => later > index && fits(later));
    if (ahead >= 0) hold(ahead).catch(() => {});
  } catch (error) {
    if (turnNumber !== wanted) return;
    say(`${id} cannot be shown. ${explain(error)}`, "error", true);
    again = () => go(index, choose);
  }
}

let again = null; // what "Try again" does besides sending what is kept

// ------------------------------------------------------------------------------------------------------------ drawing

export function say(message, kind = "", retry = false) {
  by("status").textContent = message;
  by("status").className = kind;
  by("retry").hidden = !retry;
}

function look(item) {
  // How an item stands, as a class and words.
  const { verdict, reason, by: who, by_person, proposal, unsaved } = standing(item);
  const small = [];
  if (unsaved) small.push("not saved yet");
  if (who) small.push(`by ${who}`);
  if (proposal) {
    const opinion = `${proposal.verdict}${proposal.reason ? `, ${proposal.reason}` : ""}`;
    return { css: "proposed", text: `◌ ${verdict}; proposed: ${opinion}`, small: `by ${proposal.by || "a model"}, not confirmed` };
  }
  if (verdict === "accepted" && !by_person) small.push("by default");
  return { css: verdict, text: (view.signs || SIGNS)[verdict] + (reason ? `: ${reason}` : ""), small: small.join(", ") };
}

export function showStanding(paragraph, item) {
  const { css, text, small } = look(item);
  paragraph.className = `standing ${css}`;
  paragraph.replaceChildren(text, ...(small ? [element("small", {}, small)] : []));
  return css;
}

export function showPicture(holder, name, description) {
  // The picture once it is there, else why it is not.
  const url = current.pictures[name];
  if (url && !holder.querySelector("img")) {
    holder.querySelector(".note")?.remove();
    holder.prepend(element("img", { src: url, alt: description }));
  } else if (!url) {
    const note = holder.querySelector(".note") || holder.appendChild(element("span", { class: "note" }));
    note.textContent = current.troubles[name] || "loading…";
  }
}

export function choose(index) {
  chosen = index;
  show();
  const card = document.querySelector(".chosen");
  (card?.querySelector(".picture") || card)?.scrollIntoView({ block: "nearest" });
}

function show() {
  // Everything that changes while an entry is shown.
  showHeader();
  by("note").hidden = current !== null;
  by("cards").hidden = current === null;
  for (const button of document.querySelectorAll("[data-do]")) {
    button.disabled = current === null && !["help", "undo", "nextOpen"].includes(button.dataset.do);
  }
  if (!current) {
    by("note").textContent = `No ${view.noun} fits the filters.`;
    return;
  }
  view.show(current, chosen);
  const item = current.items[chosen];
  const proposed = Boolean(standing(item.id).proposal);
  document.querySelectorAll("[data-do=confirm]").forEach((button) => { button.hidden = !proposed; });
  if (!by("large").open) return;
  by("large-name").textContent = item.title;
  showStanding(by("large-standing"), item.id);
  view.showLarge(current, item);
}

function usualTotals(verdicts) {
  const all = verdicts.flat();
  const count = (verdict) => all.filter((other) => other === verdict).length;
  const done = all.length - count("open");
  const text = `${done} of ${all.length} ${view.items} done, ${count("open")} open, ${count("rejected")} rejected`;
  return { done, all: all.length, text };
}

function showHeader() {
  const { done, all, text } = (view.totals || usualTotals)(
    entries.map(({ items }) => items.map((item) => standing(item).verdict)));
  by("bar").max = all;
  by("bar").value = done;
  by("totals").textContent = text + view.aside(review);
  by("name").textContent = current ? current.title || current.id : view.title;
  if (!current) return by("place").replaceChildren();
  const fitting = entries.map((_, index) => index).filter((index) => fits(index));
  const position = fitting.indexOf(place) + 1;
  const where = position ? `${view.noun} ${position} of ${fitting.length}` : `${fitting.length} ${view.nouns} fit the filters`;
  by("place").textContent = `${view.place(entries[place])}; ${where}`;
}

// --------------------------------------------------------------------------------------------------------- the person

const KEYS = {
  r: "reject", c: "confirm", u: "undo", n: "next", p: "previous", o: "nextOpen", z: "enlarge", "?": "help",
  ArrowRight: "next", ArrowLeft: "previous",
};
const HELD = ["next", "previous", "down", "up"]; // go on while the key is held
const WHILE_LARGE = ["accept", "reject", "confirm", "undo", "enlarge", "down", "up"];

const keyboard = () => ({ ...KEYS, ...view.keys });

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !review) return;
  const typing = ["text"].includes(event.target.type) || event.target.tagName === "SELECT";
  if (by("reject").open) {
    const digit = Number(event.key);
    if (typing || !/^[0-9]$/.test(event.key) || event.repeat) return;
    event.preventDefault();
    if (digit === 0) by("own").focus();
    else by("reasons").querySelectorAll("button")[digit - 1]?.click();
    return;
  }
  if (by("help").open || typing) return;
  // Shift decides, not the letter's case: Caps Lock must not accept a whole entry.
  const letter = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const index = current && !event.shiftKey ? view.digits(letter, current) : -1;
  if (index >= 0) {
    event.preventDefault();
    return choose(index);
  }
  const keys = keyboard();
  const name = (event.shiftKey && keys[`Shift+${letter}`]) || keys[letter];
  if (!name || (event.repeat && !HELD.includes(name))) return;
  event.preventDefault();
  if (by("large").open && !WHILE_LARGE.includes(name)) return;
  act(name);
}

function rejectFor(reason) {
  by("reject").close();
  give("rejected", reason);
}

function offerReasons(item) {
  const offered = view.reasons(item, review).map((reason, index) =>
    element("li", {}, element("button", { type: "button", onclick: () => rejectFor(reason) },
      element("kbd", {}, String(index + 1)), ` ${reason}`)));
  by("reasons").replaceChildren(...offered);
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
  for (const name of ["state", ...Object.keys(view.facets)]) {
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

async function enter() {
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
    again = enter;
    return;
  }
  offer(view, entries);
  if (pending().length) await send();
  else say("Each press is saved at once.");
  start();
}

export function begin(given) {
  view = given;
  furnish(view, keyboard());
  addEventListener("hashchange", () => location.reload());
  listen();
  enter();
}

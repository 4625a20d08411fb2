// The page: controls, keys, the gate, and one function that draws what the address says.

let state;
let found;
let shown = [];
let table;
let matching = null;

const narrow = matchMedia("(max-width: 700px)");
const control = name => find(`.filters [name="${name}"]`);
const say = message => { find(".said").textContent = message; };

function complain(message) {
  find(".problem").textContent = message;
  find(".problem").hidden = !message;
}

// Changes what is shown; a step back in the browser brings the last view again.
function go(change, { focus = "" } = {}) {
  const next = { ...state, ...change };
  const address = formatState(next);
  complain("");
  const opens = next.dialogue !== state.dialogue || next.filter !== state.filter;
  if (address !== location.hash) history[opens ? "pushState" : "replaceState"](null, "", address);
  draw(next, focus);
}

function draw(next, focus = "") {
  const before = state;
  state = next;
  const same = before && found && formatState({ ...before, dialogue: -1 }) === formatState({ ...next, dialogue: -1 });
  if (!same || drawnFor !== matching) {
    found = evaluate(state.filter, state.systems, matching);
    shown = ordered(found, state);
    drawnFor = matching;
    fillControls();
    table = null;
  }
  const open = state.dialogue >= 0;
  // A dialogue needs the room; on a phone the list does as well.
  if (!before || open !== before.dialogue >= 0) find(".narrow").open = !open && !narrow.matches;
  find(".list").hidden = open;
  find("section.dialogue").hidden = !open;
  if (open) {
    if (state.row < 0) {
      state.row = firstRow(state.dialogue, found, state.systems);
      history.replaceState(null, "", formatState(state));
    }
    drawDialogue(before, focus);
  } else {
    table ??= listTable(state, found, shown, go);
    if (before?.dialogue >= 0) table.reveal(before.dialogue);
  }
  tell();
}

let drawnFor = null;

const n = number => number.toLocaleString("en");
const plural = (number, word) => `${n(number)} ${word}${number === 1 ? "" : "s"}`;

function tell() {
  const turns = `${plural(found.turns, "turn")} in ${plural(found.dialogues, "dialogue")}`;
  const filtered = Object.values(state.filter).some(values => values?.length);
  const what = state.filter.category && !state.filter.category.includes("right") ? "error" : "pair of gold label and tag";
  const pairs = what === "error" ? plural(found.pairs, what) : `${n(found.pairs)} ${found.pairs === 1 ? what : "pairs of gold label and tag"}`;
  const count = `${found.byPair ? `${pairs} on ` : ""}${turns}${filtered ? `, of ${n(model.turns)} in ${n(model.dialogues.length)}` : ""}.`;
  const waits = state.filter.text?.length && !text.shown ? " The text is searched once it is shown." : "";
  if (find(".count").textContent !== count + waits) find(".count").textContent = count + waits;
  find(".clear").hidden = !filtered;
}

// --- One dialogue ---

async function drawDialogue(before, focus) {
  const { dialogue, row } = state;
  const key = formatState(state);
  const lines = text.shown ? await said(dialogue).catch(problem => complain(problem.message)) : null;
  if (formatState(state) !== key) return;
  const differing = disagreements(dialogue, state.systems);
  const about = ["scenario", "timing"].map(name => aboutOf(dialogue, name)).filter(Boolean);
  const button = (label, action, keys) => {
    const made_ = made("button", { type: "button", "aria-keyshortcuts": keys }, label);
    made_.onclick = action;
    return made_;
  };
  const heading = made("h2", { tabindex: -1 }, model.dialogues[dialogue]);
  const lanes = lanesOf(state, found, go);
  const scroller = made("div", { class: "lanes-box", tabindex: 0, role: "group", "aria-label": "Lanes" }, lanes);
  const left = find(".lanes-box")?.scrollLeft ?? 0;
  const top = before?.dialogue === dialogue ? find(".transcript")?.scrollTop ?? 0 : 0;
  const script = transcript(state, found, lines, go);
  find("section.dialogue").replaceChildren(
    made("div", { class: "bar" }, button("All dialogues", () => go({ dialogue: -1, row: -1 }), "Escape"),
      button("Previous", () => move(-1), "k"), button("Next", () => move(1), "j"), button("Next disagreement", () => disagree(1), "n")),
    heading,
    made("p", { class: "about-dialogue" }, [...about, plural(lengthOf(dialogue), "user turn"), plural(differing.length, "disagreement"), placeTold(dialogue)].filter(Boolean).join(", ")),
    laneChooser(state, lanes), scroller,
    ...(root.dataset.text === "yes" && !text.shown ? [gate(showText)] : []),
    made("div", { class: "reading" }, script, made("div", { class: "beside" }, turnPanel(state, lines), ...(lines ? [helpLines()] : []))));
  scroller.scrollLeft = left;
  script.scrollTop = top;
  follow(scroller, lanes, script);
  if (before?.dialogue !== dialogue) heading.focus({ preventScroll: Boolean(focus) });
  else if (focus === "turn") lanes.querySelector("th.chosen button")?.focus({ preventScroll: true });
  const turn = turnOf(dialogue, row);
  say(`${before?.dialogue !== dialogue ? `Dialogue ${model.dialogues[dialogue]}. ` : ""}Turn ${row + 1}. Gold ${toldOfGold(model.rowGold[at(dialogue, row)])}. `
    + (turn < 0 ? "" : state.systems.map(i => `${model.systems[i].name}: ${toldOfSystem(model.systems[i], turn).join("; ")}`).join(". ")));
}

function placeTold(dialogue) {
  const place = shown.indexOf(dialogue);
  return place < 0 ? "does not fit the filters" : `${n(place + 1)} of ${n(shown.length)} that fit`;
}

// The lanes and the transcript show the chosen turn, without moving the page.
function follow(scroller, lanes, script) {
  const column = lanes.querySelector("th.chosen");
  const stub = lanes.querySelector("tbody th").offsetWidth;
  if (column) {
    const [from, to] = [column.offsetLeft - stub, column.offsetLeft + column.offsetWidth];
    if (from < scroller.scrollLeft) scroller.scrollLeft = from;
    if (to > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = to - scroller.clientWidth;
  }
  const item = script.querySelector("li.chosen");
  if (item) {
    const [from, to] = [item.offsetTop, item.offsetTop + item.offsetHeight];
    if (from < script.scrollTop + 8 || to > script.scrollTop + script.clientHeight) script.scrollTop = from - script.clientHeight / 4;
  }
}

function move(step) {
  const place = shown.indexOf(state.dialogue);
  const next = place < 0 ? (step > 0 ? shown.find(d => d > state.dialogue) ?? shown[0] : shown.findLast(d => d < state.dialogue) ?? shown.at(-1)) : shown[place + step];
  if (next === undefined) say(step > 0 ? "This is the last dialogue that fits." : "This is the first dialogue that fits.");
  else go({ dialogue: next, row: -1 });
}

function turnBy(step) {
  const across = columnsOf(state.dialogue);
  const next = step > 0 ? across.find(row => row > state.row) : across.findLast(row => row < state.row);
  if (next !== undefined) go({ row: next }, { focus: "turn" });
}

// The next turn on which a system shown is wrong, in this dialogue or in one after it.
function disagree(step) {
  if (state.dialogue >= 0) {
    const rows = disagreements(state.dialogue, state.systems).map(rowOf);
    const next = step > 0 ? rows.find(row => row > state.row) : rows.findLast(row => row < state.row);
    if (next !== undefined) return go({ row: next }, { focus: "turn" });
  }
  const place = shown.indexOf(state.dialogue);
  const rest = step > 0 ? shown.slice(place + 1) : shown.slice(0, Math.max(0, place)).reverse();
  const dialogue = rest.find(d => disagreements(d, state.systems).length);
  if (dialogue === undefined) return say("No other disagreement.");
  const rows = disagreements(dialogue, state.systems).map(rowOf);
  return go({ dialogue, row: step > 0 ? rows[0] : rows.at(-1) });
}

// --- Text ---

function showText() {
  text.shown = true;
  find(".hide").hidden = false;
  control("text").disabled = false;
  look().then(() => draw(state));
}

function hideText() {
  text.shown = false;
  find(".hide").hidden = true;
  control("text").disabled = true;
  look().then(() => draw(state));
  say("All text is hidden.");
}

// Finds the dialogues in which something is said. Without the reader's yes, no text is loaded.
async function look() {
  text.wanted = text.shown ? (state.filter.text?.[0] ?? "").toLowerCase() : "";
  if (!text.wanted) {
    matching = null;
    return;
  }
  const [wanted, fits] = [text.wanted, new Uint8Array(model.dialogues.length)];
  for (let d = 0; d < fits.length; d++)
    if ((await said(d)).some(([line]) => line.toLowerCase().includes(wanted))) fits[d] = 1;
  if (wanted === text.wanted) matching = fits;
}

// --- Controls ---

function options(name, entries, value) {
  const select = control(name);
  const group = ([title, items]) => made("optgroup", { label: title }, ...items.map(option));
  const option = ([v, label, count]) => made("option", { value: v }, count === undefined ? label : `${label} (${n(count)})`);
  select.replaceChildren(...entries.map(entry => (Array.isArray(entry[1]) ? group(entry) : option(entry))));
  if (![...select.options].some(o => o.value === value)) select.append(made("option", { value }, value.replaceAll(",", " or ")));
  select.value = value;
}

const sum = (counts, set) => counts.reduce((total, count, i) => total + (set[i] ? count : 0), 0);

function cellOptions(counts, what) {
  const of = value => sum(counts, cellSet([value]));
  const types = [...new Set(model.cells.slice(0, model.none).filter(c => c.startsWith("confirm")).map(c => c.slice(8).replace(/_[a-z]+$/, "")))];
  return [["", "Anything"], ["any", `Any ${what}`, of("any")], ["none", `No ${what}`, of("none")],
    ["Stage", [["alert", "alert", of("alert")], ["confirm", "confirm", of("confirm")]]],
    ["Crisis type", types.map(type => [type, type, of(type)])],
    ["Label", model.cells.slice(0, model.none).map(cell => [cell, cell, of(cell)])]];
}

function fillControls() {
  const { filter, systems } = state;
  const [a, b] = systems.map(index => model.systems[index]);
  const value = name => (filter[name] ?? []).join(",");
  options("a", model.systems.map(s => [String(s.index), s.name]), String(systems[0]));
  options("b", [["", "No other"], ...model.systems.filter(s => s !== a).map(s => [String(s.index), s.name])], String(systems[1] ?? ""));
  options("gold", cellOptions(found.facets.gold, "gold label"), value("gold"));
  options("tagged", cellOptions(found.facets.tagged, "tag"), value("tagged"));
  const of = category => sum(found.facets.category, categorySet([category]));
  const kinds = [...new Set(Object.values(model.kinds))].map(kind => [words(kind), Object.keys(model.kinds).filter(c => model.kinds[c] === kind).map(c => [c, words(c), of(c)])]);
  options("category", [["", "Anything"], ["any", "Any error", of("any")], ["right", "No error", of("right")], ...kinds], value("category"));
  const outcomes = countTurns(found, TURN_TERMS.outcome, model.outcomes.length, turn => a.outcome[turn]);
  options("outcome", [["", "Anything"], ...model.outcomes.map((name, i) => [name, name, outcomes[i]])], value("outcome"));
  control("both").disabled = !b;
  options("both", [["", "Anything"], ...(b ? bothOptions(a, b) : [])], bothValue());
  const wrong = countTurns(found, TURN_TERMS.systems_wrong, model.systems.length + 1, turn => model.wrong[turn]);
  options("systems_wrong", [["", "Any number"], ...Array.from(wrong, (count, i) => [String(i), i === model.systems.length ? `all ${i}` : String(i), count])], value("systems_wrong"));
  for (const name of ["scenario", "timing"]) {
    const about = model.about[name];
    control(name).closest("label").hidden = !about;
    if (!about) continue;
    const counts = countTurns(found, TURN_TERMS[name], about.names.length, turn => about.codes[model.turnDialogue[turn]]);
    options(name, [["", "Any"], ...about.names.map((item, i) => [item, item, counts[i]])], value(name));
  }
  if (document.activeElement !== control("text")) control("text").value = filter.text?.[0] ?? "";
  control("text").closest("label").hidden = root.dataset.text !== "yes";
  find(".lanes-chosen").replaceChildren(...model.systems.filter(s => s !== a && s !== b).map(s => {
    const box = made("input", { type: "checkbox", checked: systems.includes(s.index) });
    box.onchange = () => go({ systems: box.checked ? [...systems, s.index] : systems.filter(i => i !== s.index) });
    return made("label", {}, box, ` ${s.name}`);
  }));
}

const BOTH = [["right>wrong", "A right, B wrong"], ["wrong>right", "A wrong, B right"], ["wrong,wrong", "Both wrong"], ["right,right", "Both right"], ["differ", "They differ"]];

function bothOptions(a, b) {
  const asked = turn => a.outcome[turn] !== NOT_ASKED && b.outcome[turn] !== NOT_ASKED;
  // In the order of BOTH.
  const kind = turn => (asked(turn) ? [2, 1, 0, 3][2 * a.right[turn] + b.right[turn]] : NOT_ASKED);
  const counts = countTurns(found, TURN_TERMS.both, 4, kind);
  const [, differing] = countTurns(found, TURN_TERMS.both, 2, turn => Number(differ(a, b, turn)));
  return BOTH.map(([name, label], i) => [name, label, i < 4 ? counts[i] : differing]);
}

function bothFilter(choice) {
  const [a, b] = state.systems.map(index => model.systems[index].id);
  return {
    "": {}, "right>wrong": { right: [a], wrong: [b] }, "wrong>right": { right: [b], wrong: [a] },
    "wrong,wrong": { wrong: [a, b] }, "right,right": { right: [a, b] }, differ: { differ: [a, b] },
  }[choice];
}

function bothValue() {
  const { right, wrong, differ } = state.filter;
  if (!right && !wrong && !differ) return "";
  const same = BOTH.map(([name]) => name).find(name => {
    const wanted = bothFilter(name);
    return ["right", "wrong", "differ"].every(term => String(wanted[term] ?? "") === String(state.filter[term] ?? ""));
  });
  return same ?? [right && `${right} right`, wrong && `${wrong} wrong`, differ && `${differ} differ`].filter(Boolean).join(", ");
}

function listen() {
  find(".filters").onsubmit = event => event.preventDefault();
  find(".filters").onchange = ({ target: { name, value } }) => {
    if (name === "a") go({ systems: [Number(value), ...state.systems.slice(1).filter(i => i !== Number(value))], filter: { ...state.filter } });
    else if (name === "b") go({ systems: [state.systems[0], ...(value ? [Number(value)] : []), ...state.systems.slice(2).filter(i => i !== Number(value))] });
    else if (name === "both") go({ filter: { ...without(state.filter, ["right", "wrong", "differ"]), ...bothFilter(value) } });
    else if (name === "text") go({ filter: { ...state.filter, text: value.trim() ? [value.trim()] : [] } });
    else if (name) go({ filter: { ...without(state.filter, ["gold", "tagged"].includes(name) ? ["pairing"] : []), [name]: value ? value.split(",") : [] } });
    if (name === "text") look().then(() => draw(state));
  };
  find(".clear").onclick = () => go({ filter: {} });
  find(".hide").onclick = hideText;
  find(".keys").onclick = () => help();
  addEventListener("hashchange", () => { restore(); });
  addEventListener("popstate", () => { restore(); });
  addEventListener("keydown", pressed);
}

const without = (filter, names) => Object.fromEntries(Object.entries(filter).filter(([name]) => !names.includes(name)));

// --- Keys ---

const KEYS = {
  j: ["Next dialogue", () => move(1)],
  k: ["Previous dialogue", () => move(-1)],
  ArrowRight: ["Next turn", () => turnBy(1)],
  ArrowLeft: ["Previous turn", () => turnBy(-1)],
  n: ["Next disagreement", () => disagree(1)],
  p: ["Previous disagreement", () => disagree(-1)],
  s: ["Choose systems", () => control("a").focus()],
  f: ["Filter", () => { find(".narrow").open = true; control("gold").focus(); }],
  c: ["Clear filters", () => go({ filter: {} })],
  h: ["Hide all text", () => hideText()],
  Escape: ["Back to all dialogues", () => state.dialogue >= 0 && go({ dialogue: -1, row: -1 })],
  "?": ["Keys and marks", () => help()],
};
let keysOn = true;

function pressed(event) {
  const writing = event.target.closest?.("input, select, textarea, [contenteditable], dialog");
  if (!keysOn || !state || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (writing && !(event.key === "Escape" && writing.matches("select, input"))) return;
  if (writing) { writing.blur(); return; }
  const action = KEYS[event.key];
  // In the list, arrows scroll.
  if (!action || (event.key.startsWith("Arrow") && state.dialogue < 0)) return;
  event.preventDefault();
  action[1]();
}

function help() {
  const box = find(".help");
  const names = { ArrowRight: "→", ArrowLeft: "←", Escape: "Esc" };
  const item = (mark, told) => made("li", {}, mark, ` ${told}`);
  const on = made("input", { type: "checkbox", checked: keysOn });
  on.onchange = () => { keysOn = on.checked; };
  const close = made("button", { type: "button" }, "Close");
  close.onclick = () => box.close();
  const types = [...new Set(model.cells.slice(2, model.none).map(c => c.slice(8).replace(/_[a-z]+$/, "")))];
  box.replaceChildren(
    made("h2", {}, "Keys"),
    made("dl", { class: "key-list" }, ...Object.entries(KEYS).map(([key, [told]]) => made("div", {}, made("dt", {}, made("kbd", {}, names[key] ?? key)), made("dd", {}, told)))),
    made("p", {}, made("label", {}, on, " Single keys do this")),
    made("h2", {}, "Marks"),
    made("ul", { class: "mark-list" },
      item(labelMark("alert_ongoing"), "alert, ongoing"), item(labelMark("alert_past"), "alert, past"),
      ...types.map(type => item(labelMark(`confirm_${type}_ongoing`), `confirm ${type}, ongoing`)),
      item(labelMark(`confirm_${types[0]}_past`), "confirm, past: hollow")),
    made("h3", {}, "What became of a tag"),
    made("ul", { class: "mark-list" },
      item(labelMark("alert_ongoing", "correct"), "correct"), item(labelMark("alert_ongoing", "early"), "too early: gold later"),
      item(labelMark("alert_ongoing", "late"), "too late or repeated: gold before"), item(labelMark("alert_ongoing", "swapped"), "in place of another label"),
      item(labelMark("alert_ongoing", "unfounded"), "unfounded: nowhere gold"), item(labelMark("alert_ongoing", "missed"), "a gold label that was missed")),
    made("h3", {}, "Answers"),
    made("ul", { class: "mark-list" }, item(stateMark("none"), "none: no label"), item(stateMark("unparsed"), "unparsed: no tag can be read"),
      item(stateMark("refused"), "refused"), item(stateMark("failed"), "failed: no answer came"), item(stateMark("not asked"), "nothing: not asked")),
    close);
  box.showModal();
}

// --- Start ---

function restore() {
  const next = parseState(location.hash);
  if (state && formatState(next) === formatState(state)) return;
  complain(next.unknown.length ? `The address names what is not here: ${next.unknown.join(", ")}.` : "");
  const before = state;
  if (before && String(before.filter.text ?? "") !== String(next.filter.text ?? "")) {
    state = next;
    look().then(() => draw(next));
  } else draw(next);
}

// How many turns are behind an address, for tests and for those who count.
function count(hash) {
  const asked = parseState(hash);
  const { pairs, turns, dialogues, hits } = evaluate(asked.filter, asked.systems, null);
  return { pairs, turns, dialogues, unknown: asked.unknown, rows: [...hits.keys()].filter(turn => hits[turn]) };
}

window.cradleExplorer = { receive, count };
awaited("core").promise.then(core => {
  model = unpack(core);
  restore();
  listen();
  root.dataset.ready = "yes";
}).catch(problem => { complain(problem.message); throw problem; });

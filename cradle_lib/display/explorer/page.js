// The page: navigation, and one function that draws the state in the address.

let state;
let found;
let shown = [];
let table;
// For each dialogue whether it contains the search text, and its value when the list was drawn.
let matching = null;
let drawnFor = null;

const announce = message => { find(".announcement").textContent = message; };

function showProblem(message) {
  find(".problem").textContent = message;
  find(".problem").hidden = !message;
}

// Changes the state; the browser's back button restores the previous one.
function go(change, { focus = "" } = {}) {
  const next = { ...state, ...change };
  const address = formatState(next);
  showProblem("");
  const opens = next.dialogue !== state.dialogue || next.filter !== state.filter;
  if (address !== location.hash) history[opens ? "pushState" : "replaceState"](null, "", address);
  draw(next, focus);
}

function draw(next, focus = "") {
  const before = state;
  state = next;
  const wanted = text.shown ? (state.filter.text?.[0] ?? "").toLowerCase() : "";
  if (wanted !== text.wanted) searchText(wanted).catch(problem => showProblem(problem.message));
  const same = before && found && formatState({ ...before, dialogue: -1 }) === formatState({ ...next, dialogue: -1 });
  if (!same || drawnFor !== matching) {
    found = evaluate(state.filter, state.systems, matching);
    shown = ordered(found, state);
    drawnFor = matching;
    fillControls();
    table = null;
  }
  const open = state.dialogue >= 0;
  // Makes room for the dialogue.
  if (open && !(before?.dialogue >= 0)) find(".narrow").open = false;
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
  showCount();
}

const n = number => number.toLocaleString("en");
const plural = (number, word) => `${n(number)} ${word}${number === 1 ? "" : "s"}`;

function showCount() {
  const filtered = Object.values(state.filter).some(values => values?.length);
  const turns = filtered
    ? `${n(found.turns)} of ${plural(model.turns, "turn")}, ${n(found.dialogues)} of ${plural(model.dialogues.length, "dialogue")}`
    : `${plural(found.turns, "turn")} in ${plural(found.dialogues, "dialogue")}`;
  const what = state.filter.category && !state.filter.category.includes("right") ? "error" : "pair of gold label and prediction";
  const pairs = what === "error" ? plural(found.pairs, what) : `${n(found.pairs)} ${found.pairs === 1 ? what : "pairs of gold label and prediction"}`;
  const count = found.byPair ? `${pairs} (${turns}).` : `${turns}.`;
  const only = state.filter.among ? ` Only ${plural(state.filter.among.length, "turn")} that the address names.` : "";
  const waits = state.filter.text?.length && !text.shown ? " The text is searched once it is shown." : "";
  const description = text.wanted && !matching ? "Searching the text." : count + only + waits;
  if (find(".count").textContent !== description) find(".count").textContent = description;
  find(".clear").hidden = !filtered;
}

// --- One dialogue ---

async function drawDialogue(before, focus) {
  const { dialogue, row } = state;
  const key = formatState(state);
  const lines = text.shown ? await loadText(dialogue).catch(problem => showProblem(problem.message)) : null;
  if (formatState(state) !== key) return;
  const differing = disagreements(dialogue, state.systems);
  const about = ["scenario", "timing"].map(name => aboutOf(dialogue, name)).filter(Boolean);
  const button = (label, action, keys) => {
    const made = create("button", { type: "button", "aria-keyshortcuts": keys }, label);
    made.onclick = action;
    return made;
  };
  const heading = create("h2", { tabindex: -1 }, model.dialogues[dialogue]);
  const labelTable = makeLabelTable(state, found, go);
  const scroller = create("div", { class: "label-table-box", tabindex: 0, role: "group", "aria-label": "Labels by turn" }, labelTable);
  const left = find(".label-table-box")?.scrollLeft ?? 0;
  const top = before?.dialogue === dialogue ? find(".transcript")?.scrollTop ?? 0 : 0;
  const script = transcript(state, found, lines, go);
  find("section.dialogue").replaceChildren(
    create("div", { class: "bar" }, button("All dialogues", () => go({ dialogue: -1, row: -1 }), "Escape"),
      button("Previous", () => move(-1), "k"), button("Next", () => move(1), "j"), button(`Next ${DISAGREEMENT()}`, () => disagree(1), "n")),
    heading,
    create("p", { class: "about-dialogue" }, [...about, plural(lengthOf(dialogue), "user turn"), plural(differing.length, DISAGREEMENT()), placeText(dialogue)].filter(Boolean).join(", ")),
    rowChooser(state, labelTable), scroller,
    ...(root.dataset.text === "yes" && !text.shown ? [gate(() => showText(true))] : []),
    create("div", { class: "reading" }, script, create("div", { class: "side" }, turnPanel(state, lines), ...(lines ? [helpLines()] : []))));
  scroller.scrollLeft = left;
  script.scrollTop = top;
  follow(scroller, labelTable, script);
  if (before?.dialogue !== dialogue) heading.focus({ preventScroll: Boolean(focus) });
  else if (focus === "text") script.focus({ preventScroll: true });
  else if (focus === "turn") labelTable.querySelector("th.chosen button")?.focus({ preventScroll: true });
  const turn = turnOf(dialogue, row);
  announce(`${before?.dialogue !== dialogue ? `Dialogue ${model.dialogues[dialogue]}. ` : ""}Turn ${row + 1}. ${model.labelled ? `${GOLD} ${goldText(model.rowGold[at(dialogue, row)])}. ` : ""}`
    + (turn < 0 ? "" : state.systems.map(i => `${model.systems[i].name}: ${systemText(model.systems[i], turn).join("; ")}`).join(". ")));
}

function placeText(dialogue) {
  const place = shown.indexOf(dialogue);
  return place < 0 ? "does not fit the filters" : `${n(place + 1)} of ${n(shown.length)} that fit`;
}

// Scrolls the table and the transcript to the chosen turn, without scrolling the page.
function follow(scroller, labelTable, script) {
  const column = labelTable.querySelector("th.chosen");
  const stub = labelTable.querySelector("tbody th").offsetWidth;
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
  if (next === undefined) announce(step > 0 ? "This is the last dialogue that fits." : "This is the first dialogue that fits.");
  else go({ dialogue: next, row: -1 });
}

function turnBy(step) {
  const across = columnsOf(state.dialogue);
  const next = step > 0 ? across.find(row => row > state.row) : across.findLast(row => row < state.row);
  if (next !== undefined) go({ row: next }, { focus: "turn" });
}

// Goes to the next or previous disagreement, in this dialogue or in another.
function disagree(step) {
  if (state.dialogue >= 0) {
    const rows = disagreements(state.dialogue, state.systems).map(rowOf);
    const next = step > 0 ? rows.find(row => row > state.row) : rows.findLast(row => row < state.row);
    if (next !== undefined) return go({ row: next }, { focus: "turn" });
  }
  const place = shown.indexOf(state.dialogue);
  const rest = step > 0 ? shown.slice(place + 1) : shown.slice(0, Math.max(0, place)).reverse();
  const dialogue = rest.find(d => disagreements(d, state.systems).length);
  if (dialogue === undefined) return announce(`No other ${DISAGREEMENT()}.`);
  const rows = disagreements(dialogue, state.systems).map(rowOf);
  return go({ dialogue, row: step > 0 ? rows[0] : rows.at(-1) });
}

// --- Text ---

function showText(shown) {
  text.shown = shown;
  find(".hide").hidden = !shown;
  control("text").disabled = !shown;
  draw(state, shown ? "text" : "");
  if (!shown) announce("All text is hidden.");
}

// Finds the dialogues that contain a text. Called only after the reader has chosen to see text.
async function searchText(wanted) {
  text.wanted = wanted;
  matching = null;
  if (!wanted) return;
  const fits = new Uint8Array(model.dialogues.length);
  for (let d = 0; d < fits.length; d++)
    if ((await loadText(d)).some(([line]) => line.toLowerCase().includes(wanted))) fits[d] = 1;
  if (wanted !== text.wanted) return;
  matching = fits;
  draw(state);
}

// --- Start ---

function restore() {
  if (PEOPLE !== annotatorsShown()) return location.reload();
  const next = parseState(location.hash);
  showProblem(next.unknown.length ? `Unknown in this address: ${next.unknown.join(", ")}.` : "");
  if (!state || formatState(next) !== formatState(state)) draw(next);
}

// Draws the legend above the list, and a link for keyboards that skips the book's navigation.
function explain() {
  const legend = [
    [labelMark("alert_ongoing"), "alert"], [labelMark("confirm_SH_ongoing"), "confirm"], [labelMark("confirm_SH_past"), "hollow: past"],
    ...(model.labelled ? [[labelMark("alert_ongoing", "correct"), "correct"], [labelMark("alert_ongoing", "unfounded"), "wrong"], [labelMark("alert_ongoing", "missed"), "missed"]] : []),
  ];
  const lines = model.labelled ? `First line ${GOLD.toLowerCase()}, then each ${WHO.toLowerCase()}:` : `One line for each ${WHO.toLowerCase()}; there are no gold labels:`;
  find(".legend").replaceChildren(lines, ...legend.map(([mark, description]) => create("span", {}, mark, ` ${description}`)));
  for (const each of root.querySelectorAll(".of-who")) each.textContent = WHO;
  for (const each of root.querySelectorAll(".of-gold")) each.textContent = GOLD;
  for (const name of ["gold", "category", "gold_order", "systems_wrong"]) control(name).closest("label").hidden = !model.labelled;
  find(".who").hidden = root.dataset.people !== "yes";
  control("who").value = PEOPLE ? "annotators" : "";
  const skip = create("a", { href: "#cradle-explorer", class: "skip-explorer" }, "Skip to the explorer");
  skip.onclick = event => { event.preventDefault(); find(".filters label:not([hidden]) select").focus(); };
  (document.getElementById("pst-skip-link") ?? document.body).prepend(skip);
}

// Counts the pairs, turns and dialogues of an address, for tests.
function count(hash) {
  const asked = parseState(hash);
  const { pairs, turns, dialogues, hits } = evaluate(asked.filter, asked.systems, null);
  return { pairs, turns, dialogues, unknown: asked.unknown, rows: [...hits.keys()].filter(turn => hits[turn]) };
}

window.cradleExplorer = { receive, count };
load("core").then(core => {
  model = unpack(core);
  explain();
  restore();
  listen();
  root.dataset.ready = "yes";
  // Links from other pages go to certain turns, so the page scrolls past its heading.
  if (location.hash.length > 1) root.scrollIntoView({ behavior: "instant" });
}).catch(problem => { showProblem(problem.message); throw problem; });

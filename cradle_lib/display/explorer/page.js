// The page: navigation, and one function that draws the state in the address.

let state;
let result;
let shown = [];
let table;
// For each dialogue, whether it contains the search text; and the value used for the drawn list.
let matching = null;
let drawnMatching = null;

const announce = message => { find(".announcement").textContent = message; };

function showProblem(message) {
  find(".problem").textContent = message;
  find(".problem").hidden = !message;
}

// Changes the state; the browser's back button restores the previous one.
function update(change, { focus = "" } = {}) {
  const next = { ...state, ...change };
  const address = formatState(next);
  showProblem("");
  const opens = next.dialogue !== state.dialogue || next.filter !== state.filter;
  if (address !== location.hash && !model.single) history[opens ? "pushState" : "replaceState"](null, "", address);
  draw(next, focus);
}

function draw(next, focus = "") {
  const previous = state;
  state = next;
  const wanted = text.shown ? folded(state.filter.text?.[0] ?? "") : "";
  if (wanted !== text.wanted) searchText(wanted).catch(problem => showProblem(problem.message));
  const unchanged = previous && result && formatState({ ...previous, dialogue: -1 }) === formatState({ ...next, dialogue: -1 });
  if (!unchanged || drawnMatching !== matching) {
    result = evaluate(state.filter, state.systems, matching);
    shown = sortedDialogues(result, state);
    drawnMatching = matching;
    fillControls();
    table = null;
  }
  const open = state.dialogue >= 0;
  // Close the filters to make room for the dialogue.
  if (open && !(previous?.dialogue >= 0)) find(".narrow").open = false;
  root.classList.toggle("plays", open && state.play);
  find(".list").hidden = open;
  find("section.dialogue").hidden = !open;
  if (open) {
    if (state.row < 0) {
      state.row = state.play ? utterances(state.dialogue)[0] : firstRow(state.dialogue, result, state.systems);
      if (!model.single) history.replaceState(null, "", formatState(state));
    }
    drawDialogue(previous, focus);
  } else {
    table ??= makeListTable(state, result, shown, update);
    if (previous?.dialogue >= 0) table.reveal(previous.dialogue);
  }
  showCount();
}

const n = number => number.toLocaleString("en");
const plural = (number, word) => `${n(number)} ${word}${number === 1 ? "" : "s"}`;

function showCount() {
  const filtered = Object.values(state.filter).some(values => values?.length);
  const turns = filtered
    ? `${n(result.turns)} of ${plural(model.turns, "turn")}, ${n(result.dialogues)} of ${plural(model.dialogues.length, "dialogue")}`
    : `${plural(result.turns, "turn")} in ${plural(result.dialogues, "dialogue")}`;
  const noun = state.filter.category && !state.filter.category.includes("right") ? "error" : "pair of gold label and prediction";
  const pairs = noun === "error" ? plural(result.pairs, noun) : `${n(result.pairs)} ${result.pairs === 1 ? noun : "pairs of gold label and prediction"}`;
  const count = result.byPair ? `${pairs} (${turns}).` : `${turns}.`;
  const turnNote = state.filter.among ? ` Only ${plural(state.filter.among.length, "turn")} that the address names.` : "";
  const textNote = state.filter.text?.length && !text.shown ? " The text is searched once it is shown." : "";
  const description = text.wanted && !matching ? "Searching the text." : count + turnNote + textNote;
  if (find(".count").textContent !== description) find(".count").textContent = description;
  find(".filter-chips").replaceChildren(...filterChips());
  find(".clear").hidden = !filtered;
}

// --- One dialogue ---

async function drawDialogue(previous, focus) {
  const { dialogue, row } = state;
  const key = formatState(state);
  const lines = text.shown ? await loadText(dialogue).catch(problem => showProblem(problem.message)) : null;
  if (formatState(state) !== key) return;
  const differing = disagreements(dialogue, state.systems);
  const about = ["scenario", "timing"].map(name => aboutOf(dialogue, name)).filter(Boolean);
  const button = (label, action, keys) => makeButton(label, action, { "aria-keyshortcuts": keys });
  const heading = create("h2", { tabindex: -1 }, model.dialogues[dialogue]);
  const labelTable = makeLabelTable(state, result, update);
  const scroller = create("div", { class: "label-table-box", tabindex: 0, role: "group", "aria-label": "Labels by turn" }, labelTable);
  const left = find(".label-table-box")?.scrollLeft ?? 0;
  const top = previous?.dialogue === dialogue ? find(".transcript")?.scrollTop ?? 0 : 0;
  const transcriptBox = transcript(state, result, lines, update);
  find("section.dialogue").replaceChildren(
    create("div", { class: "bar" }, button("All dialogues", () => update({ dialogue: -1, row: -1 }), "Escape"),
      button("Previous", () => stepDialogue(-1), "k"), button("Next", () => stepDialogue(1), "j"), button(`Next ${DISAGREEMENT()}`, () => goToDisagreement(1), "n"),
      ...(state.play ? [] : [button("Play turn by turn", togglePlay, "t")])),
    heading,
    create("p", { class: "about-dialogue" }, [...about, plural(lengthOf(dialogue), "user turn"), plural(differing.length, DISAGREEMENT()), positionText(dialogue)].filter(Boolean).join(", ")),
    rowChooser(state, labelTable), scroller,
    ...(root.dataset.text === "yes" && !text.shown ? [contentWarning(() => showText(true))] : []),
    ...(state.play ? [player(state)] : []),
    create("div", { class: state.play ? "reading playing" : "reading" }, transcriptBox,
      create("div", { class: "side" }, ...(state.play ? [] : [turnPanel(state, lines)]), ...(lines ? [helpLines()] : []))));
  scroller.scrollLeft = left;
  transcriptBox.scrollTop = top;
  scrollToChosen(scroller, labelTable, transcriptBox);
  if (model.single && !previous) return;
  if (previous?.dialogue !== dialogue) heading.focus({ preventScroll: Boolean(focus) });
  else if (focus === "text") transcriptBox.focus({ preventScroll: true });
  else if (focus === "turn") labelTable.querySelector("th.chosen button")?.focus({ preventScroll: true });
  else if (focus === "play") find(".player .toggle")?.focus({ preventScroll: true });
  if (state.play) return announce(turnSummary(state));
  const turn = turnOf(dialogue, row);
  return announce(`${previous?.dialogue !== dialogue ? `Dialogue ${model.dialogues[dialogue]}. ` : ""}Turn ${row + 1}. ${hasGold(dialogue) ? `${GOLD} ${goldText(model.rowGold[rowIndex(dialogue, row)])}. ` : ""}`
    + (turn < 0 ? "" : state.systems.map(i => `${model.systems[i].name}: ${systemText(model.systems[i], turn).join("; ")}`).join(". ")));
}

function positionText(dialogue) {
  const index = shown.indexOf(dialogue);
  return index < 0 ? "does not fit the filters" : `${n(index + 1)} of ${n(shown.length)} that fit`;
}

// Scrolls the table and the transcript to the chosen turn, without scrolling the page.
function scrollToChosen(scroller, labelTable, transcriptBox) {
  const column = labelTable.querySelector("th.chosen");
  const headerWidth = labelTable.querySelector("tbody th").offsetWidth;
  if (column) {
    const [from, to] = [column.offsetLeft - headerWidth, column.offsetLeft + column.offsetWidth];
    if (from < scroller.scrollLeft) scroller.scrollLeft = from;
    if (to > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = to - scroller.clientWidth;
  }
  const item = transcriptBox.querySelector("li.chosen");
  if (item) {
    const [from, to] = [item.offsetTop, item.offsetTop + item.offsetHeight];
    if (from < transcriptBox.scrollTop + 8 || to > transcriptBox.scrollTop + transcriptBox.clientHeight) transcriptBox.scrollTop = from - transcriptBox.clientHeight / 4;
  }
}

function stepDialogue(step) {
  const index = shown.indexOf(state.dialogue);
  const next = index < 0 ? (step > 0 ? shown.find(d => d > state.dialogue) ?? shown[0] : shown.findLast(d => d < state.dialogue) ?? shown.at(-1)) : shown[index + step];
  if (next === undefined) announce(step > 0 ? "This is the last dialogue that fits." : "This is the first dialogue that fits.");
  else update({ dialogue: next, row: -1 });
}

function stepTurn(step) {
  if (state.play) { pause(); return void playStep(step); }
  const rows = columnsOf(state.dialogue);
  const next = rowBeside(rows, state.row, step);
  if (next !== undefined) update({ row: next }, { focus: "turn" });
}

// Goes to the next or previous disagreement, in this dialogue or in another.
function goToDisagreement(step) {
  if (state.dialogue >= 0) {
    const rows = disagreements(state.dialogue, state.systems).map(rowOf);
    const next = rowBeside(rows, state.row, step);
    if (next !== undefined) return update({ row: next }, { focus: "turn" });
  }
  const index = shown.indexOf(state.dialogue);
  const candidates = step > 0 ? shown.slice(index + 1) : shown.slice(0, Math.max(0, index)).reverse();
  const dialogue = candidates.find(d => disagreements(d, state.systems).length);
  if (dialogue === undefined) return announce(`No other ${DISAGREEMENT()}.`);
  const rows = disagreements(dialogue, state.systems).map(rowOf);
  return update({ dialogue, row: step > 0 ? rows[0] : rows.at(-1) });
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
    if ((await loadText(d)).some(([line]) => folded(line).includes(wanted))) fits[d] = 1;
  if (wanted !== text.wanted) return;
  matching = fits;
  draw(state);
}

// --- Start ---

function restore() {
  // On another page, the address names a section of that page.
  if (model.single && state) return;
  if (PEOPLE !== annotatorsShown()) return location.reload();
  const next = parseState(location.hash);
  showProblem(next.unknown.length ? `Unknown in this address: ${next.unknown.join(", ")}.` : "");
  if (!state || formatState(next) !== formatState(state)) draw(next);
}

// Draws the legend above the list, and a link for keyboards that skips the book's navigation.
function drawLegend() {
  const legend = [
    [labelMark("alert_ongoing"), "alert"], ...crisisTypes().map(type => [labelMark(`confirm_${type}_ongoing`), words(type)]),
    [labelMark("alert_past"), "hollow: past"],
    ...(model.labelled ? [[labelMark("alert_ongoing", "correct"), "correct"], [labelMark("alert_ongoing", "unfounded"), "wrong"], [labelMark("alert_ongoing", "missed"), "missed"]] : []),
  ];
  const lines = model.labelled ? `First line ${GOLD.toLowerCase()}, then each ${WHO.toLowerCase()}:` : `One line for each ${WHO.toLowerCase()}; there are no gold labels:`;
  find(".legend").replaceChildren(lines, ...legend.map(([mark, description]) => create("span", {}, mark, ` ${description}`)));
  for (const element of root.querySelectorAll(".of-who")) element.textContent = WHO;
  for (const element of root.querySelectorAll(".of-gold")) element.textContent = GOLD;
  for (const name of ["gold", "category", "gold_order", "systems_wrong"]) control(name).closest("label").hidden = !model.labelled;
  find(".who").hidden = root.dataset.people !== "yes";
  control("who").value = PEOPLE ? "annotators" : "";
  const skip = create("a", { href: "#cradle-explorer", class: "skip-explorer" }, "Skip to the explorer");
  skip.onclick = event => { event.preventDefault(); find(".filters label:not([hidden]) select").focus(); };
  (document.getElementById("pst-skip-link") ?? document.body).prepend(skip);
}

// Counts the pairs, turns and dialogues of an address, for tests.
function count(hash) {
  const parsed = parseState(hash);
  const { pairs, turns, dialogues, hits } = evaluate(parsed.filter, parsed.systems, null);
  return { pairs, turns, dialogues, unknown: parsed.unknown, rows: [...hits.keys()].filter(turn => hits[turn]) };
}

window.cradleExplorer = { receive, count, turnSummary };
load("core").then(core => {
  model = unpack(core);
  drawLegend();
  restore();
  addListeners();
  root.dataset.ready = "yes";
  // Links from other pages go to certain turns, so the page scrolls past its heading.
  if (location.hash.length > 1 && !model.single) root.scrollIntoView({ behavior: "instant" });
}).catch(problem => { showProblem(problem.message); throw problem; });

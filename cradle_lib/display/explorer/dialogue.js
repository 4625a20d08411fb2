// One dialogue: a lane for gold and one for each system, as a real table, and the transcript.

let text = { shown: false, wanted: "" };

const rowsOf = dialogue => Array.from({ length: model.rowStart[dialogue + 1] - model.rowStart[dialogue] }, (_, i) => i);
const at = (dialogue, row) => model.rowStart[dialogue] + row;

// Rows with a column: those that a system is asked about, and others that have a gold label.
const columnsOf = dialogue => rowsOf(dialogue).filter(row => model.speaker[at(dialogue, row)] === 1 || model.rowGold[at(dialogue, row)]);

// The user turn that a row is, counted through the corpus; -1 for another row.
function turnOf(dialogue, row) {
  const own = at(dialogue, row);
  for (let turn = model.turnStart[dialogue]; turn < model.turnStart[dialogue + 1]; turn++) if (model.turnRow[turn] === own) return turn;
  return -1;
}

const rowOf = turn => model.turnRow[turn] - model.rowStart[model.turnDialogue[turn]];

// Where a reader who opens a dialogue looks first.
function firstRow(dialogue, found, systems) {
  const turns = Array.from({ length: lengthOf(dialogue) }, (_, i) => model.turnStart[dialogue] + i);
  const turn = turns.find(t => found.byPair && found.hits[t]) ?? disagreements(dialogue, systems)[0] ?? turns.find(t => model.gold[t]) ?? turns[0];
  return turn === undefined ? 0 : rowOf(turn);
}

function lanesOf(state, found, go) {
  const { dialogue } = state;
  const across = columnsOf(dialogue);
  const heads = across.map(row => {
    const turn = turnOf(dialogue, row);
    const hit = turn >= 0 && found.byPair && found.hits[turn];
    const button = made("button", { type: "button", tabindex: row === state.row ? 0 : -1, "aria-pressed": row === state.row ? "true" : "false" },
      hidden("Turn "), String(row + 1), ...(hit ? [hidden(", fits the filter")] : []));
    button.onclick = () => go({ row }, { focus: "turn" });
    return made("th", { scope: "col", class: `${row === state.row ? "chosen" : ""}${hit ? " hit" : ""}` }, button);
  });
  const lane = (name, kind, cells) => made("tr", { class: kind }, made("th", { scope: "row" }, name), ...cells);
  const cell = (row, marks, told) => {
    const box = made("td", { class: row === state.row ? "chosen" : "", title: told }, made("span", { class: "marks" }, ...marks), hidden(told));
    box.onclick = () => go({ row });
    return box;
  };
  const gold = model.labelled ? [lane(GOLD, "gold", across.map(row => {
    const mask = model.rowGold[at(dialogue, row)];
    return cell(row, marksOfGold(mask), toldOfGold(mask));
  }))] : [];
  const systems = state.systems.map(index => lane(model.systems[index].name, "system", across.map(row => {
    const turn = turnOf(dialogue, row);
    if (turn < 0) return cell(row, [stateMark("not asked")], "not asked");
    return cell(row, marksOfSystem(model.systems[index], turn), toldOfSystem(model.systems[index], turn).join("; "));
  })));
  return made("table", { class: "lanes" },
    made("caption", { class: "visually-hidden" }, `${model.labelled ? `${GOLD} labels and predictions` : "Predictions"} of dialogue ${model.dialogues[dialogue]}, turn by turn`),
    made("thead", {}, made("tr", {}, made("td", {}, "Turn"), ...heads)),
    made("tbody", {}, ...gold, ...systems));
}

// On a phone one lane is shown at a time.
function laneChooser(state, table) {
  const names = [...(model.labelled ? [GOLD] : []), ...state.systems.map(index => model.systems[index].name)];
  const select = made("select", {}, ...names.map((name, i) => made("option", { value: i }, name)));
  const show = () => table.querySelectorAll("tbody tr").forEach((row, i) => row.classList.toggle("shown", i === Number(select.value)));
  select.value = String(Math.min(laneChooser.last ?? 1, names.length - 1));
  select.onchange = () => { laneChooser.last = Number(select.value); show(); };
  show();
  return made("p", { class: "lane-chooser" }, made("label", {}, "Lane ", select));
}

const speakerOf = (dialogue, row) => (model.speaker[at(dialogue, row)] === 0 ? "Listener" : "User");
const utterances = dialogue => rowsOf(dialogue).filter(row => model.speaker[at(dialogue, row)] !== 2);

// Where each passage stands that is looked for.
function marked(line, wanted) {
  if (!wanted) return [line];
  const parts = [];
  const lower = line.toLowerCase();
  let from = 0;
  for (let place; (place = lower.indexOf(wanted, from)) >= 0 && lower.length === line.length; from = place + wanted.length)
    parts.push(line.slice(from, place), made("mark", {}, line.slice(place, place + wanted.length)));
  return [...parts, line.slice(from)];
}

function transcript(state, found, lines, go) {
  const items = utterances(state.dialogue).map((row, i) => {
    const turn = turnOf(state.dialogue, row);
    const line = lines ? lines[i][0] : null;
    const item = made("li", { value: row + 1, "data-row": row, class: `${turn >= 0 ? "user" : "listener"}${row === state.row ? " chosen" : ""}` },
      made("strong", {}, speakerOf(state.dialogue, row)),
      line === null ? made("span", { class: "no-text" }, "Text hidden") : made("p", {}, ...marked(line, text.wanted)));
    const marks = turn >= 0 && model.gold[turn] ? marksOfGold(model.gold[turn]) : [];
    if (marks.length) item.append(made("span", { class: "marks" }, ...marks, made("small", {}, toldOfGold(model.gold[turn]))));
    item.onclick = () => { if (turn >= 0 && !String(getSelection())) go({ row }); };
    return item;
  });
  return made("ol", { class: "transcript", tabindex: 0, "aria-label": "Transcript" }, ...items);
}

// Help lines stand beside the text, and before it.
function helpLines() {
  const lines = document.querySelector("footer .cradle-help")?.cloneNode(true).childNodes;
  const open = !matchMedia("(max-width: 700px)").matches;
  return made("details", { class: "cradle-help", open }, made("summary", {}, "Where to find help"),
    ...(lines ?? [made("a", { href: root.dataset.help }, "Help lines")]));
}

// The warning stands before any text, at every visit.
function gate(open) {
  const button = made("button", { type: "button", class: "open-text" }, "Show the text on this visit");
  button.onclick = open;
  return made("div", { class: "gate", role: "note" },
    made("div", {},
      made("p", {}, made("strong", {}, "Content warning. "), "These dialogues talk about suicide, self-harm, abuse and violence, without detail. The marks say what was predicted; nobody needs the text to read them."),
      button),
    helpLines());
}

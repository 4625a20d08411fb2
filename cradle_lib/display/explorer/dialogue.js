// One dialogue: a table with a row for gold and one for each system, and the transcript.

let text = { shown: false, wanted: "" };

const rowsOf = dialogue => Array.from({ length: model.rowStart[dialogue + 1] - model.rowStart[dialogue] }, (_, i) => i);
const rowIndex = (dialogue, row) => model.rowStart[dialogue] + row;

// Rows of a dialogue that are columns of the table: user turns, and other rows with a gold label.
const columnsOf = dialogue => rowsOf(dialogue).filter(row => model.speaker[rowIndex(dialogue, row)] === 1 || model.rowGold[rowIndex(dialogue, row)]);

// The corpus index of a row's user turn; -1 if the row is not a user turn.
function turnOf(dialogue, row) {
  const index = rowIndex(dialogue, row);
  return userTurns(dialogue).find(turn => model.turnRow[turn] === index) ?? -1;
}

// The next or previous one of some rows in ascending order.
const rowBeside = (rows, row, step) => (step > 0 ? rows.find(other => other > row) : rows.findLast(other => other < row));

const rowOf = turn => model.turnRow[turn] - model.rowStart[model.turnDialogue[turn]];

// The row that is selected when a dialogue is opened.
function firstRow(dialogue, result, systems) {
  const turns = userTurns(dialogue);
  const turn = turns.find(t => result.byPair && result.hits[t]) ?? disagreements(dialogue, systems)[0] ?? turns.find(t => model.gold[t]) ?? turns[0];
  return turn === undefined ? 0 : rowOf(turn);
}

// The class of turns that have not appeared while the dialogue is played.
const laterThan = (state, row) => (state.play && row > state.row ? " later" : "");

function makeLabelTable(state, result, update) {
  const { dialogue } = state;
  const rows = columnsOf(dialogue);
  const headings = rows.map(row => {
    const turn = turnOf(dialogue, row);
    const hit = turn >= 0 && result.byPair && result.hits[turn];
    const button = create("button", { type: "button", tabindex: row === state.row ? 0 : -1, "aria-pressed": row === state.row ? "true" : "false" },
      hidden("Turn "), String(row + 1), ...(hit ? [hidden(", fits the filter")] : []));
    button.onclick = () => update({ row }, { focus: "turn" });
    return create("th", { scope: "col", class: `${row === state.row ? "chosen" : ""}${hit ? " hit" : ""}${laterThan(state, row)}` }, button);
  });
  const tableRow = (name, kind, cells) => create("tr", { class: kind }, create("th", { scope: "row" }, name), ...cells);
  const cell = (row, marks, description) => {
    const box = create("td", { class: `${row === state.row ? "chosen" : ""}${laterThan(state, row)}`, title: description }, create("span", { class: "marks" }, ...marks), hidden(description));
    box.onclick = () => update({ row });
    return box;
  };
  const gold = hasGold(dialogue) ? [tableRow(GOLD, "gold", rows.map(row => {
    const mask = model.rowGold[rowIndex(dialogue, row)];
    return cell(row, marksOfGold(mask), goldText(mask));
  }))] : [];
  const systems = state.systems.map(index => tableRow(model.systems[index].name, "system", rows.map(row => {
    const turn = turnOf(dialogue, row);
    if (turn < 0) return cell(row, [stateMark("not asked")], "not asked");
    return cell(row, marksOfSystem(model.systems[index], turn), systemText(model.systems[index], turn).join("; "));
  })));
  return create("table", { class: "label-table" },
    create("caption", { class: "visually-hidden" }, `${hasGold(dialogue) ? `${GOLD} labels and predictions` : "Predictions"} of dialogue ${model.dialogues[dialogue]}, turn by turn`),
    create("thead", {}, create("tr", {}, create("td", {}, "Turn"), ...headings)),
    create("tbody", {}, ...gold, ...systems));
}

// On a phone the table shows gold and one other row.
function rowChooser(state, table) {
  const names = state.systems.map(index => model.systems[index].name);
  const gold = hasGold(state.dialogue) ? 1 : 0;
  const select = create("select", {}, ...names.map((name, i) => create("option", { value: i }, name)));
  const show = () => table.querySelectorAll("tbody tr").forEach((row, i) => row.classList.toggle("shown", i < gold || i - gold === Number(select.value)));
  select.value = String(Math.min(rowChooser.last ?? 0, names.length - 1));
  select.onchange = () => { rowChooser.last = Number(select.value); show(); };
  show();
  return create("p", { class: "row-chooser" }, create("label", {}, "Row ", select));
}

const speakerOf = (dialogue, row) => (model.speaker[rowIndex(dialogue, row)] === 0 ? "Listener" : "User");
const utterances = dialogue => rowsOf(dialogue).filter(row => model.speaker[rowIndex(dialogue, row)] !== 2);

function transcript(state, result, lines, update) {
  const items = utterances(state.dialogue).filter(row => !laterThan(state, row)).map((row, i) => {
    const turn = turnOf(state.dialogue, row);
    const line = lines ? lines[i][0] : null;
    const item = create("li", { value: row + 1, "data-row": row, class: `${turn >= 0 ? "user" : "listener"}${row === state.row ? " chosen" : ""}` },
      create("strong", {}, speakerOf(state.dialogue, row)),
      line === null ? create("span", { class: "no-text" }, "Text hidden") : create("p", {}, ...markText(line, text.wanted)));
    const marks = turn >= 0 && model.gold[turn] ? marksOfGold(model.gold[turn]) : [];
    if (state.play && turn >= 0) item.append(turnChips(state, turn));
    else if (marks.length) item.append(create("span", { class: "marks" }, ...marks, create("small", {}, goldText(model.gold[turn]))));
    item.onclick = () => { if (turn >= 0 && !String(getSelection())) update({ row }); };
    return item;
  });
  return create("ol", { class: "transcript", tabindex: 0, "aria-label": "Transcript" }, ...items);
}

// Help lines, shown next to the text, and with the content warning.
function helpLines() {
  const lines = document.querySelector("footer .cradle-help")?.cloneNode(true).childNodes;
  const open = !matchMedia("(max-width: 700px)").matches;
  return create("details", { class: "cradle-help", open }, create("summary", {}, "Where to find help"),
    ...(lines ?? [create("a", { href: root.dataset.help }, "Help lines")]));
}

// The content warning, shown on every visit before any text.
function contentWarning(open) {
  return create("div", { class: "gate", role: "note" },
    create("div", {},
      create("p", {}, create("strong", {}, "Content warning. "), "These dialogues talk about suicide, self-harm, abuse and violence, without detail. The marks say what was predicted; nobody needs the text to read them."),
      makeButton("Show the text on this visit", open, { class: "open-text" })),
    helpLines());
}

// One turn, opened: why gold is what it is, and for each system what it wrote, how sure it was and
// what it had seen.

const numberOf = (dialogue, row) => `turn ${row + 1}`;

// Rows of a dialogue on which gold has a label.
const goldRows = (dialogue, label) => rowsOf(dialogue).filter(row => model.rowGold[at(dialogue, row)] & (1 << label));

function whyGold(dialogue, row) {
  const mask = model.rowGold[at(dialogue, row)];
  const before = model.cells.slice(0, model.none).map((cell, label) => [cell, goldRows(dialogue, label).filter(r => r < row)]).filter(([, rows]) => rows.length);
  const given = before.map(([cell, rows]) => `${cell} on ${numberOf(dialogue, rows[0])}`).join(", ");
  const told = [];
  if (mask) {
    const again = members(mask).filter(label => goldRows(dialogue, label)[0] < row).map(label => model.cells[label]);
    told.push(again.length ? `Given again: ${again.join(", ")}.` : "First time in this dialogue.");
  }
  if (given) told.push(`Given before: ${given}. A label is given only once per event.`);
  else if (!mask) told.push("No label before this turn either.");
  return told.join(" ");
}

// Where a tag that answers no gold label of its turn is gold, if anywhere.
function whyWrong(dialogue, row, predicted) {
  const rows = goldRows(dialogue, predicted);
  const earlier = rows.filter(r => r < row);
  const later = rows.filter(r => r > row);
  if (earlier.length) return `gold on ${numberOf(dialogue, earlier[0])}`;
  return later.length ? `gold on ${numberOf(dialogue, later[0])}` : "nowhere gold in this dialogue";
}

function verdicts(system, dialogue, row, turn) {
  const state = stateOf(system, turn);
  if (state === "not asked") return [made("p", {}, "Not asked about this dialogue.")];
  const list = made("ul", { class: "verdicts" });
  if (state !== "ok") list.append(made("li", {}, stateMark(state), ` ${state}: its answer gave no labels.`));
  const told = toldOfSystem(system, turn);
  if (state === "ok")
    pairsOf(system, turn).forEach(({ gold, predicted, category }, i) => {
      const why = model.labelled && gold === model.none && predicted < model.none ? ` (${whyWrong(dialogue, row, predicted)})` : "";
      const cell = model.cells[predicted < model.none ? predicted : gold];
      list.append(made("li", {}, cell === "none" ? stateMark("none") : labelMark(cell, outlineOf(category)), ` ${told[i]}${why}`));
    });
  return [list];
}

function sureness(choices) {
  const rows = choices.flatMap((fork, i) => Object.entries(fork).sort((a, b) => b[1] - a[1]).map(([branch, value], place) =>
    made("tr", { class: place ? "" : "first" }, made("td", {}, place ? "" : String(i + 1)), made("td", {}, made("code", {}, branch)),
      made("td", { class: "num" }, value.toFixed(3)), made("td", { class: "num" }, `${(100 * Math.exp(value)).toFixed(1)} %`))));
  return made("details", {}, made("summary", {}, "Log-probabilities at each fork"),
    made("div", { class: "scrolled", tabindex: 0, role: "group", "aria-label": "Log-probabilities" },
      made("table", { class: "forks" }, made("thead", {}, made("tr", {}, ...["Fork", "Branch", "Log-probability", "Probability"].map(t => made("th", { scope: "col" }, t)))), made("tbody", {}, ...rows))));
}

// The dialogue as the system saw it before this turn, line by line.
function historyLines(system, dialogue, row, lines) {
  const found = [];
  utterances(dialogue).forEach((r, i) => {
    if (r >= row) return;
    found.push(`${speakerOf(dialogue, r)}: ${lines[i].at(-1)}`);
    const turn = turnOf(dialogue, r);
    if (turn < 0 || system.history === "none") return;
    const mask = system.history === "gold" ? model.gold[turn] : system.tags[turn];
    found.push(`MODEL_TAG: ${mask ? members(mask).map(label => model.cells[label]).join("; ") : "none"}`);
  });
  return found;
}

const HISTORIES = { self: "its own tags", gold: "the gold tags", none: "no tags" };

function opened(system, dialogue, row, lines) {
  const turn = turnOf(dialogue, row);
  const block = made("section", { class: "of-system", "aria-label": system.name }, made("h4", {}, system.name), ...verdicts(system, dialogue, row, turn));
  if (stateOf(system, turn) === "not asked") return block;
  const later = made("div");
  block.append(later);
  answerOf(system, turn).then(({ answer, choices }) => {
    const parts = [];
    if (answer !== null && text.shown) parts.push(made("p", { class: "label" }, "Raw answer"), made("pre", { tabindex: 0, "aria-label": "Raw answer" }, answer));
    else if (answer !== null) parts.push(made("p", { class: "no-text" }, "The raw answer is hidden with the text."));
    if (choices.length) parts.push(sureness(choices));
    if (lines) {
      const seen = historyLines(system, dialogue, row, lines);
      parts.push(made("details", {}, made("summary", {}, `What it had seen: ${seen.length} lines with ${HISTORIES[system.history]}`),
        made("p", { class: "label" }, `Prompt ${system.prompt}`), made("pre", { tabindex: 0, "aria-label": "History" }, seen.join("\n") || "Nothing: this is its first turn.")));
    }
    later.replaceChildren(...parts);
  }, problem => later.replaceChildren(made("p", {}, problem.message)));
  return block;
}

function turnPanel(state, lines) {
  const { dialogue, row } = state;
  const turn = turnOf(dialogue, row);
  const mask = model.rowGold[at(dialogue, row)];
  const panel = made("div", { class: "turn", tabindex: 0, role: "group", "aria-label": `Turn ${row + 1}, opened` }, made("h3", {}, `Turn ${row + 1}`),
    ...(model.labelled ? [made("section", { class: "of-gold", "aria-label": GOLD }, made("h4", {}, GOLD),
      made("p", {}, ...marksOfGold(mask), ` ${toldOfGold(mask)}. ${whyGold(dialogue, row)}`))] : []));
  if (turn < 0) panel.append(made("p", {}, "No system is asked about this row."));
  else panel.append(...state.systems.map(index => opened(model.systems[index], dialogue, row, lines)));
  return panel;
}

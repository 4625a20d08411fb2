// Details of one turn: its gold labels, earlier gold labels, and for each system the verdicts, the
// raw answer, log-probabilities and the history in the prompt.

const numberOf = (dialogue, row) => `turn ${row + 1}`;

// Rows of a dialogue with a certain gold label.
const goldRows = (dialogue, label) => rowsOf(dialogue).filter(row => model.rowGold[rowIndex(dialogue, row)] & (1 << label));

function goldContext(dialogue, row) {
  const mask = model.rowGold[rowIndex(dialogue, row)];
  const earlier = model.cells.slice(0, model.none).map((cell, label) => [cell, goldRows(dialogue, label).filter(r => r < row)]).filter(([, rows]) => rows.length);
  const given = earlier.map(([cell, rows]) => `${cell} on ${numberOf(dialogue, rows[0])}`).join(", ");
  const description = [];
  if (mask) {
    const repeated = members(mask).filter(label => goldRows(dialogue, label)[0] < row).map(label => model.cells[label]);
    description.push(repeated.length ? `Given again: ${repeated.join(", ")}.` : "First time in this dialogue.");
  }
  if (given) description.push(`Given before: ${given}. A label is given only once per event.`);
  else if (!mask) description.push("No label before this turn either.");
  return description.join(" ");
}

// Says where a label that is a false positive on this turn is gold, if anywhere.
function falsePositiveContext(dialogue, row, predicted) {
  const rows = goldRows(dialogue, predicted);
  const earlier = rows.filter(r => r < row);
  const later = rows.filter(r => r > row);
  if (earlier.length) return `gold on ${numberOf(dialogue, earlier[0])}`;
  return later.length ? `gold on ${numberOf(dialogue, later[0])}` : "nowhere gold in this dialogue";
}

function verdicts(system, dialogue, row, turn) {
  const state = stateOf(system, turn);
  if (state === "not asked") return [create("p", {}, "Not asked about this dialogue.")];
  const list = create("ul", { class: "verdicts" });
  if (state !== "ok") list.append(create("li", {}, stateMark(state), ` ${state}: its answer gave no labels.`));
  const description = systemText(system, turn);
  if (state === "ok")
    pairsOf(system, turn).forEach(({ gold, predicted, category }, i) => {
      const why = hasGoldAt(turn) && gold === model.none && predicted < model.none ? ` (${falsePositiveContext(dialogue, row, predicted)})` : "";
      const cell = model.cells[predicted < model.none ? predicted : gold];
      list.append(create("li", {}, cell === "none" ? stateMark("none") : labelMark(cell, outlineOf(category, turn)), ` ${description[i]}${why}`));
    });
  return [list];
}

function logProbabilities(choices) {
  const rows = choices.flatMap((fork, i) => Object.entries(fork).sort((a, b) => b[1] - a[1]).map(([branch, value], rank) =>
    create("tr", { class: rank ? "" : "first" }, create("td", {}, rank ? "" : String(i + 1)), create("td", {}, create("code", {}, branch)),
      create("td", { class: "num" }, value.toFixed(3)), create("td", { class: "num" }, `${(100 * Math.exp(value)).toFixed(1)} %`))));
  return create("details", {}, create("summary", {}, "Log-probabilities at each fork"),
    create("div", { class: "scrolled", tabindex: 0, role: "group", "aria-label": "Log-probabilities" },
      create("table", { class: "forks" }, create("thead", {}, create("tr", {}, ...["Fork", "Branch", "Log-probability", "Probability"].map(t => create("th", { scope: "col" }, t)))), create("tbody", {}, ...rows))));
}

// The lines of the history in the system's prompt for this turn.
function historyLines(system, dialogue, row, lines) {
  const history = [];
  utterances(dialogue).forEach((r, i) => {
    if (r >= row) return;
    history.push(`${speakerOf(dialogue, r)}: ${lines[i].at(-1)}`);
    const turn = turnOf(dialogue, r);
    if (turn < 0 || system.history === "none") return;
    const mask = system.history === "gold" ? model.gold[turn] : system.tags[turn];
    history.push(`MODEL_TAG: ${mask ? members(mask).map(label => model.cells[label]).join("; ") : "none"}`);
  });
  return history;
}

const HISTORIES = { self: "its own tags", gold: "the gold tags", none: "no tags" };

function systemDetails(system, dialogue, row, lines) {
  const turn = turnOf(dialogue, row);
  const block = create("section", { class: "of-system", "aria-label": system.name }, create("h4", {}, system.name), ...verdicts(system, dialogue, row, turn));
  if (stateOf(system, turn) === "not asked") return block;
  const details = create("div");
  block.append(details);
  loadAnswer(system, turn).then(({ answer, choices }) => {
    const parts = [];
    if (answer !== null && text.shown) parts.push(create("p", { class: "label" }, "Raw answer"), create("pre", { tabindex: 0, "aria-label": "Raw answer" }, answer));
    else if (answer !== null) parts.push(create("p", { class: "no-text" }, "The raw answer is hidden with the text."));
    if (choices.length) parts.push(logProbabilities(choices));
    if (lines) {
      const history = historyLines(system, dialogue, row, lines);
      parts.push(create("details", {}, create("summary", {}, `History: ${history.length} lines with ${HISTORIES[system.history]}`),
        create("p", { class: "label" }, `Prompt ${system.prompt}`), create("pre", { tabindex: 0, "aria-label": "History" }, history.join("\n") || "Nothing: this is its first turn.")));
    }
    details.replaceChildren(...parts);
  }, problem => details.replaceChildren(create("p", {}, problem.message)));
  return block;
}

function turnPanel(state, lines) {
  const { dialogue, row } = state;
  const turn = turnOf(dialogue, row);
  const mask = model.rowGold[rowIndex(dialogue, row)];
  const panel = create("div", { class: "turn", tabindex: 0, role: "group", "aria-label": `Turn ${row + 1}, opened` }, create("h3", {}, `Turn ${row + 1}`),
    ...(hasGold(dialogue) ? [create("section", { class: "of-gold", "aria-label": GOLD }, create("h4", {}, GOLD),
      create("p", {}, ...marksOfGold(mask), ` ${goldText(mask)}. ${goldContext(dialogue, row)}`))] : []));
  if (turn < 0) panel.append(create("p", {}, "No system is asked about this row."));
  else panel.append(...state.systems.map(index => systemDetails(model.systems[index], dialogue, row, lines)));
  return panel;
}

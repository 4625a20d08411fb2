// The list of dialogues: a table that contains only the rows in view.

function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function makeButton(label, action, attributes = {}) {
  const button = create("button", { type: "button", ...attributes }, label);
  button.onclick = action;
  return button;
}

const hidden = text => create("span", { class: "visually-hidden" }, text);

// Turns of a dialogue on which at least one shown system is wrong. Without gold labels: turns with a
// prediction or an unusable answer.
const DISAGREEMENT = () => (model.labelled ? "disagreement" : "prediction");

function disagreements(dialogue, systems) {
  return userTurns(dialogue).filter(turn =>
    systems.some(index => stateOf(model.systems[index], turn) !== "not asked" && !model.systems[index].right[turn]));
}

const lengthOf = dialogue => model.turnStart[dialogue + 1] - model.turnStart[dialogue];
const userTurns = dialogue => Array.from({ length: lengthOf(dialogue) }, (_, i) => model.turnStart[dialogue] + i);
const aboutOf = (dialogue, name) => (model.about[name] ? model.about[name].names[model.about[name].codes[dialogue]] : "");

// Columns of the list: name, heading, value of a dialogue, and whether large values come first.
function columns(result, { systems, filter }) {
  const filtered = Object.values(filter).some(values => values?.length);
  return [
    { name: "dialogue", title: "Dialogue", value: d => d },
    { name: "strip", title: `User turns: ${model.labelled ? `${GOLD.toLowerCase()}, then ` : ""}the systems` },
    ...["scenario", "timing"].filter(name => model.about[name])
      .map(name => ({ name, title: name[0].toUpperCase() + name.slice(1), value: d => aboutOf(d, name) })),
    { name: "turns", title: "User turns", value: lengthOf, down: true },
    { name: "disagreements", title: model.labelled ? "Disagree" : "Predicted", value: d => disagreements(d, systems).length, down: true },
    ...(filtered ? [{ name: "fits", title: "Turns that fit", value: d => result.perDialogue[d], down: true }] : []),
  ];
}

function sortedDialogues(result, state) {
  const shown = [];
  for (let d = 0; d < model.dialogues.length; d++) if (result.perDialogue[d]) shown.push(d);
  const [name, reversed] = [state.sort.replace(/^-/, ""), state.sort.startsWith("-")];
  const column = columns(result, state).find(c => c.name === name && c.value);
  if (!column) return shown;
  const sign = Boolean(column.down) === reversed ? 1 : -1;
  const values = new Map(shown.map(d => [d, column.value(d)]));
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return shown.sort((a, b) => sign * compare(values.get(a), values.get(b)) || a - b);
}

function strip(dialogue, result, systems) {
  const turns = userTurns(dialogue);
  const line = (kind, marks, isNone) => create("div", { class: `line ${kind}` }, ...turns.map(turn => {
    const hit = result.hits[turn] && result.byPair ? "hit" : "";
    // Most turns have no label: a dot from CSS is cheaper than an SVG.
    return isNone(turn) ? create("span", { class: `dot ${hit}` }) : create("span", { class: hit }, ...marks(turn));
  }));
  return create("div", { class: "strip", "aria-hidden": "true" },
    ...(model.labelled ? [line("gold", turn => (hasGold(dialogue) ? marksOfGold(model.gold[turn]) : [stateMark("not asked")]),
      turn => hasGold(dialogue) && !model.gold[turn])] : []),
    ...systems.map(index => model.systems[index]).map(system =>
      line("system", turn => marksOfSystem(system, turn), turn => !model.gold[turn] && !system.tags[turn] && !system.outcome[turn])));
}

function makeListTable(state, result, shown, update) {
  const box = find(".rows");
  const tableColumns = columns(result, state);
  const height = Math.max(38, 18 * (state.systems.length + 1) + 12);
  const sorted = state.sort.replace(/^-/, "");
  const headings = tableColumns.map(column => {
    if (!column.value) return create("th", { scope: "col" }, column.title);
    const down = Boolean(column.down) !== state.sort.startsWith("-");
    const button = create("button", { type: "button" }, column.title);
    button.onclick = () => update({ sort: sorted === column.name && !state.sort.startsWith("-") ? `-${column.name}` : column.name });
    return create("th", { scope: "col", class: column.name, "aria-sort": sorted === column.name ? (down ? "descending" : "ascending") : null }, button);
  });
  const body = create("tbody");
  const table = create("table", { class: "dialogues", "aria-rowcount": shown.length + 1 },
    create("caption", { class: "visually-hidden" }, "Dialogues that fit the filters"),
    create("thead", {}, create("tr", { "aria-rowindex": 1 }, ...headings)), body);
  table.style.setProperty("--height", `${height}px`);

  const row = index => {
    const dialogue = shown[index];
    const link = create("a", { href: formatState({ ...state, dialogue, row: -1 }) }, model.dialogues[dialogue]);
    const cells = tableColumns.slice(1).map(column => column.value
      ? create("td", { class: `${column.name}${column.down ? " num" : ""}` }, String(column.value(dialogue)))
      : create("td", { class: "marks" }, strip(dialogue, result, state.systems), hidden(stripText(dialogue, state.systems))));
    return create("tr", { "aria-rowindex": index + 2 }, create("th", { scope: "row" }, link), ...cells);
  };
  const space = (count, kind) => (count ? [create("tr", { "aria-hidden": "true", class: kind }, create("td", { colspan: tableColumns.length, style: `height:${count * height}px` }))] : []);
  let first = -1;
  const draw = () => {
    const wanted = Math.max(0, Math.min(shown.length - 1, Math.floor(box.scrollTop / height) - 4));
    if (Math.abs(wanted - first) < 3 && first >= 0 && wanted !== 0) return;
    if (wanted === first) return;
    first = wanted;
    const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / height) + 8);
    const focused = body.contains(document.activeElement) ? document.activeElement.textContent : null;
    body.replaceChildren(...space(first, "before"), ...shown.slice(first, last).map((_, i) => row(first + i)), ...space(shown.length - last, "after"));
    if (focused !== null) [...body.querySelectorAll("a")].find(a => a.textContent === focused)?.focus({ preventScroll: true });
  };
  box.replaceChildren(table);
  box.onscroll = draw;
  box.scrollTop = 0;
  draw();
  return {
    reveal(dialogue) {
      const index = shown.indexOf(dialogue);
      if (index < 0) return;
      box.scrollTop = Math.max(0, index * height - box.clientHeight / 3);
      draw();
      body.querySelector(`tr[aria-rowindex="${index + 2}"] a`)?.focus({ preventScroll: true });
    },
  };
}

function stripText(dialogue, systems) {
  const labelled = userTurns(dialogue).filter(turn => model.gold[turn]).length;
  const verdict = hasGold(dialogue) ? "wrong" : "predicts labels";
  const counts = systems.map(index => `${model.systems[index].name} ${verdict} on ${disagreements(dialogue, [index]).length}`);
  return `${hasGold(dialogue) ? `${GOLD} labels on ${plural(labelled, "turn")}; ` : ""}${counts.join(", ")}`;
}

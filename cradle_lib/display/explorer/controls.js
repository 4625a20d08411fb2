// Controls for systems and filters. Each option shows how many turns, or pairs of a gold label and a
// prediction, it would match.

const control = name => find(`.filters [name="${name}"]`);

function options(name, entries, value, unit = "turn") {
  const select = control(name);
  const group = ([title, items]) => create("optgroup", { label: title }, ...items.map(option));
  const option = ([v, label, count]) => create("option", { value: v }, count === undefined ? label : `${label} (${plural(count, unit)})`);
  select.replaceChildren(...entries.map(entry => (Array.isArray(entry[1]) ? group(entry) : option(entry))));
  if (![...select.options].some(o => o.value === value)) select.append(create("option", { value }, value.replaceAll(",", " or ")));
  select.value = value;
}

const sum = (counts, set) => counts.reduce((total, count, i) => total + (set[i] ? count : 0), 0);

function cellOptions(counts, noun) {
  const countOf = value => sum(counts, cellSet([value]));
  return [["", "Anything"], ["any", `Any ${noun}`, countOf("any")], ["none", `No ${noun}`, countOf("none")],
    ["Stage", [["alert", "alert", countOf("alert")], ["confirm", "confirm", countOf("confirm")]]],
    ["Crisis type", crisisTypes().map(type => [type, type, countOf(type)])],
    ["Label", model.cells.slice(0, model.none).map(cell => [cell, cell, countOf(cell)])]];
}

const ORDER_NAMES = ["neither", "alert only", "confirm only", "alert, then confirm", "both on one turn", "confirm, then alert"];

function fillControls() {
  const { filter, systems } = state;
  const [a, b] = systems.map(index => model.systems[index]);
  const value = name => (filter[name] ?? []).join(",");
  options("a", model.systems.map(s => [String(s.index), s.name]), String(systems[0]));
  options("b", [["", "No other"], ...model.systems.filter(s => s !== a).map(s => [String(s.index), s.name])], String(systems[1] ?? ""));
  options("gold", cellOptions(result.facets.gold, "gold label"), value("gold"), "pair");
  options("predicted", cellOptions(result.facets.predicted, "predicted label"), value("predicted"), "pair");
  const countOf = category => sum(result.facets.category, categorySet([category]));
  const kinds = [...new Set(Object.values(model.kinds))].map(kind => [words(kind), Object.keys(model.kinds).filter(c => model.kinds[c] === kind).map(c => [c, words(c), countOf(c)])]);
  options("category", [["", "Anything"], ["any", "Any error", countOf("any")], ["right", "No error", countOf("right")], ...kinds], value("category"), "pair");
  const outcomes = countTurns(result, TURN_TERMS.outcome, model.outcomes.length, turn => a.outcome[turn]);
  options("outcome", [["", "Anything"], ...model.outcomes.map((name, i) => [name, name, outcomes[i]])], value("outcome"));
  control("both").disabled = !b;
  const comparisons = b ? bothOptions(a, b).filter(([name]) => model.labelled || name === "differ") : [];
  options("both", [["", "Anything"], ...comparisons], bothValue());
  const wrong = countTurns(result, TURN_TERMS.systems_wrong, model.systems.length + 1, turn => model.wrong[turn]);
  options("systems_wrong", [["", "Any number"], ...Array.from(wrong, (count, i) => [String(i), i === model.systems.length ? `all ${i}` : String(i), count])], value("systems_wrong"));
  for (const [name, system] of [["gold_order", null], ["predicted_order", a]]) {
    const orders = ordersOf(system);
    const counts = countTurns(result, TURN_TERMS[name], ORDERS.length, turn => orders[model.turnDialogue[turn]]);
    options(name, [["", "Any order"], ...ORDERS.map((order, i) => [order, ORDER_NAMES[i], counts[i]])], value(name));
  }
  for (const name of ["scenario", "timing"]) {
    const about = model.about[name];
    control(name).closest("label").hidden = !about;
    if (!about) continue;
    const counts = countTurns(result, TURN_TERMS[name], about.names.length, turn => about.codes[model.turnDialogue[turn]]);
    options(name, [["", "Any"], ...about.names.map((item, i) => [item, item, counts[i]])], value(name));
  }
  if (document.activeElement !== control("text")) control("text").value = filter.text?.[0] ?? "";
  control("text").closest("label").hidden = root.dataset.text !== "yes";
  find(".more-systems").replaceChildren(...model.systems.filter(s => s !== a && s !== b).map(s => {
    const box = create("input", { type: "checkbox", checked: systems.includes(s.index) });
    box.onchange = () => update({ systems: box.checked ? [...systems, s.index] : systems.filter(i => i !== s.index) });
    return create("label", {}, box, ` ${s.name}`);
  }));
}

const BOTH = [["right>wrong", "A right, B wrong"], ["wrong>right", "A wrong, B right"], ["wrong,wrong", "Both wrong"], ["right,right", "Both right"], ["differ", "They differ"]];

function bothOptions(a, b) {
  const asked = turn => a.outcome[turn] !== NOT_ASKED && b.outcome[turn] !== NOT_ASKED;
  // In the order of BOTH.
  const kind = turn => (asked(turn) && hasGoldAt(turn) ? [2, 1, 0, 3][2 * a.right[turn] + b.right[turn]] : NOT_ASKED);
  const counts = countTurns(result, TURN_TERMS.both, 4, kind);
  const [, differing] = countTurns(result, TURN_TERMS.both, 2, turn => Number(differ(a, b, turn)));
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

// The active filters, each with a button that removes it.
function filterChips() {
  return Object.entries(state.filter).filter(([, values]) => values?.length).map(([name, values]) => {
    const description = `${words(name)}: ${values.map(words).join(" or ")}`;
    return makeButton(`${description} ✕`, () => update({ filter: without(state.filter, [name]) }),
      { class: "filter-chip", "aria-label": `Remove the filter ${description}` });
  });
}

function addListeners() {
  find(".filters").onsubmit = event => event.preventDefault();
  find(".filters").onchange = ({ target: { name, value } }) => {
    if (name === "who") { location.hash = value ? "#v=annotators" : "#"; location.reload(); }
    else if (name === "a") update({ systems: [Number(value), ...state.systems.slice(1).filter(i => i !== Number(value))], filter: { ...state.filter } });
    else if (name === "b") update({ systems: [state.systems[0], ...(value ? [Number(value)] : []), ...state.systems.slice(2).filter(i => i !== Number(value))] });
    else if (name === "both") update({ filter: { ...without(state.filter, ["right", "wrong", "differ"]), ...bothFilter(value) } });
    else if (name === "text") update({ filter: { ...state.filter, text: value.trim() ? [value.trim()] : [] } });
    else if (name) update({ filter: { ...without(state.filter, [name, ...(["gold", "predicted"].includes(name) ? ["pairing"] : [])]), ...(value ? { [name]: value.split(",") } : {}) } });
  };
  find(".clear").onclick = () => update({ filter: {} });
  find(".hide").onclick = () => showText(false);
  find(".keys").onclick = () => help();
  addEventListener("hashchange", () => { restore(); });
  addEventListener("popstate", () => { restore(); });
  addEventListener("keydown", onKey);
}

const without = (filter, names) => Object.fromEntries(Object.entries(filter).filter(([name]) => !names.includes(name)));

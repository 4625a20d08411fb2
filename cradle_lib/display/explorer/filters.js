// Finds the turns that fit a filter, and counts the turns that fit with other values of a term.

// Each gold or predicted label is in exactly one pair of its turn; the other side may be none.
const PAIR_TERMS = { gold: 1, predicted: 2, category: 4 };
const TURN_TERMS = { outcome: 8, both: 16, systems_wrong: 32, scenario: 64, timing: 128, text: 256, gold_order: 512, predicted_order: 1024, among: 2048 };

// Values of `gold` and `predicted`: a cell, `any` label, a stage or a crisis type.
function cellSet(values) {
  const set = new Uint8Array(model.none + 1);
  for (const value of values)
    model.cells.forEach((cell, index) => {
      const [stage, type] = [cell.split("_")[0], cell.replace(/^confirm_/, "").replace(/_[a-z]+$/, "")];
      if (cell === value || (index < model.none && (value === "any" || stage === value || type === value))) set[index] = 1;
    });
  return set;
}

function categorySet(values) {
  const set = new Uint8Array(model.categories.length);
  for (const value of values)
    model.categories.forEach((category, index) => {
      if (category === value || model.kinds[category] === value || (value === "any" && index)) set[index] = 1;
    });
  return set;
}

const memberOf = (names, values) => Uint8Array.from(names, name => (values.includes(name) ? 1 : 0));

const ORDERS = ["neither", "alert_only", "confirm_only", "alert_first", "same_turn", "confirm_first"];
const ALERTS = 3;

// The order in which the stages first occur in a dialogue, for masks by user turn: index in ORDERS.
function orderOf(dialogue, masks) {
  const [from, to] = [model.turnStart[dialogue], model.turnStart[dialogue + 1]];
  const first = stage => masks.subarray(from, to).findIndex(mask => mask & stage);
  const [alert, confirm] = [first(ALERTS), first(0xffff & ~ALERTS)];
  if (alert < 0 || confirm < 0) return (alert >= 0) + 2 * (confirm >= 0);
  return 4 - Math.sign(confirm - alert);
}

// The orders of all dialogues; NOT_ASKED if the system was not asked about the dialogue.
function ordersOf(system) {
  const asked = dialogue => system ? (lengthOf(dialogue) && system.outcome[model.turnStart[dialogue]] !== NOT_ASKED) : hasGold(dialogue);
  const masks = system ? system.tags : model.gold;
  return Uint8Array.from(model.dialogues.keys(), d => (asked(d) ? orderOf(d, masks) : NOT_ASKED));
}

// For each user turn, a bit mask of the terms of TURN_TERMS that it does not match.
function failures(filter, systemA, matching) {
  const { turns, turnDialogue, wrong } = model;
  const failed = new Uint16Array(turns);
  const fail = (bit, test) => {
    for (let turn = 0; turn < turns; turn++) if (!test(turn)) failed[turn] |= bit;
  };
  for (const name of ["scenario", "timing"]) {
    if (!filter[name] || !model.about[name]) continue;
    const { names, codes } = model.about[name];
    const wanted = memberOf(names, filter[name]);
    fail(TURN_TERMS[name], turn => wanted[codes[turnDialogue[turn]]]);
  }
  if (filter.outcome) {
    const unusable = filter.outcome.includes("unusable");
    const wanted = Uint8Array.from(model.outcomes, name => filter.outcome.includes(name) || (unusable && name !== "ok"));
    fail(TURN_TERMS.outcome, turn => wanted[systemA.outcome[turn]]);
  }
  const named = name => (filter[name] ?? []).map(id => model.systems.find(system => system.id === id));
  for (const system of named("right")) fail(TURN_TERMS.both, turn => hasGoldAt(turn) && system.right[turn]);
  for (const system of named("wrong")) fail(TURN_TERMS.both, turn => hasGoldAt(turn) && system.outcome[turn] !== NOT_ASKED && !system.right[turn]);
  const [first, ...others] = named("differ");
  for (const other of others) fail(TURN_TERMS.both, turn => differ(first, other, turn));
  if (filter.systems_wrong) {
    const wanted = new Set(filter.systems_wrong.map(Number));
    fail(TURN_TERMS.systems_wrong, turn => wanted.has(wrong[turn]));
  }
  for (const [name, system] of [["gold_order", null], ["predicted_order", systemA]]) {
    if (!filter[name]) continue;
    const [wanted, orders] = [memberOf(ORDERS, filter[name]), ordersOf(system)];
    fail(TURN_TERMS[name], turn => wanted[orders[turnDialogue[turn]]]);
  }
  if (filter.among) {
    const wanted = new Set(filter.among.map(turnOfValue));
    fail(TURN_TERMS.among, turn => wanted.has(turn));
  }
  if (matching) fail(TURN_TERMS.text, turn => matching[turnDialogue[turn]]);
  return failed;
}

function differ(one, other, turn) {
  const [a, b] = [one.outcome[turn], other.outcome[turn]];
  return a !== NOT_ASKED && b !== NOT_ASKED && (a !== b || one.tags[turn] !== other.tags[turn]);
}

// `matching`: for each dialogue, whether it contains the search text; null without a search text.
function evaluate(filter, systems, matching) {
  const { turns, turnDialogue, none, gold } = model;
  const size = none + 1;
  const systemA = model.systems[systems[0]];
  const wanted = {
    gold: filter.gold && cellSet(filter.gold),
    predicted: filter.predicted && cellSet(filter.predicted),
    category: filter.category && categorySet(filter.category),
  };
  const allPairs = filter.pairing?.includes("all") ?? false;
  const byPair = Boolean(wanted.gold || wanted.predicted || wanted.category || allPairs);
  const failed = failures(filter, systemA, matching);
  const hits = new Uint16Array(turns);
  const facets = {
    gold: new Uint32Array(size), predicted: new Uint32Array(size), category: new Uint32Array(model.categories.length),
  };
  const checks = { fits: new Uint8Array(turns), failed };
  const count = (g, t, c, bits, turn) => {
    const judged = hasGoldAt(turn);
    const missed = (wanted.gold && !(judged && wanted.gold[g]) ? 1 : 0) | (wanted.predicted && !wanted.predicted[t] ? 2 : 0)
      | (wanted.category && !(judged && wanted.category[c]) ? 4 : 0);
    if (!missed) checks.fits[turn] = 1;
    const bad = missed | bits;
    if (!bad) hits[turn]++;
    if (judged && !(bad & ~1)) facets.gold[g]++;
    if (!(bad & ~2)) facets.predicted[t]++;
    if (judged && !(bad & ~4)) facets.category[c]++;
  };
  for (let turn = 0; turn < turns; turn++) {
    if (allPairs && systemA.outcome[turn] !== NOT_ASKED) {
      for (const g of members(gold[turn])) for (const t of members(systemA.tags[turn])) count(g, t, 0, failed[turn], turn);
    } else {
      for (let i = systemA.pairStart[turn]; i < systemA.pairStart[turn + 1]; i++) {
        const pair = systemA.pairs[i];
        const rest = (pair / size) | 0;
        count(rest % size, pair % size, (rest / size) | 0, failed[turn], turn);
      }
    }
    if (!byPair) {
      checks.fits[turn] = 1;
      hits[turn] = failed[turn] ? 0 : 1;
    }
  }
  const perDialogue = new Uint32Array(model.dialogues.length);
  const result = { hits, byPair, facets, checks, perDialogue, pairs: 0, turns: 0, dialogues: 0 };
  for (let turn = 0; turn < turns; turn++) {
    if (!hits[turn]) continue;
    result.pairs += hits[turn];
    result.turns++;
    if (!perDialogue[turnDialogue[turn]]++) result.dialogues++;
  }
  return result;
}

function members(mask) {
  if (!mask) return [model.none];
  const labels = [];
  for (let label = 0; label < model.none; label++) if (mask & (1 << label)) labels.push(label);
  return labels;
}

// Counts turns by a value, as if the filter had no term with this bit.
function countTurns(result, bit, values, valueOf) {
  const counts = new Uint32Array(values);
  const { fits, failed } = result.checks;
  for (let turn = 0; turn < model.turns; turn++) {
    if (fits[turn] && !(failed[turn] & ~bit)) {
      const value = valueOf(turn);
      if (value < values) counts[value]++;
    }
  }
  return counts;
}

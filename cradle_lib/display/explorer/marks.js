// Marks. Shape: alert or confirm. Colour: crisis type. Fill: ongoing or past. Outline: whether the
// prediction is correct, and the kind of error. Unparsed, refused and failed answers have their own.

const SVG = "http://www.w3.org/2000/svg";
const OUTLINE = {
  right: "correct", too_early: "early", too_late: "late", repeated: "late", unfounded: "unfounded",
  over_confirmed: "swapped", under_confirmed: "swapped", temporal_swap: "swapped", wrong_type: "swapped",
  missed_alert: "missed", missed_confirm: "missed",
};
const RINGS = {
  correct: ["M10 1.2A8.8 8.8 0 1 1 9.99 1.2Z"],
  early: ["M10 1.2A8.8 8.8 0 0 0 10 18.8"],
  late: ["M10 1.2A8.8 8.8 0 0 1 10 18.8"],
  swapped: ["M10 .9A9.1 9.1 0 1 1 9.99 .9Z", "M10 3.1A6.9 6.9 0 1 1 9.99 3.1Z"],
  unfounded: ["M10 1.2A8.8 8.8 0 1 1 9.99 1.2Z"],
};
const SHAPES = { alert: "M10 4.6L15 13.4H5Z", confirm: "M10 5.6A4.4 4.4 0 1 1 9.99 5.6Z" };
const STATES = {
  none: "M8.6 10A1.4 1.4 0 1 1 8.6 10.01Z",
  refused: "M10 3A7 7 0 1 1 9.99 3ZM5 15L15 5",
  failed: "M4.5 4.5L15.5 15.5M15.5 4.5L4.5 15.5",
  unparsed: "M3.5 3.5H16.5V16.5H3.5ZM7.6 8.2Q7.6 6 10 6T12.4 8.1Q12.4 9.4 10 10.4V11.6M10 13.4V14.2",
};

function drawMark(name, paths, crisis) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", `mark ${name}`);
  svg.setAttribute("aria-hidden", "true");
  if (crisis) svg.style.color = `var(--cradle-${crisis})`;
  for (const [kind, path] of paths) {
    const shape = document.createElementNS(SVG, "path");
    shape.setAttribute("class", kind);
    shape.setAttribute("d", path);
    svg.append(shape);
  }
  return svg;
}

function labelMark(label, outline) {
  const [stage, time] = [label.split("_")[0], label.endsWith("_past") ? "past" : "ongoing"];
  const crisis = stage === "alert" ? "" : label.replace(/^confirm_/, "").replace(/_[a-z]+$/, "");
  const rings = (RINGS[outline] ?? []).map(path => ["ring", path]);
  return drawMark(`label ${time} ${outline ?? ""}`, [["shape", SHAPES[stage]], ...rings], crisis);
}

const stateMark = state => drawMark(state, state === "not asked" ? [] : [["state", STATES[state]]]);

// The pairs of gold and predicted label of a turn, with their categories.
function pairsOf(system, turn) {
  const size = model.none + 1;
  return Array.from(system.pairs.subarray(system.pairStart[turn], system.pairStart[turn + 1]), pair => {
    const rest = (pair / size) | 0;
    return { gold: rest % size, predicted: pair % size, category: model.categories[(rest / size) | 0] };
  });
}

const stateOf = (system, turn) => (system.outcome[turn] === NOT_ASKED ? "not asked" : model.outcomes[system.outcome[turn]]);

function marksOfSystem(system, turn) {
  const state = stateOf(system, turn);
  if (state !== "ok") return [stateMark(state)];
  const marks = pairsOf(system, turn)
    .filter(pair => pair.gold < model.none || pair.predicted < model.none)
    .map(({ gold, predicted, category }) => labelMark(model.cells[predicted < model.none ? predicted : gold], outlineOf(category, turn)));
  return marks.length ? marks : [stateMark("none")];
}

const marksOfGold = mask => (mask ? members(mask).map(label => labelMark(model.cells[label])) : [stateMark("none")]);

const words = name => name.replaceAll("_", " ");

const crisisTypes = () => [...new Set(model.cells.slice(0, model.none).filter(c => c.startsWith("confirm")).map(c => c.slice(8).replace(/_[a-z]+$/, "")))];

// The outline of a pair's mark; none if there is no gold label to compare with.
const outlineOf = (category, turn) => (hasGoldAt(turn) ? OUTLINE[category] : undefined);

// The marks of a system's turn as text.
function systemText(system, turn) {
  const state = stateOf(system, turn);
  if (state === "not asked") return ["not asked"];
  if (state !== "ok") return [`no labels, its answer was ${state}`];
  return pairsOf(system, turn).map(({ gold, predicted, category }) => {
    const [label, tag] = [model.cells[gold], model.cells[predicted]];
    if (!hasGoldAt(turn)) return tag;
    if (category === "right") return predicted === model.none ? "none" : `${tag}: correct`;
    if (predicted === model.none) return `${label}: missed`;
    return gold < model.none ? `${tag} in place of ${label}: ${words(category)}` : `${tag}: ${words(category)}`;
  });
}

const goldText = mask => (mask ? members(mask).map(label => model.cells[label]).join(", ") : "none");

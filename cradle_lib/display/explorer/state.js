// The state of the page and its address: #v=annotators&d=DIALOGUE&t=TURN&p=1&m=SYSTEM,SYSTEM&f=TERM:VALUE,VALUE;TERM:VALUE&s=ORDER
// With p=1 the dialogue is shown up to that turn. The values of the term `among` are turns: DIALOGUE.TURN_ID.

const TERMS = ["gold", "predicted", "category", "pairing", "outcome", "right", "wrong", "differ", "systems_wrong", "gold_order", "predicted_order", "scenario", "timing", "among", "text"];
const encodeList = values => values.map(encodeURIComponent).join(",");
const decodeList = text => text.split(",").filter(Boolean).map(decodeText);

function decodeText(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function parseState(hash) {
  const fields = new Map(hash.replace(/^#/, "").split("&").map(part => part.split(/=(.*)/s, 2)));
  const unknown = [];
  const system = name => {
    // A name may be followed by those of systems with the same labels: "Tuned (= constrained)".
    const first = text => text.split(" (= ")[0];
    const index = model.systems.findIndex(s => s.id === name || first(s.name) === first(name));
    if (index < 0) unknown.push(name);
    return index;
  };
  const filter = {};
  for (const term of (fields.get("f") ?? "").split(";").filter(Boolean)) {
    const [name, values] = term.split(/:(.*)/s, 2);
    if (!TERMS.includes(name)) unknown.push(name);
    else filter[name] = decodeList(values ?? "");
  }
  for (const name of ["right", "wrong", "differ"]) {
    if (!filter[name]) continue;
    filter[name] = filter[name].map(system).filter(i => i >= 0).map(i => model.systems[i].id);
    if (!filter[name].length) delete filter[name];
  }
  if (filter.among) filter.among = filter.among.filter(value => turnOfValue(value) >= 0 || !unknown.push(value));
  const chosen = [...new Set(decodeList(fields.get("m") ?? "").map(system))].filter(i => i >= 0);
  const id = fields.has("d") ? decodeText(fields.get("d")) : null;
  // A single dialogue is always open.
  const dialogue = model.single ? 0 : id === null ? -1 : model.dialogueIndex.get(id) ?? -1;
  if (id !== null && dialogue < 0) unknown.push(id);
  const turn = Number.parseInt(fields.get("t"), 10) - 1;
  return {
    dialogue,
    row: dialogue >= 0 && turn >= 0 && turn < model.rowStart[dialogue + 1] - model.rowStart[dialogue] ? turn : -1,
    play: dialogue >= 0 && (fields.has("d") ? fields.get("p") === "1" : model.single),
    systems: chosen.length ? chosen : defaultSystems(),
    filter,
    sort: fields.get("s") ?? "",
    unknown,
  };
}

// The corpus index of the user turn in a value of `among`; -1 if there is no such turn.
function turnOfValue(value) {
  const cut = value.lastIndexOf(".");
  const dialogue = model.dialogueIndex.get(value.slice(0, cut));
  return dialogue === undefined ? -1 : turnOf(dialogue, Number(value.slice(cut + 1)));
}

function formatState(state) {
  const terms = TERMS.filter(name => state.filter[name]?.length).map(name => `${name}:${encodeList(state.filter[name])}`);
  const parts = PEOPLE ? ["v=annotators"] : [];
  if (state.dialogue >= 0) parts.push(`d=${encodeURIComponent(model.dialogues[state.dialogue])}`);
  if (state.dialogue >= 0 && state.row >= 0) parts.push(`t=${state.row + 1}`);
  if (state.dialogue >= 0 && state.play) parts.push("p=1");
  parts.push(`m=${encodeList(state.systems.map(index => model.systems[index].id))}`);
  if (terms.length) parts.push(`f=${terms.join(";")}`);
  if (state.sort) parts.push(`s=${state.sort}`);
  return `#${parts.join("&")}`;
}

// The best system; all beside a single dialogue; among annotators the first two who gave any label.
function defaultSystems() {
  if (model.single) return model.systems.map(system => system.index);
  if (model.best !== null) return [model.best];
  const tagging = model.systems.filter(system => system.tags.some(mask => mask)).map(system => system.index);
  return (tagging.length ? tagging : [0]).slice(0, 2);
}

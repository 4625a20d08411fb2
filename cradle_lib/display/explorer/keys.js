// Keyboard shortcuts, and the help dialog about keys and marks.

const KEYS = {
  j: ["Next dialogue", () => stepDialogue(1)],
  k: ["Previous dialogue", () => stepDialogue(-1)],
  ArrowRight: ["Next turn", () => stepTurn(1)],
  ArrowLeft: ["Previous turn", () => stepTurn(-1)],
  t: ["Play turn by turn, or pause", () => state.dialogue >= 0 && togglePlay()],
  n: ["Next disagreement", () => goToDisagreement(1)],
  p: ["Previous disagreement", () => goToDisagreement(-1)],
  s: ["Choose systems", () => control("a").focus()],
  f: ["Filter", () => { find(".narrow").open = true; control(model.labelled ? "gold" : "predicted").focus(); }],
  c: ["Clear filters", () => update({ filter: {} })],
  h: ["Hide all text", () => showText(false)],
  Escape: ["Back to all dialogues", () => state.dialogue >= 0 && !model.single && update({ dialogue: -1, row: -1 })],
  "?": ["Keys and marks", () => help()],
};
let keysOn = true;

function onKey(event) {
  const writing = event.target.closest?.("input, select, textarea, [contenteditable], dialog");
  if (model.single && !root.contains(event.target)) return;
  if (!keysOn || !state || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (writing && !(event.key === "Escape" && writing.matches("select, input"))) return;
  if (writing) { writing.blur(); return; }
  const action = KEYS[event.key];
  // In the list, arrows scroll.
  if (!action || (event.key.startsWith("Arrow") && state.dialogue < 0)) return;
  event.preventDefault();
  action[1]();
}

function help() {
  const box = find(".help");
  const names = { ArrowRight: "→", ArrowLeft: "←", Escape: "Esc" };
  const item = (mark, description) => create("li", {}, mark, ` ${description}`);
  const on = create("input", { type: "checkbox", checked: keysOn });
  on.onchange = () => { keysOn = on.checked; };
  const types = crisisTypes();
  box.replaceChildren(
    create("h2", {}, "Keys"),
    create("dl", { class: "key-list" }, ...Object.entries(KEYS).map(([key, [description]]) => create("div", {}, create("dt", {}, create("kbd", {}, names[key] ?? key)), create("dd", {}, description)))),
    create("p", {}, create("label", {}, on, " Use single keys")),
    create("h2", {}, "Marks"),
    create("ul", { class: "mark-list" },
      item(labelMark("alert_ongoing"), "alert, ongoing"), item(labelMark("alert_past"), "alert, past"),
      ...types.map(type => item(labelMark(`confirm_${type}_ongoing`), `confirm ${type}, ongoing`)),
      item(labelMark(`confirm_${types[0]}_past`), "confirm, past: hollow")),
    ...(model.labelled ? [create("h3", {}, "Predictions of a system"),
    create("ul", { class: "mark-list" },
      item(labelMark("alert_ongoing", "correct"), "correct"), item(labelMark("alert_ongoing", "early"), "too early: gold later"),
      item(labelMark("alert_ongoing", "late"), "too late or repeated: gold before"), item(labelMark("alert_ongoing", "swapped"), "in place of another label"),
      item(labelMark("alert_ongoing", "unfounded"), "unfounded: nowhere gold"), item(labelMark("alert_ongoing", "missed"), "a gold label that was missed"))] : []),
    create("h3", {}, "Answers"),
    create("ul", { class: "mark-list" }, item(stateMark("none"), "none: no label"), item(stateMark("unparsed"), "unparsed: no label can be read"),
      item(stateMark("refused"), "refused"), item(stateMark("failed"), "failed: no answer came"), item(stateMark("not asked"), "nothing: not asked")),
    makeButton("Close", () => box.close()));
  box.showModal();
}

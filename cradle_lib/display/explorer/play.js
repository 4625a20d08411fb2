// Playing a dialogue: its turns appear one after the other, each with its labels beside it.

// Of the pause before the next turn, in milliseconds: time to read the shown turn.
const PAUSE = { least: 1200, ofCharacter: 40, most: 8000 };
let playing = false;
let timer = 0;

function pause() {
  playing = false;
  clearTimeout(timer);
}

// Shows the dialogue up to its next or previous turn; false at the end.
function playStep(step) {
  const row = rowBeside(utterances(state.dialogue), state.row, step);
  if (row === undefined) return false;
  update({ row }, { focus: "play" });
  return true;
}

async function playOn() {
  const { dialogue, row } = state;
  const lines = text.shown ? await loadText(dialogue).catch(() => null) : null;
  const length = lines?.[utterances(dialogue).indexOf(row)]?.[0].length ?? 0;
  if (!playing) return;
  timer = setTimeout(() => {
    // Stops at the end, and where the reader has gone elsewhere.
    if (state.play && state.dialogue === dialogue && state.row === row && playStep(1)) return void playOn();
    pause();
    if (state.play) draw(state, "play");
  }, Math.min(PAUSE.most, PAUSE.least + PAUSE.ofCharacter * length));
}

function togglePlay() {
  if (playing) { pause(); return draw(state, "play"); }
  const rows = utterances(state.dialogue);
  const again = !state.play || state.row >= rows.at(-1);
  playing = true;
  update({ play: true, row: again ? rows[0] : state.row }, { focus: "play" });
  return void playOn();
}

// Shows the whole dialogue again.
function endPlay() {
  pause();
  update({ play: false }, { focus: "turn" });
}

// The buttons, and the sentence about the turn that appeared last.
function player(state) {
  const button = (label, action, name) => makeButton(label, action, { class: name });
  const step = by => () => { pause(); playStep(by); };
  return create("div", { class: "player", role: "group", "aria-label": "Turn by turn" },
    button("Back", step(-1), "back"), button(playing ? "Pause" : "Play", togglePlay, "toggle"), button("Next turn", step(1), "forward"),
    button("Whole dialogue", endPlay, "end"),
    ...(model.single ? [create("a", { href: `explore.html#d=${encodeURIComponent(model.dialogues[state.dialogue])}` }, "Open in the explorer")] : []),
    create("p", { class: "turn-summary" }, turnSummary(state)));
}

const inWords = (number, word) => `${["no", "one", "two", "three"][number] ?? number} ${word}${number === 1 ? "" : "s"}`;

// What a system says on a turn, compared with gold: "correct", "one turn late", "silent".
function verdictOn(system, dialogue, turn) {
  const answer = stateOf(system, turn);
  if (answer !== "ok") return answer;
  const [gold, predicted] = [model.gold[turn], system.tags[turn]];
  if (!hasGold(dialogue)) return predicted ? goldText(predicted) : "silent";
  if (!gold) return predicted ? "false alarm" : "silent";
  if (gold === predicted) return "correct";
  if (gold & predicted) return "partly correct";
  const same = userTurns(dialogue).filter(t => system.tags[t] & gold);
  const [before, after] = [same.findLast(t => t < turn), same.find(t => t > turn)];
  if (after !== undefined) return `${inWords(after - turn, "turn")} late`;
  if (before !== undefined) return `${inWords(turn - before, "turn")} early`;
  return predicted ? "another label" : "silent";
}

// One sentence about a turn: what gold says, then each system, with its false alarms before.
function turnSummary({ dialogue, row, systems }) {
  const turn = turnOf(dialogue, row);
  if (turn < 0) return `Turn ${row + 1}, the listener.`;
  const gold = model.gold[turn];
  const stage = goldText(gold).includes("confirm") ? "explicit here" : gold ? "implied here" : "no label here";
  const said = systems.map(index => {
    const system = model.systems[index];
    const verdict = verdictOn(system, dialogue, turn);
    const alarms = userTurns(dialogue).filter(t => t < turn && hasGold(dialogue) && !model.gold[t] && system.tags[t]).length;
    const before = gold && alarms ? `, ${inWords(alarms, "false alarm")} before` : "";
    return `${system.name}: ${verdict}${before}.`;
  });
  return [`Turn ${row + 1}${hasGold(dialogue) ? `, ${stage}` : ""}.`, ...said].join(" ");
}

// The labels of a user turn, beside its text: gold, then each system that is shown.
function turnChips(state, turn) {
  const { dialogue } = state;
  const chip = (name, marks, words) => create("span", { class: "chip" }, create("b", {}, name), create("span", { class: "marks" }, ...marks), words);
  const silent = state.systems.every(index => stateOf(model.systems[index], turn) === "ok" && !model.systems[index].tags[turn]);
  if (silent && !model.gold[turn]) return create("p", { class: "chips" }, create("small", {}, "no labels"));
  const gold = hasGold(dialogue) ? [chip(GOLD, marksOfGold(model.gold[turn]), goldText(model.gold[turn]))] : [];
  return create("div", { class: "chips" }, ...gold, ...state.systems.map(index => {
    const system = model.systems[index];
    return chip(system.name, marksOfSystem(system, turn), verdictOn(system, dialogue, turn));
  }));
}

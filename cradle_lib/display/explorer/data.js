// Loads the data files. Each is a script that calls `receive` with its content, because a page
// opened from disk may load scripts but not use fetch.

const root = document.getElementById("cradle-explorer");
// Whether annotators are shown in place of systems; their files have a prefix.
const annotatorsShown = () => root.dataset.people === "yes" && location.hash.slice(1).split("&").includes("v=annotators");
const PEOPLE = annotatorsShown();
const PREFIX = PEOPLE ? "annotators-" : "";
// Names of the reference labels, and of the systems or annotators that are compared with them.
const GOLD = PEOPLE ? "First annotator" : "Gold";
const WHO = PEOPLE ? "Annotator" : "System";
const find = selector => root.querySelector(selector);
const requests = new Map();

function requestOf(name) {
  if (!requests.has(name)) {
    const entry = {};
    entry.promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
    entry.promise.catch(() => {});
    requests.set(name, entry);
  }
  return requests.get(name);
}

function receive(name, content) {
  requestOf(name).resolve(content);
}

function load(file) {
  const name = PREFIX + file;
  const entry = requestOf(name);
  if (!entry.requested) {
    entry.requested = true;
    const script = document.createElement("script");
    script.src = `${root.dataset.folder}${name}.js`;
    script.onerror = () => entry.reject(new Error(`${name}.js can't be loaded.`));
    document.head.append(script);
  }
  return entry.promise;
}

function bytes(packed) {
  const text = atob(packed);
  const array = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) array[i] = text.charCodeAt(i);
  return array;
}

const decoders = { u1: bytes, u2: p => new Uint16Array(bytes(p).buffer), u4: p => new Uint32Array(bytes(p).buffer) };

function starts(sizes) {
  const offsets = new Uint32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; i++) offsets[i + 1] = offsets[i] + sizes[i];
  return offsets;
}

const NOT_ASKED = 255;
let model;

// Decodes the core data into arrays by user turn (numbered across the corpus), row and dialogue.
function unpack(core) {
  const rowStart = starts(decoders.u4(core.rows));
  const speaker = decoders.u1(core.speakers);
  const rowGold = decoders.u2(core.gold);
  const dialogues = core.dialogues.length;
  const turnRow = Uint32Array.from(speaker.keys()).filter(row => speaker[row] === 1);
  const turns = turnRow.length;
  const turnStart = new Uint32Array(dialogues + 1);
  const turnDialogue = new Uint32Array(turns);
  for (let d = 0, turn = 0; d < dialogues; d++) {
    turnStart[d] = turn;
    while (turn < turns && turnRow[turn] < rowStart[d + 1]) turnDialogue[turn++] = d;
    turnStart[d + 1] = turn;
  }
  const gold = Uint16Array.from(turnRow, row => rowGold[row]);
  const none = core.cells.length - 1;
  const systems = core.systems.map((system, index) => {
    const pairStart = starts(decoders.u1(system.sizes));
    const pairs = decoders.u2(system.pairs);
    const outcome = decoders.u1(system.outcomes);
    const tags = new Uint16Array(turns);
    const right = new Uint8Array(turns);
    for (let turn = 0; turn < turns; turn++) {
      let mask = 0;
      for (let i = pairStart[turn]; i < pairStart[turn + 1]; i++) {
        const predicted = pairs[i] % (none + 1);
        if (predicted < none) mask |= 1 << predicted;
      }
      tags[turn] = mask;
      right[turn] = outcome[turn] === 0 && mask === gold[turn] ? 1 : 0;
    }
    return { ...system, index, pairStart, pairs, outcome, tags, right };
  });
  const unlabelled = new Set(core.unlabelled);
  const wrong = new Uint8Array(turns);
  for (const { outcome, right } of systems)
    for (let turn = 0; turn < turns; turn++) wrong[turn] += outcome[turn] !== NOT_ASKED && !right[turn];
  for (let turn = 0; turn < turns; turn++) if (unlabelled.has(turnDialogue[turn])) wrong[turn] = NOT_ASKED;
  const about = {};
  for (const [name, { names, codes }] of Object.entries(core.about))
    about[name] = { names, codes: decoders.u4(codes) };
  return {
    // Without gold labels, predictions are shown without verdicts.
    labelled: rowGold.some(Boolean),
    // A single dialogue is played on its own, without the list and the filters.
    single: dialogues === 1,
    ...core, none, unlabelled, rowStart, speaker, rowGold, turnRow, turns, turnStart, turnDialogue, gold, systems, wrong, about,
    dialogueIndex: new Map(core.dialogues.map((id, index) => [id, index])),
  };
}

// Whether a dialogue, or that of a turn, has gold labels to compare with.
const hasGold = dialogue => model.labelled && !model.unlabelled.has(dialogue);
const hasGoldAt = turn => hasGold(model.turnDialogue[turn]);

// Loads the text of a dialogue: one list of texts for each utterance.
async function loadText(dialogue) {
  const part = Number(root.dataset.part);
  const texts = await load(`text-${Math.floor(dialogue / part)}`);
  return texts[dialogue % part];
}

async function loadAnswer(system, turn) {
  const entry = requestOf(`answers-${system.index}`);
  const content = await load(`answers-${system.index}`);
  entry.index ??= decoders.u4(content.index);
  return {
    answer: content.answers.length ? content.answers[entry.index[turn]] : null,
    choices: content.choices[turn] || [],
  };
}

"""Token trees for training have the token ids, positions and losses of inference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from cradle_engines.local.local_engine import Local, load_local
from cradle_engines.local.reference import Reference
from cradle_extras.training.sequences import TokenTree, token_tree, without_beginning
from cradle_extras.training.trainer import batch
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Options
from cradle_lib.detection.protocol.session import Answer, Prompt, Session
from cradle_lib.labels import format_mask
from cradle_lib.prompts import load_template

from ...engines.local.tiny_models import CHAT, make_model, make_weights
from .dialogues import talks

# Chat templates of the families in the registry, reduced to one user message.
TEMPLATES = {
    "plain": CHAT,
    "qwen3": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if loud is defined and loud is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
    "smollm2": "{% for m in messages %}{% if loop.first %}<|im_start|>system\nHelp.<|end|>\n"
    "{% endif %}<|im_start|>user\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
}


@pytest.fixture
def corpus() -> Corpus:
    return talks(3)


class GoldAnswers(Reference):
    """The reference engine with gold labels as answers; records the token ids of prompts."""

    def __init__(self, local: Local, corpus: Corpus) -> None:
        super().__init__(make_model(Path()), Options(), local)
        self.gold = {(d.id, t.turn_id): format_mask(t.mask) for d in corpus for t in d.user_turns}
        self.shown: dict[str, list[list[int]]] = {}

    def reply(self, prompt: Prompt) -> Answer:
        ids = self._local.ids([prompt])[0]
        self.shown.setdefault(prompt.dialogue, []).append(ids)
        return Answer(self.gold[prompt.dialogue, prompt.turn])


def paths_of(tree: TokenTree) -> list[list[int]]:
    """Returns the ids from the root to each leaf; checks depths and attention on the way."""
    found = []
    for leaf in sorted(set(range(len(tree.ids))) - set(tree.parents.tolist())):
        path = [leaf]
        while tree.parents[path[0]] >= 0:
            path.insert(0, int(tree.parents[path[0]]))
        assert tree.depths[path].tolist() == list(range(len(path)))
        assert np.flatnonzero(tree.attention[leaf]).tolist() == sorted(path)
        found.append(tree.ids[path].tolist())
    return found


# Chat template and prompt: all prompts with one template, and `append` with all templates.
CASES = [("plain", prompt) for prompt in ("split", "brief")] + [
    (chat, "append") for chat in TEMPLATES
]


@pytest.mark.parametrize(("chat", "prompt"), CASES)
def test_training_ids_equal_inference_ids(
    corpus: Corpus, tmp_path: Path, chat: str, prompt: str
) -> None:
    folder = make_weights(tmp_path / "weights", chat=TEMPLATES[chat], context=100_000)
    local = load_local(make_model(folder, chat={"loud": False}), Options())
    template = load_template(prompt)
    engine = GoldAnswers(local, corpus)
    engine.answer_all((Session(d, template) for d in corpus), lambda _: None)
    alone = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for dialogue in corpus:
        tree = token_tree(dialogue, template, local)
        answers = [[*alone.encode(format_mask(t.mask)).ids, 0] for t in dialogue.user_turns]
        shown = engine.shown[dialogue.id]
        expected = [[*ids, *answer] for ids, answer in zip(shown, answers, strict=True)]
        assert sorted(paths_of(tree)) == sorted(expected)
        assert tree.plain == sum(map(len, expected))
        assert tree.turns == len(dialogue.user_turns)


# A family without sliding windows, and two with, one of them with eager attention.
@pytest.mark.parametrize("family", ["llama", "gemma3", "gpt-oss"])
def test_a_tree_has_the_losses_of_single_turns(corpus: Corpus, tmp_path: Path, family: str) -> None:
    folder = make_weights(tmp_path / "weights", family=family)
    local = load_local(make_model(folder), Options())
    lm = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for dialogue in corpus.dialogues[1:3]:
        tree = token_tree(dialogue, load_template("short"), local)
        inputs = batch(tree, local.lm.config)
        targets = inputs.pop("labels")[0]
        del inputs["weights"]
        with torch.no_grad():
            logits = local.lm(**inputs).logits[0]
            together = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
            alone = []
            for path in paths_of(tree):
                scores = lm(torch.tensor([path])).logits[0, :-1]
                each = torch.nn.functional.cross_entropy(
                    scores, torch.tensor(path[1:]), reduction="none"
                )
                start = max(i for i, token in enumerate(path) if token == 2) + 1
                alone += each[start - 1 :].tolist()
        assert sorted(together.tolist()) == pytest.approx(sorted(alone), abs=2e-4)


def test_a_long_dialogue_is_cut_at_a_turn_and_counted(corpus: Corpus, weights: Path) -> None:
    local = load_local(make_model(weights), Options())
    dialogue = corpus.dialogues[2]
    complete = token_tree(dialogue, load_template("short"), local)
    lengths = [len(path) for path in paths_of(complete)]
    assert len(lengths) == 4
    cut = token_tree(dialogue, load_template("short"), local, limit=sorted(lengths)[2] - 1)
    assert (cut.turns, cut.dropped) == (2, 2)
    assert {tuple(path) for path in paths_of(cut)} <= {tuple(path) for path in paths_of(complete)}
    assert token_tree(dialogue, load_template("short"), local, limit=16).turns == 0


def test_tokens_of_answers_with_labels_are_marked(corpus: Corpus, weights: Path) -> None:
    local = load_local(make_model(weights), Options())
    for dialogue in corpus:
        tree = token_tree(dialogue, load_template("short"), local)
        marked = local.tokenizer.decode(tree.ids[tree.targets[tree.labelled]])
        others = local.tokenizer.decode(tree.ids[tree.targets[~tree.labelled]])
        assert "none" not in marked
        assert set(others.replace("<|end|>", " ").split()) <= {"none"}


def test_a_dialogue_without_its_beginning_is_the_rest_of_it_with_its_last_label() -> None:
    generator = np.random.default_rng(7)
    opened = kept_whole = 0
    for dialogue in load_corpus("surrogate", "dev"):
        cut = without_beginning(dialogue, generator)
        left = len(dialogue.turns) - len(cut.turns)
        assert cut.turns[0].asked
        assert [t.turn_id for t in cut.turns] == [*range(len(cut.turns))]
        rest = dialogue.turns[left:]
        assert [(t.text, t.mask) for t in cut.turns] == [(t.text, t.mask) for t in rest]
        labelled = [t for t in dialogue.turns if t.mask]
        assert not labelled or labelled[-1].turn_id >= left
        opened += cut.turns[0].mask > 0
        kept_whole += left == 0
    # Complete dialogues of dev never open with a confirm.
    assert opened > 50
    assert kept_whole > 20

"""One sequence per dialogue: all its questions and answers as a tree of tokens.

At inference a model sees, at every user turn, the prompt with its own earlier tags, and writes
an answer. The sequences of a dialogue's turns have common prefixes, whose tokens are stored once
in the tree. A token attends to itself and its ancestors, and its position is its depth. Each path
from the root to a leaf therefore has the ids and positions of one turn's sequence, and one forward
pass gives the loss of all turns. With a template whose current turn is the last line of the
history, nearly all tokens are shared.

Token ids and prompts come from the code that is used at inference, so that training and inference
can't differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cradle_engines.local.local_engine import Local
from cradle_lib.corpus import Dialogue
from cradle_lib.detection.protocol.session import gold_questions
from cradle_lib.errors import EngineError
from cradle_lib.labels import format_mask
from cradle_lib.prompts import Template


@dataclass(frozen=True, eq=False)
class TokenTree:
    """The questions and answers of one dialogue.

    Attributes:
        ids: Token ids, parents before children. Shape (tokens,).
        parents: Index of the token before each, -1 for the first. Shape (tokens,).
        targets: Indices of the tokens of answers. Shape (targets,).
        labelled: Whether each target belongs to a turn with a label. Shape (targets,).
        turns: Number of user turns in the tree.
        dropped: Number of user turns left out because of the length limit.
        plain: Number of tokens that one sequence per turn would have.
    """

    ids: NDArray[np.int64]
    parents: NDArray[np.int64]
    targets: NDArray[np.int64]
    labelled: NDArray[np.bool_]
    turns: int
    dropped: int
    plain: int

    @property
    def depths(self) -> NDArray[np.int64]:
        """The position of each token in its sequences. Shape (tokens,)."""
        depths = np.zeros(len(self.ids), dtype=np.int64)
        for index in range(1, len(self.ids)):
            depths[index] = depths[self.parents[index]] + 1
        return depths

    @property
    def attention(self) -> NDArray[np.bool_]:
        """The tokens that each attends to: itself and its ancestors. Shape (tokens, tokens)."""
        mask = np.eye(len(self.ids), dtype=np.bool_)
        for index in range(1, len(self.ids)):
            mask[index] |= mask[self.parents[index]]
        return mask


def questions(
    dialogue: Dialogue, template: Template, local: Local
) -> Iterator[tuple[list[int], list[int], int]]:
    """Gives the questions of a dialogue with gold tags in the history, and the gold answers.

    Yields for each user turn the token ids of the prompt, those of the answer with an end token,
    and the mask of the gold labels. The model itself is not used, only its configuration,
    tokenizer and chat template.

    Raises:
        EngineError: If no end token is known, or the chat template opens a thought before the
            answer.
    """
    local.chat.require_no_open_thought("training")
    end = local.chat.training_end(local.ends)
    if end is None:
        raise EngineError(
            "neither the base's configuration nor its tokenizer or chat template names a token "
            "that ends an answer. Set `eos_token` in its tokenizer_config.json."
        )
    for prompt, mask in gold_questions(dialogue, template):
        written = local.tokenizer(format_mask(mask), add_special_tokens=False)["input_ids"]
        yield local.ids([prompt])[0], [*written, end], mask


def without_beginning(dialogue: Dialogue, generator: np.random.Generator) -> Dialogue:
    """Leaves out all rows before a user turn that is drawn at random.

    All user turns up to the last labelled one are equally likely, the first one (which leaves
    nothing out) included; in a dialogue without labels, all user turns.
    """
    last = max((turn.turn_id for turn in dialogue.user_turns if turn.mask), default=None)
    starts = [t.turn_id for t in dialogue.user_turns if last is None or t.turn_id <= last]
    if not starts:
        return dialogue
    kept = dialogue.turns[int(generator.choice(starts)) :]
    turns = tuple(replace(turn, turn_id=number) for number, turn in enumerate(kept))
    return replace(dialogue, turns=turns)


def token_tree(
    dialogue: Dialogue, template: Template, local: Local, limit: int | None = None
) -> TokenTree:
    """Builds the tree of one dialogue.

    The first turn whose sequence has more tokens than ``limit``, and all after it, are left out.
    """
    ids: list[int] = []
    parents: list[int] = []
    children: dict[tuple[int, int], int] = {}
    targets: dict[int, bool] = {}
    turns = plain = 0
    for prompt, answer, mask in questions(dialogue, template, local):
        if limit is not None and len(prompt) + len(answer) > limit:
            break
        turns += 1
        plain += len(prompt) + len(answer)
        node = -1
        for position, token in enumerate([*prompt, *answer]):
            parent, node = node, children.setdefault((node, token), len(ids))
            if node == len(ids):
                ids.append(token)
                parents.append(parent)
            if position >= len(prompt):
                targets[node] = bool(mask)
    return TokenTree(
        ids=np.array(ids, dtype=np.int64),
        parents=np.array(parents, dtype=np.int64),
        targets=np.array(list(targets), dtype=np.int64),
        labelled=np.array(list(targets.values()), dtype=np.bool_),
        turns=turns,
        dropped=len(dialogue.user_turns) - turns,
        plain=plain,
    )

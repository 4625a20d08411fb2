"""One sequence per dialogue: all its questions and answers as a tree of tokens.

At inference a model sees, at every user turn, the prompt with its own earlier tags, and writes
an answer. The sequences of a dialogue's turns begin alike: what two of them share is here one
token, seen by both. A token of the tree attends to those above it and stands at its depth, so
that each path from the root to a leaf is, id for id and place for place, the sequence of one
turn, and one forward pass gives the loss of all of them. With a template whose current turn is
the last line of the history, nearly everything is shared.

The ids come from the code that serves models and the prompts from the code that asks them, so
that training can't show a model anything else than inference does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cradle_lib.corpus import Dialogue
from cradle_lib.detection.local.local_engine import Local
from cradle_lib.detection.session import gold_questions
from cradle_lib.errors import EngineError
from cradle_lib.labels import format_mask
from cradle_lib.prompts import Template


@dataclass(frozen=True, eq=False)
class TokenTree:
    """The questions and answers of one dialogue.

    Attributes:
        ids: Token ids; a token stands behind those above it. Shape (tokens,).
        parents: Index of the token before each, -1 for the first. Shape (tokens,).
        targets: Indices of the tokens that answers consist of. Shape (targets,).
        labelled: Whether each target belongs to a turn with a label. Shape (targets,).
        turns: Number of user turns in it.
        dropped: User turns that are not in it, because they are beyond the length limit.
        plain: Tokens of the same questions and answers as one sequence per turn.
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
        """The place of each token in the sequences that it is part of. Shape (tokens,)."""
        depths = np.zeros(len(self.ids), dtype=np.int64)
        for index in range(1, len(self.ids)):
            depths[index] = depths[self.parents[index]] + 1
        return depths

    @property
    def sees(self) -> NDArray[np.bool_]:
        """Which tokens each token attends to: those above it and itself. Shape (tokens, tokens)."""
        sees = np.eye(len(self.ids), dtype=np.bool_)
        for index in range(1, len(self.ids)):
            sees[index] |= sees[self.parents[index]]
        return sees


def questions(
    dialogue: Dialogue, template: Template, local: Local
) -> Iterator[tuple[list[int], list[int], int]]:
    """Asks all questions of a dialogue as they are asked when the model gives the gold tags.

    Yields for each user turn the ids of the prompt, those of the answer with a token at which
    inference ends an answer, and the mask of the answer. The model itself is not used, only its
    configuration, tokenizer and chat.

    Raises:
        EngineError: If no token is known to end an answer.
        EngineError: If the chat template opens a thought before the answer.
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


def token_tree(
    dialogue: Dialogue, template: Template, local: Local, limit: int | None = None
) -> TokenTree:
    """Builds the tree of one dialogue.

    The first turn whose sequence has more tokens than the limit, and all after it, are left out.
    """
    ids: list[int] = []
    parents: list[int] = []
    below: dict[tuple[int, int], int] = {}
    targets: dict[int, bool] = {}
    turns = plain = 0
    for prompt, answer, mask in questions(dialogue, template, local):
        if limit is not None and len(prompt) + len(answer) > limit:
            break
        turns += 1
        plain += len(prompt) + len(answer)
        node = -1
        for place, token in enumerate([*prompt, *answer]):
            above, node = node, below.setdefault((node, token), len(ids))
            if node == len(ids):
                ids.append(token)
                parents.append(above)
            if place >= len(prompt):
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

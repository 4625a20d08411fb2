"""Estimates the cost of a run from its prompts, before anything is sent.

The prompts come from the sessions of a run, with the gold labels in place of the answers. The
cached part of a prompt follows from how prompts grow: all begin with the same instruction, and each
repeats the history of the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.api.money import Place, Usage, total
from cradle_lib.detection.api.tokens import TOKENIZER, count_tokens, last_seam
from cradle_lib.detection.model import Model
from cradle_lib.detection.registry import find_model, load_registry
from cradle_lib.detection.selection import choose_dialogues
from cradle_lib.detection.session import Answer, Session, gold_questions
from cradle_lib.labels import BITS, format_mask
from cradle_lib.prompts import Template, load_template
from cradle_lib.record import History

_PRICES: Final = ("input", "cached", "written", "output")
_COLUMNS: Final = (
    "system", "calls", "fresh_tokens", "cached_tokens", "written_tokens", "output_tokens",
    *(f"{kind}_price" for kind in _PRICES), "date", "source",
    "cost", "uncached_cost", "highest_cost", "tokenizer", "own_tokenizer",
)  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """Estimated tokens of each call of a run.

    Attributes:
        model: The entry of the registry.
        corpus: Name of the corpus.
        calls: For each user turn, by dialogue and ``turn_id``, its tokens.
    """

    model: Model
    corpus: str
    calls: Mapping[Place, Usage]

    @property
    def usage(self) -> Usage:
        """All tokens, with caching."""
        return total(self.calls.values())

    @property
    def own_tokenizer(self) -> bool:
        """Whether tokens were counted with the model's own tokenizer."""
        return self.model.tokenizer == TOKENIZER

    @property
    def longest_output(self) -> int:
        """Tokens of all answers if each reaches its limit: an upper bound."""
        return len(self.calls) * (self.model.decoding.max_new_tokens if self.model.decoding else 0)

    @property
    def cost(self) -> float | None:
        """Dollars with caching; ``None`` without prices."""
        return self._priced(self.usage)

    @property
    def uncached_cost(self) -> float | None:
        """Dollars without a cache; ``None`` without prices."""
        return self._priced(self.usage.uncached)

    @property
    def highest_cost(self) -> float | None:
        """Dollars if cached tokens are written but never read, and answers reach their limit."""
        usage = self.usage
        written = usage.cached + usage.written
        return self._priced(Usage(usage.fresh, 0, written, self.longest_output))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences about the tokenizer, the prompts and the prices of the estimate."""
        whose = "the model's own" if self.own_tokenizer else "not the model's own, but near"
        prices = self.model.prices
        charged = (
            f"Prices of {prices.date}: {prices.source}"
            if prices
            else f"No prices: the entry {self.model.id} in models.yml has none, so tokens only."
        )
        return (
            f"Tokens were counted with {TOKENIZER} ({whose}) in the run's own prompts, with the "
            "gold labels in place of the model's tags and as its answers. Reasoning is not "
            "counted, and is charged as output.",
            charged,
        )

    def restricted(self, places: Iterable[Place]) -> Estimate:
        """Restricts the estimate to some turns, such as those that a run has answered."""
        kept = {place: self.calls[place] for place in places if place in self.calls}
        return Estimate(self.model, self.corpus, kept)

    def _priced(self, usage: Usage) -> float | None:
        return usage.cost(self.model.prices) if self.model.prices else None


def estimate_cost(
    model: Model,
    corpus: Corpus,
    *,
    history: History = "self",
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Estimate:
    """Estimates the tokens of a run; sends nothing and needs no key.

    Assumptions: the instruction stays in the cache between dialogues, and nothing is asked twice.
    Not counted: the few tokens that a provider adds to each message, and reasoning, which is
    charged as output.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        history: Whose labels the history shows.
        limit: Only this many dialogues, from the start.
        sample: Only this many dialogues, as a run with the same number would choose them.
        seed: Seed of the sample.

    Returns:
        The estimate.

    Raises:
        EngineError: If tokens can't be counted on this machine.
        RegistryError: If there is no such prompt template.
    """
    template = load_template(model.prompt)
    caching = model.caching
    charged = model.prices is not None and model.prices.written is not None
    start = last_seam(template.text, template.static - 1)
    before = count_tokens(template.text[:start])
    instruction = count_tokens(template.text[: template.static])
    calls: dict[Place, Usage] = {}
    for dialogue in choose_dialogues(corpus, limit, sample, seed):
        # The cache has the instruction from its second use on.
        kept = instruction if calls else 0
        # A prompt begins like the one before it: only new text is counted.
        counted, at = before, start
        for prompt, mask in gold_questions(dialogue, template, history):
            end = max((prompt.static, *prompt.ends))
            seam = max(last_seam(prompt.text, end), at)
            counted, at = counted + count_tokens(prompt.text[at:seam]), seam
            prefix = counted + count_tokens(prompt.text[seam:end])
            whole = counted + count_tokens(prompt.text[seam:])
            read = min(kept, prefix)
            read = read - read % caching.step if read >= caching.minimum else 0
            keeps = charged and prefix >= caching.minimum
            written = max(prefix - read, 0) if keeps else 0
            calls[prompt.dialogue, prompt.turn] = Usage(
                fresh=whole - read - written,
                cached=read,
                written=written,
                output=count_tokens(format_mask(mask)),
            )
            kept = prefix
    return Estimate(model, corpus.name, calls)


def estimate_costs(
    corpus: Corpus, models: Sequence[str] = (), history: History = "self"
) -> pd.DataFrame:
    """Estimates tokens and cost of runs over a whole corpus, by :func:`estimate_cost`.

    Args:
        corpus: The corpus.
        models: Ids in the registry; if none is named, all whose entries have no fault. Those
            without prices are left out.
        history: Whose labels the history shows.

    Returns:
        One row for each model with prices; none if there is no such model.

        - ``system`` (str): its name; ``calls`` (int): user turns.
        - ``fresh_tokens``, ``cached_tokens``, ``written_tokens``, ``output_tokens`` (int): tokens
          of the prompts that are neither kept nor read from a cache, read from one, and written to
          one; and of the answers.
        - ``input_price``, ``cached_price``, ``written_price``, ``output_price`` (float): dollars
          per million of these tokens; NaN for a kind that is charged as any other token of the
          prompt.
        - ``date``, ``source`` (str): when and where the prices were looked up.
        - ``cost``, ``uncached_cost``, ``highest_cost`` (float): dollars with caching; if nothing
          is read from a cache; and if, besides, all is written to one and every answer runs to its
          limit.
        - ``tokenizer`` (str): what tokens were counted with; ``own_tokenizer`` (bool): whether it
          is the model's own.

    Raises:
        CradleError: If there is no such model, or tokens can't be counted on this machine.
    """
    registry, rows = load_registry(), []
    for model in [find_model(name, registry) for name in models] or registry.sound:
        prices = model.prices
        if prices is None:
            continue
        found = estimate_cost(model, corpus, history=history)
        usage = found.usage
        tokens = (usage.fresh, usage.cached, usage.written, usage.output)
        amounts = (getattr(prices, kind) for kind in _PRICES)
        costs = (found.cost, found.uncached_cost, found.highest_cost)
        counted = (TOKENIZER, found.own_tokenizer)
        about = (str(prices.date), prices.source)
        rows.append((model.name, len(found.calls), *tokens, *amounts, *about, *costs, *counted))
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.astype({f"{kind}_price": float for kind in _PRICES})


def longest_prompts(
    dialogues: Iterable[Dialogue], template: Template, history: History
) -> dict[Place, int]:
    """Calculates the most UTF-8 bytes of each user turn's prompt.

    The model's own tags in the history are assumed to be all labels in every turn.
    """
    sizes = {}
    for dialogue in dialogues:
        session = Session(dialogue, template, history)
        while (prompt := session.prompt) is not None:
            sizes[prompt.dialogue, prompt.turn] = len(prompt.text.encode())
            session.answer(Answer(format_mask(sum(BITS.values()))))
    return sizes

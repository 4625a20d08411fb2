"""What runs cost: tokens and prices by kind, an upper bound for a run, and a run's budget.

Each kind of token has its own price in ``models.yml``, because the price of cached tokens differs
even between models of one provider. Money spent is computed from the usage that a service reports.

Bounds need no tokenizer: under byte-level tokenizers each token is at least one byte of text, so
that a prompt has at most as many tokens as UTF-8 bytes and :data:`WRAPPING`, and an answer at most
its limit. English text has about four bytes per token, and most tokens of a run are read from the
provider's cache, so that the actual cost is far lower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Final

from cradle_lib.corpus import Dialogue
from cradle_lib.detection.model import Decoding, Model, Prices
from cradle_lib.detection.session import Answer, Prediction, Session
from cradle_lib.errors import EngineError
from cradle_lib.formatting import dollars
from cradle_lib.labels import BITS, NONE, format_mask
from cradle_lib.prompts import Template
from cradle_lib.record import History

_MILLION: Final = 1_000_000
# Tokens that a service adds to a message: role markers, and the first words of its template.
WRAPPING: Final = 256
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens by the price that is charged. Each token is in exactly one field.

    Attributes:
        fresh: Prompt tokens that were computed and not kept.
        cached: Prompt tokens read from a cache.
        written: Prompt tokens computed and written to a cache.
        output: Tokens of answers, reasoning included.
    """

    fresh: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the prompts."""
        return self.fresh + self.cached + self.written

    def cost(self, prices: Prices) -> float:
        """Calculates the cost in dollars.

        Cached and written tokens without their own price are charged as ordinary input.
        """
        cached = prices.input if prices.cached is None else prices.cached
        written = prices.input if prices.written is None else prices.written
        return (
            self.fresh * prices.input
            + self.cached * cached
            + self.written * written
            + self.output * prices.output
        ) / _MILLION


def usage_of(prediction: Prediction) -> Usage | None:
    """Reads the usage of an answer; ``None`` if the service did not report it."""
    if prediction.tokens_in is None:
        return None
    cached, written = prediction.tokens_cached or 0, prediction.tokens_written or 0
    fresh = max(prediction.tokens_in - cached - written, 0)
    return Usage(fresh, cached, written, prediction.tokens_out or 0)


def total_usage(predictions: Iterable[Prediction]) -> tuple[Usage, int]:
    """Adds up the usage of answers, and counts the answers whose usage was reported."""
    used = [usage for answer in predictions if (usage := usage_of(answer)) is not None]
    kinds = zip(*map(astuple, used), strict=True)
    return Usage(*map(sum, kinds)), len(used)


def prompt_sizes(
    dialogues: Iterable[Dialogue], template: Template, history: History, answer: str = NONE
) -> dict[Place, int]:
    """Calculates the UTF-8 bytes of each user turn's prompt, if every answer is the given one."""
    sizes = {}
    for dialogue in dialogues:
        session = Session(dialogue, template, history)
        while (prompt := session.prompt) is not None:
            sizes[prompt.dialogue, prompt.turn] = len(prompt.text.encode())
            session.answer(Answer(answer))
    return sizes


def longest_prompts(
    dialogues: Iterable[Dialogue], template: Template, history: History
) -> dict[Place, int]:
    """Calculates the most UTF-8 bytes of each user turn's prompt.

    The model's own predictions in the history are assumed to be all labels in every turn.
    """
    return prompt_sizes(dialogues, template, history, format_mask(sum(BITS.values())))


def answer_limit(model: Model) -> int:
    """The most tokens that a model may write in one answer."""
    return (model.decoding or Decoding()).max_new_tokens


def highest_cost(model: Model, size: int, answer: str = "") -> float:
    """Calculates the most dollars that a call can cost.

    Args:
        model: An entry with prices.
        size: The most UTF-8 bytes of the prompt.
        answer: The answer, if it is known, because a service may ignore the limit of its length.

    Raises:
        EngineError: If the entry has no prices.
    """
    if model.prices is None:
        raise EngineError(
            f"{model.name}: --max-cost needs prices, and the entry {model.id} in models.yml has "
            "none. Add `prices` with the provider's, their date and source."
        )
    tokens = size + WRAPPING
    prompts = (Usage(fresh=tokens), Usage(cached=tokens), Usage(written=tokens))
    output = max(answer_limit(model), len(answer.encode()))
    dearest = max(prompt.cost(model.prices) for prompt in prompts)
    return dearest + Usage(output=output).cost(model.prices)


def usual_cost(prices: Prices, sizes: Iterable[int]) -> float:
    """Calculates roughly what calls cost, in dollars, from the UTF-8 bytes of their prompts.

    It assumes four bytes per token, answers of ten tokens, and that nothing is cached.
    """
    calls = [Usage(fresh=size // 4, output=10) for size in sizes]
    return sum(call.cost(prices) for call in calls)


class Budget:
    """Limits the spending of a run: says when the next call might exceed the limit.

    If a service reports its usage, that is charged. Otherwise (an answer without usage, a refusal,
    a call that failed after it reached the service) :func:`highest_cost` is charged. Each call in
    flight is assumed to cost as much as the most expensive call of the run. Only calls that were in
    flight when the process was killed are unknown.

    Args:
        model: The entry of the registry.
        limit: Most dollars for the run, all its starts together.
        prompts: The most UTF-8 bytes of the prompt of each user turn.
        spent: The answers of earlier starts.

    Raises:
        EngineError: If the entry has no prices.
    """

    def __init__(
        self,
        model: Model,
        limit: float,
        prompts: Mapping[Place, int],
        spent: Iterable[Prediction] = (),
    ) -> None:
        self.limit = limit
        self.spent = 0.0
        self._model, self._prompts = model, prompts
        self._longest = max(prompts.values(), default=0)
        self.dearest = highest_cost(model, self._longest)
        self._calls = 1
        for prediction in spent:
            self.add(prediction)

    def check(self) -> None:
        """Refuses to start if the limit does not allow one more call.

        Raises:
            EngineError: With the money spent, and the highest cost of a call.
        """
        if self.spent + self.dearest > self.limit:
            raise EngineError(f"{self.state}. Give a higher limit to go on.")

    @property
    def state(self) -> str:
        """Describes the money spent, and the highest cost of the next call."""
        return (
            f"{dollars(self.spent)} of --max-cost {dollars(self.limit)} are spent (calls without "
            f"reported usage as an upper bound), and one more may cost {dollars(self.dearest)}"
        )

    def add(self, prediction: Prediction) -> None:
        """Charges one call: its reported usage, or else an upper bound."""
        usage = usage_of(prediction)
        if usage is not None and prediction.tokens_out is not None and self._model.prices:
            cost = usage.cost(self._model.prices)
        else:
            size = self._prompts.get((prediction.dialogue, prediction.turn), self._longest)
            cost = highest_cost(self._model, size, prediction.answer)
        self.spent += cost
        self.dearest = max(self.dearest, cost)

    def concurrency(self, wanted: int) -> int:
        """Number of calls that may be in flight at the same time; at least one."""
        affordable = int((self.limit - self.spent) / self.dearest) if self.dearest else wanted
        self._calls = max(1, min(wanted, affordable))
        return self._calls

    @property
    def exhausted(self) -> bool:
        """Whether a further call beside those in flight could break the limit."""
        return self.spent + self._calls * self.dearest > self.limit

"""Cost of answers: tokens and prices by kind, and the budget of a run.

Each kind of token has its own price in ``models.yml``, because the price of cached tokens differs
even between models of one provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Final

from cradle_lib.detection.model import Decoding, Model, Prices
from cradle_lib.detection.session import Prediction
from cradle_lib.errors import EngineError
from cradle_lib.formatting import dollars

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

    @property
    def kinds(self) -> dict[str, int]:
        """Tokens of the prompts by their use of the cache, in words."""
        return {
            "read from a cache": self.cached,
            "written to a cache": self.written,
            "neither": self.fresh,
        }

    @property
    def uncached(self) -> Usage:
        """The same tokens without a cache."""
        return Usage(fresh=self.prompt, output=self.output)

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


def total(usages: Iterable[Usage]) -> Usage:
    """Adds up counts, kind by kind; zeros for none."""
    kinds = zip(*map(astuple, usages), strict=True)
    return Usage(*map(sum, kinds))


def with_usage(predictions: Iterable[Prediction]) -> list[tuple[Prediction, Usage]]:
    """Pairs answers with their usage; answers without a reported usage are left out."""
    return [(p, usage) for p in predictions if (usage := usage_of(p))]


def usage_of(prediction: Prediction) -> Usage | None:
    """Reads the usage of an answer; ``None`` if the service did not report it."""
    if prediction.tokens_in is None:
        return None
    cached, written = prediction.tokens_cached or 0, prediction.tokens_written or 0
    return Usage(
        fresh=max(prediction.tokens_in - cached - written, 0),
        cached=cached,
        written=written,
        output=prediction.tokens_out or 0,
    )


class Budget:
    """Limits the spending of a run: says when the next call might exceed the limit.

    If a service reports its usage, that is charged. Otherwise (an answer without usage, a refusal,
    a call that failed after it reached the service) an upper bound is charged at the highest
    price: each token is at least one byte of text under byte-level tokenizers, so that a prompt has
    at most as many tokens as UTF-8 bytes and :data:`WRAPPING`, and an answer at most its limit or
    its bytes. Each call in flight is assumed to cost as much as the most expensive call of the run.
    Only calls that were in flight when the process was killed are unknown.

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
        if model.prices is None:
            raise EngineError(
                f"{model.name}: --max-cost needs prices, and the entry {model.id} in models.yml "
                "has none. Add `prices` with the provider's, their date and source."
            )
        self.limit = limit
        self.spent = self.counted = 0.0
        self._prices = model.prices
        self._output = (model.decoding or Decoding()).max_new_tokens
        self._prompts = prompts
        self._longest = max(prompts.values(), default=0)
        self.dearest = self._most(self._longest, self._output)
        self._calls = 1
        for prediction in spent:
            self.add(prediction)

    def check(self) -> None:
        """Refuses to start if the limit does not allow one more call.

        Raises:
            EngineError: With what is spent and what a call may cost.
        """
        if not self._allows(1):
            raise EngineError(f"{self.state}. Give a higher limit to go on.")

    @property
    def state(self) -> str:
        """Describes the money spent, and the highest cost of the next call."""
        counted = (
            f" ({dollars(self.counted)} of it counted here, upwards, because the service did not "
            "say what it used)"
            if self.counted
            else ""
        )
        return (
            f"{dollars(self.spent)} of --max-cost {dollars(self.limit)} are spent{counted}, and "
            f"one more call may cost {dollars(self.dearest)}"
        )

    def add(self, prediction: Prediction) -> None:
        """Charges one call: its reported usage, or else an upper bound."""
        usage = usage_of(prediction)
        if usage is not None and prediction.tokens_out is not None:
            cost = usage.cost(self._prices)
        else:
            place = prediction.dialogue, prediction.turn
            output = max(self._output, len(prediction.answer.encode()))
            cost = self._most(self._prompts.get(place, self._longest), output)
            self.counted += cost
        self.spent += cost
        self.dearest = max(self.dearest, cost)

    def concurrency(self, wanted: int) -> int:
        """Number of calls that may be in flight at the same time; at least one."""
        affordable = int((self.limit - self.spent) / self.dearest) if self.dearest else wanted
        self._calls = max(1, min(wanted, affordable))
        return self._calls

    def _most(self, size: int, output: int) -> float:
        tokens = size + WRAPPING
        prompts = (Usage(fresh=tokens), Usage(cached=tokens), Usage(written=tokens))
        dearest = max(prompt.cost(self._prices) for prompt in prompts)
        return dearest + Usage(output=output).cost(self._prices)

    @property
    def exhausted(self) -> bool:
        """Whether a further call beside those in flight could break the limit."""
        return not self._allows(self._calls)

    def _allows(self, calls: int) -> bool:
        return self.spent + calls * self.dearest <= self.limit

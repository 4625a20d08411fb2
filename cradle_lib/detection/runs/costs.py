"""Costs of runs: usage and prices by kind of token, upper bounds, and budgets.

Each kind of token has its own price in ``models.yml``, because the price of cached tokens differs
even between models of one provider. The cost of a run is computed from the usage that the service
reports.

Upper bounds need no tokenizer: with byte-level tokenizers a token has at least one byte of text, so
a prompt has at most as many tokens as UTF-8 bytes plus :data:`MESSAGE_OVERHEAD`, and an answer at
most its limit. English text has about four bytes per token, and most tokens of a run are read from
the provider's cache, so the actual cost is far lower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from cradle_lib.arguments import checked
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.models.model import Decoding, Model, Prices
from cradle_lib.detection.models.registry import load_registry, resolve
from cradle_lib.detection.protocol.session import Answer, Prediction, Session
from cradle_lib.detection.runs.journal import read_answers
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.detection.runs.stored_answers import run_files
from cradle_lib.errors import EngineError
from cradle_lib.formatting import dollars
from cradle_lib.labels import BITS, NONE, format_mask
from cradle_lib.prompts import Template, load_template
from cradle_lib.record import History

if TYPE_CHECKING:
    import pandas as pd

_MILLION: Final = 1_000_000
# Upper bound of the tokens that a service adds to a message, such as role markers.
MESSAGE_OVERHEAD: Final = 256
TurnKey = tuple[str, int]
_ALL_LABELS: Final = format_mask(sum(BITS.values()))
_COSTS: Final = (
    "system", "calls", "prompt_bytes", "answer_tokens", "input_price", "output_price", "date",
    "source", "usual_cost", "highest_cost",
)  # fmt: skip
_USED: Final = (
    "system", "answers", "silent", "prompt_tokens", "cached", "written", "output_tokens",
    "seconds", "cost",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens by the price that is charged. Each token is in exactly one field.

    Attributes:
        fresh: Prompt tokens that were computed and not written to a cache.
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
    dialogues: Iterable[Dialogue],
    template: Template,
    history: History,
    answer: str = _ALL_LABELS,
    *,
    neutralise: bool = True,
) -> dict[TurnKey, int]:
    """Calculates the UTF-8 bytes of each user turn's prompt if every answer is the given one.

    The default answer, all labels, gives the maximum sizes.
    """
    sizes = {}
    for dialogue in dialogues:
        session = Session(dialogue, template, history, neutralise=neutralise)
        while (prompt := session.prompt) is not None:
            sizes[prompt.dialogue, prompt.turn] = len(prompt.text.encode())
            session.answer(Answer(answer))
    return sizes


def answer_limit(model: Model) -> int:
    """Maximum number of tokens of a model's answer."""
    return (model.decoding or Decoding()).max_new_tokens


def highest_cost(model: Model, size: int, answer: str = "") -> float:
    """Calculates the maximum cost of a call in dollars.

    Args:
        model: An entry with prices.
        size: The maximum size of the prompt in UTF-8 bytes.
        answer: The answer, if it is known, because a service may ignore the limit of its length.

    Raises:
        EngineError: If the entry has no prices.
    """
    if model.prices is None:
        raise EngineError(
            f"{model.name}: --max-cost needs prices, but the entry {model.id} in models.yml has "
            "none. Add `prices`: the provider's prices, their date and source."
        )
    tokens = size + MESSAGE_OVERHEAD
    prompts = (Usage(fresh=tokens), Usage(cached=tokens), Usage(written=tokens))
    output = max(answer_limit(model), len(answer.encode()))
    highest = max(prompt.cost(model.prices) for prompt in prompts)
    return highest + Usage(output=output).cost(model.prices)


class Budget:
    """Tracks the cost of a run, and whether further calls might exceed its limit.

    If a service reports its usage, that is charged. Otherwise (an answer without usage, a refusal,
    a call that failed after it reached the service) :func:`highest_cost` is charged. Each open call
    is assumed to cost as much as the most expensive call of the run. Only calls that were in
    flight when the process was killed are not counted.

    Args:
        model: The entry of the registry.
        limit: Maximum cost of the run in dollars, over all its starts.
        prompts: Maximum size of each user turn's prompt in UTF-8 bytes.
        spent: The answers of earlier starts.

    Raises:
        EngineError: If the entry has no prices.
    """

    def __init__(
        self,
        model: Model,
        limit: float,
        prompts: Mapping[TurnKey, int],
        spent: Iterable[Prediction] = (),
    ) -> None:
        self.limit = limit
        self.spent = 0.0
        self._model, self._prompts = model, prompts
        self._longest = max(prompts.values(), default=0)
        self.highest = highest_cost(model, self._longest)
        for prediction in spent:
            self.add(prediction)

    def check(self) -> None:
        """Checks that the limit allows one more call.

        Raises:
            EngineError: If it does not; the message has the money spent and the cost of a call.
        """
        if not self.allows(1):
            raise EngineError(f"{self.state(1)}. Give a higher limit to go on.")

    def state(self, calls: int) -> str:
        """Describes the money spent, and the highest cost of the open or next calls."""
        cost = dollars(calls * self.highest)
        more = f"one more may cost {cost}" if calls == 1 else f"{calls} open calls may cost {cost}"
        return (
            f"{dollars(self.spent)} of --max-cost {dollars(self.limit)} are spent (calls without "
            f"reported usage as an upper bound), and {more}"
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
        self.highest = max(self.highest, cost)

    def allows(self, calls: int) -> bool:
        """Whether so many calls at the same time can't exceed the limit."""
        return self.spent + calls * self.highest <= self.limit

    def parallel(self, wanted: int) -> int:
        """Gives how many of the wanted calls the limit allows at the same time, at least one."""
        affordable = int((self.limit - self.spent) / self.highest) if self.highest else wanted
        return max(1, min(wanted, affordable))


# ---- Data frames ---------------------------------------------------------------------------


@checked
def estimate_costs(
    dialogues: Iterable[Dialogue], models: Sequence[str | Model] = (), history: History = "self"
) -> pd.DataFrame:
    """Estimates the cost of runs, and an upper bound.

    Nothing is sent, and no key is needed.

    Args:
        dialogues: The dialogues, such as a whole corpus.
        models: Models, or their ids in the registry; if none is given, all entries with prices.
        history: Labels that the history shows: ``self``, ``gold`` or ``none``.

    Returns:
        One row for each model.

        - ``system`` (str): its name; ``calls`` (int): user turns.
        - ``prompt_bytes`` (int): maximum size of all prompts in UTF-8 bytes. A token has at least
          one byte; in English text it has about four.
        - ``answer_tokens`` (int): tokens of all answers if each reaches its limit.
        - ``input_price``, ``output_price`` (float): dollars per million tokens.
        - ``date``, ``source`` (str): when and where the prices were looked up.
        - ``usual_cost`` (float): dollars if a token has four bytes, an answer ten tokens, and
          nothing is read from a cache.
        - ``highest_cost`` (float): dollars if each byte of a prompt is a token, nothing is read
          from a cache, and every answer reaches its limit.

        The columns of prices and costs are empty for a model without prices.

    Raises:
        RegistryError: If there is no such model or prompt template.
    """
    import pandas as pd

    rows = []
    chosen = [resolve(model) for model in models]
    chosen = chosen or [model for model in load_registry().values() if model.prices]
    dialogues = list(dialogues)
    for model in chosen:
        template, shown = load_template(model.prompt), model.neutralise
        sizes_of = partial(prompt_sizes, dialogues, template, history, neutralise=shown)
        sizes = sizes_of()
        row: dict[str, object] = {
            "system": model.name,
            "calls": len(sizes),
            "prompt_bytes": sum(sizes.values()),
            "answer_tokens": len(sizes) * answer_limit(model),
        }
        if (prices := model.prices) is not None:
            row |= {"input_price": prices.input, "output_price": prices.output}
            row |= {"date": str(prices.date), "source": prices.source}
            usual = sizes_of(NONE).values()
            calls = [Usage(fresh=size // 4, output=10) for size in usual]
            row["usual_cost"] = sum(call.cost(prices) for call in calls)
            row["highest_cost"] = sum(highest_cost(model, size) for size in sizes.values())
        rows.append(row)
    return pd.DataFrame(rows, columns=list(_COSTS))


@checked
def run_usage(corpus: Corpus, runs: Sequence[str | Predictions]) -> pd.DataFrame:
    """Adds up the tokens, the time and the dollars of runs, including repeated calls.

    Args:
        corpus: The corpus of the runs.
        runs: Runs, ids in the registry, specs, or names of journals; models without a run are left
            out.

    Returns:
        One row for each run.

        - ``system`` (str): the run's name.
        - ``answers`` (int): stored answers; ``silent`` (int): answers without token counts, which
          the sums leave out.
        - ``prompt_tokens``, ``output_tokens`` (float): tokens of prompts and of answers; NaN if no
          answer has a count, as for baselines.
        - ``cached``, ``written`` (float): shares of the prompts' tokens, 0 to 1, that were read
          from a cache and written to one; NaN as above.
        - ``seconds`` (float): median seconds per answer.
        - ``cost`` (float): dollars that the run cost at the prices in the registry; NaN without
          prices.

    Raises:
        CradleError: If there is no such model, or a run can't be read.
    """
    import pandas as pd

    registry = load_registry()
    rows: list[dict[str, object]] = []
    for run in runs:
        files = run_files(run, corpus) if isinstance(run, str) else run.files
        read = [read_answers(file) for file in files]
        answers = [answer for _, stored in read for answer in stored]
        if not answers:
            continue
        record = read[0][0] if isinstance(run, str) else run.record
        entry = registry.get(record.model)
        if entry and entry.engine != record.engine:
            entry = None
        usage, counted = total_usage(answers)
        row: dict[str, object] = {
            "system": entry.name if entry and isinstance(run, str) else record.name,
            "answers": len(answers),
            "silent": len(answers) - counted,
            "seconds": np.median([answer.seconds for answer in answers]),
        }
        if counted:
            row["prompt_tokens"], row["output_tokens"] = usage.prompt, usage.output
            row["cached"] = usage.cached / max(usage.prompt, 1)
            row["written"] = usage.written / max(usage.prompt, 1)
        if counted and entry and entry.prices:
            row["cost"] = usage.cost(entry.prices)
        rows.append(row)
    return pd.DataFrame(rows, columns=list(_USED))

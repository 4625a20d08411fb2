"""Public functions refuse wrong arguments in one sentence."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

import cradle_lib as cradle
from cradle_lib import paths
from cradle_lib.arguments import Positive, Range, Share, _hints, misfit
from cradle_lib.detection import Options, Predictions, benchmark_results
from cradle_lib.errors import ArgumentError, CradleError
from cradle_lib.scoring import chosen_thresholds

from .scoring.made_runs import AO, run_of

PAGES = [path.read_text(encoding="utf-8") for path in sorted(paths.BOOK.glob("api*.md"))]
NAMES = re.findall(r"autofunction:: (cradle_[\w.]+)", "\n".join(PAGES))
RUN = run_of([[(AO, AO), (0, AO)], [(0, 0)]])


class Stranger:
    """Fits no annotation."""


def public(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_of_every_public_function_is_checked(name: str) -> None:
    function = public(name)
    parameters = inspect.signature(function).parameters.values()
    hints = _hints(inspect.unwrap(function))
    for one in parameters:
        if one.annotation not in ("Any", "object | None"):
            assert misfit("it", Stranger(), hints[one.name]), one
    if parameters:
        with pytest.raises(ArgumentError, match=r": too many positional .* Its arguments are .*"):
            function(*range(9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cradle.evaluate(RUN, level="turns"), "level is 'turns'. Choose one of turn, dial"),
        (lambda: cradle.evaluate(RUN, level=["turn"]), "level is a list. Choose one of turn, "),
        (lambda: cradle.evaluate("keyword"), "predictions is 'keyword', expected Predictions, as"),
        (lambda: cradle.evaluate(RUN, lvel="turn"), "evaluate: got an unexpected keyword argument"),
        (lambda: cradle.evaluate(RUN, seed=-1), "seed is -1. It must be at least 0."),
        (lambda: cradle.evaluate(RUN, draws=True), "draws is True, expected a whole number."),
        (lambda: cradle.evaluate(RUN).estimate("micro"), "no score 'micro'. Did you mean 'micro_"),
        (lambda: cradle.evaluate(RUN).estimate("f1", "SH"), "no label 'SH'. Choose one of alert_"),
        (lambda: cradle.compare([RUN]), "runs to compare: M. Name two or more, each once."),
        (lambda: cradle.compare(RUN), "runs is a Predictions, expected a list, each item Predict"),
        (lambda: cradle.compare([RUN, "M"]), r"runs\[1\] is 'M', expected Predictions, as `run_mo"),
        (lambda: cradle.sensitivity([]), "there is no run to score. Give at least one."),
        (lambda: cradle.subgroups(RUN, "tming"), "by is 'tming'. Choose one of timing, scenario,"),
        (lambda: cradle.error_cases([RUN], most=-1), "most is -1. It must be at least 1."),
        (lambda: chosen_thresholds([RUN], recalls=[80]), r"recalls\[0\] is 80. It must be between"),
        (lambda: cradle.load_corpus(123), "corpus is 123, expected text or a path."),
        (lambda: cradle.load_corpus("surrogate", "tset"), "no split 'tset'. Splits are train, dev"),
        (lambda: cradle.stored_runs(RUN.corpus, "keyword"), "models is 'keyword', expected a list"),
        (lambda: cradle.run_model(min, RUN.corpus, "x"), "history is 'x'. Choose one of self, "),
        (lambda: cradle.run_model("keyword", "surrogate"), "corpus is 'surrogate', expected Corp"),
        (lambda: cradle.run_model("keyword", RUN.corpus, limit=0), "limit is 0. It must be at le"),
        (lambda: cradle.run_model(lambda _: "", RUN.corpus), "a lambda has no name for its run."),
        (lambda: cradle.run_model("keyword", RUN.corpus, tempo=1), "unknown field `tempo` in `dec"),
        (lambda: cradle.run_model("openai:m", RUN.corpus, base_url=1), "base_url is 1, expected t"),
        (lambda: Options(concurrency=0), "concurrency is 0. It must be at least 1."),
        (lambda: benchmark_results("speed"), "what is 'speed'. Choose one of inference, capacity"),
        (lambda: cradle.show(RUN.to_frame()), "show: missing a required argument: 'caption'. Its"),
        (lambda: cradle.show(RUN.to_frame(), "A.", rows="turns"), "no column 'turns'. Did you mea"),
        (lambda: cradle.show(RUN.to_frame(), "A.", best="gold"), "no name in `rows` or `columns`"),
        (lambda: cradle.listed(RUN.to_frame(), "{turns}"), "no column 'turns'. Did you mean 'tur"),
        (lambda: cradle.listed(RUN.to_frame(), "{turn:x.}"), "form is '{turn:x.}', which can't be"),
        (lambda: cradle.heat_map(RUN.to_frame(), rows="gold", columns="tag"), "no column 'tag'"),
        (lambda: cradle.run_agreement(RUN.to_frame(), RUN.to_frame()), "no column 'question'"),
        (lambda: cradle.link_to_turns(golden="any"), "no term 'golden'. Did you mean 'gold'"),
        (lambda: cradle.choose("System", {"a": 3}), r"shown\['a'\] is 3, expected Shown."),
        (lambda: cradle.explore({}), "the data have no 'core'. Give the result of `explorer_data`"),
        (lambda: cradle.Notice(3), "message is 3, expected text."),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_described(call: Callable[[], object], message: str) -> None:
    with pytest.raises(CradleError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


# Annotations, and the same for Pydantic.
HINTS: list[tuple[Any, Any]] = [
    (hint, hint)
    for hint in (
        *(bool, int, float, str, int | None, str | Path, Literal["turn", 3]),
        *(Sequence[str], Sequence[int | None], Mapping[str, float], tuple[str, int]),
        *(tuple[int, ...], Sequence[tuple[str, bool]], Mapping[str, Sequence[int]], Any),
    )
]
HINTS += [
    (Positive, Annotated[int, Field(ge=1)]),
    (Share, Annotated[float, Field(ge=0, le=1)]),
    (Sequence[Share] | None, Sequence[Annotated[float, Field(ge=0, le=1)]] | None),
    (Annotated[int, Range(-2, 2)], Annotated[int, Field(ge=-2, le=2)]),
]
simple = (
    st.none() | st.booleans() | st.integers(-4, 4) | st.floats(width=16, allow_infinity=False)
    | st.sampled_from(["turn", "", Path("a")])
)  # fmt: skip
values = st.recursive(
    simple,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.mark.parametrize(("hint", "strict"), HINTS, ids=lambda hint: str(hint)[:40])
@given(value=values)
def test_values_fit_as_in_strict_pydantic(hint: Any, strict: Any, value: Any) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(strict, config=ConfigDict(strict=True))
    try:
        adapter.validate_python(value)
        fits = True
    except ValidationError:
        fits = False
    assert (misfit("x", value, hint) is None) == fits


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (np.int64(3), Positive),
        (np.float32(0.5), Share),
        (np.array([1, 2]), Sequence[int]),
        (pd.Series(["a"]), Sequence[str]),
        ((n for n in range(2)), Iterable[int]),
        (RUN, Predictions),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_and_columns_of_other_libraries_fit(value: Any, hint: Any) -> None:
    assert misfit("x", value, hint) is None

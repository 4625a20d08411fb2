"""The surrogate annotations lead to the shipped gold labels and the published outcomes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cradle_extras.label_studio.exports import SHIPPED
from cradle_lib.annotation.adjudication import Adjudication, adjudicate
from cradle_lib.annotation.agreement import ALL_LABELS, agreement
from cradle_lib.annotation.load import load_annotations
from cradle_lib.annotation.pairs import Units, pairs
from cradle_lib.annotation.table import Annotations
from cradle_lib.annotation.voting import OUTCOME_KEYS, Outcome
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.labels import LABELS
from cradle_lib.published import published_table
from tools.annotations.build import build_annotations
from tools.annotations.noise import CLEAR

GROUPS = [("1", 1), ("1", 2), ("2", 1), ("2", 2)]


@pytest.fixture(scope="module")
def surrogate() -> Corpus:
    return load_corpus("surrogate", "test")


@pytest.fixture(scope="module")
def shipped(surrogate: Corpus) -> Annotations:
    return load_annotations(surrogate)


@pytest.fixture(scope="module")
def result(shipped: Annotations) -> Adjudication:
    return adjudicate(shipped)


def published(key: str) -> float:
    return published_table()[key].value


def annotation_value(key: str) -> float:
    return published(f"annotation.{key}")


def test_adjudication_gives_the_shipped_gold(result: Adjudication, surrogate: Corpus) -> None:
    assert result.corpus().fingerprint == surrogate.fingerprint


def test_outcomes_have_the_published_counts(result: Adjudication) -> None:
    expected = {o: published(f"adjudication.{key}") for o, key in OUTCOME_KEYS.items()}
    assert expected == result.counts
    exact, resolved = result.counts[Outcome.EXACT], result.counts[Outcome.RESOLVED]
    assert published("adjudication.turn_mismatch") == 600 - exact
    assert published("adjudication.final_mismatch") == 600 - exact - resolved


def measured(shipped: Annotations, team: str, number: int, units: Units) -> pd.DataFrame:
    chosen = pairs(shipped, team=team, round_=number)
    return agreement(chosen, units=units, draws=0).set_index(["measure", "label"])


@pytest.mark.parametrize(("team", "number"), GROUPS)
def test_agreement_is_in_the_published_ranges(shipped: Annotations, team: str, number: int) -> None:
    found = measured(shipped, team, number, "all").loc[("exact_match", ALL_LABELS), "value"]
    assert 100 * found == pytest.approx(annotation_value(f"team{team}_round1_exact_match"), abs=1)
    found = measured(shipped, team, number, "labelled")
    kappa = found.loc[("kappa", ALL_LABELS), "value"]
    assert annotation_value("kappa_low") <= kappa <= annotation_value("kappa_high")
    of_labels = found.loc["jaccard"]
    jaccard = of_labels["value"]
    for label in ("alert_ongoing", "alert_past"):
        low, high = (annotation_value(f"team{team}_alert_jaccard_{end}") for end in ("low", "high"))
        assert low <= jaccard[label] <= high
    times = of_labels[["both", "one", "other"]].sum(axis=1)
    given = [LABELS[i] for i in CLEAR if times[LABELS[i]]]
    assert len(given) >= 10
    for label in given:
        low, high = (
            annotation_value(f"team{team}_confirm_jaccard_{end}") for end in ("low", "high")
        )
        assert low <= round(jaccard[label], 2) <= high
    assert jaccard["confirm_SI_passive_ongoing"] == pytest.approx(
        annotation_value("si_passive_jaccard"), abs=0.03
    )


@pytest.mark.shipped
def test_the_generator_reproduces_the_shipped_bytes(tmp_path: Path, shipped: Annotations) -> None:
    (tmp_path / "round9-Z.json.gz").write_bytes(b"of an older study")
    assert build_annotations(tmp_path).entries == shipped.entries
    names = sorted(path.name for path in SHIPPED.iterdir() if path.suffix != ".md")
    assert names == sorted(path.name for path in tmp_path.iterdir())
    for name in names:
        assert (tmp_path / name).read_bytes() == (SHIPPED / name).read_bytes()
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 3_000_000

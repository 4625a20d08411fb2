"""Names and messages with brackets are printed as they are, and end no command."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import Result

from cradle_lib.cli.commands import compare, models
from cradle_lib.cli.console import err, out
from cradle_lib.detection import load_registry, registry
from cradle_lib.detection.registry import Registry
from cradle_lib.errors import CradleError

from .in_process import invoke

# The package has a function of this name.
main = import_module("cradle_lib.cli.main")
NAME = r"onerror=alert(1) $x_1$ [/x] [red]x[/red] :bomb: {{evil}} `*_|\#\`"


@pytest.fixture(autouse=True)
def _hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model of the registry has the same strange name, source of prices and hardware."""

    def renamed() -> Registry:
        update = {"name": NAME, "hardware": NAME}
        return Registry(
            {m.id: m.model_dump(exclude={"id"}) | update for m in load_registry().sound}
        )

    # A console keeps the width that it found when it was made.
    monkeypatch.setattr(out, "width", 300)
    for module in (compare, models, registry):
        monkeypatch.setattr(module, "load_registry", renamed)


@pytest.fixture
def corpus(tiny: Path) -> Path:
    return tiny.rename(tiny.with_name("[red] $y$.csv"))


def cradle(*arguments: str | Path) -> Result:
    done = invoke(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def test_models_are_listed_by_their_names() -> None:
    assert cradle("models", "list").stdout.count(NAME) == len(load_registry())


def test_a_run_is_made_scored_and_compared(corpus: Path, tmp_path: Path) -> None:
    made = {}
    for model in ("always-none", "keyword"):
        folder = tmp_path / "[/runs]"
        done = cradle("infer", "--model", model, "--corpus", corpus, "--out", folder)
        made[model] = folder / corpus.stem / f"{model}.jsonl"
        assert str(made[model]) in done.stdout.replace("\n", "")
    scored = cradle("score", made["keyword"], "--corpus", corpus, "--draws", "5")
    # Titles are broken at spaces.
    assert NAME.replace(" ", "") in "".join(scored.stdout.split())
    compared = cradle("compare", *made.values(), "--corpus", corpus, "--permutations", "5")
    assert f"Against{NAME.replace(' ', '')}" in "".join(compared.stdout.split())


def test_an_estimate_names_the_model() -> None:
    done = cradle("estimate", "--model", "gpt-5.1", "--sample", "2")
    assert NAME.replace(" ", "") in "".join(done.stdout.split())


def test_an_error_is_printed_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise CradleError(f"no model {NAME}")

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code == 2
    assert capsys.readouterr().err == f"error: no model {NAME}\n"
    err.print(NAME)
    assert capsys.readouterr().err == f"{NAME}\n"

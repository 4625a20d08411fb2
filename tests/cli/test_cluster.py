"""``--cluster`` and ``cradle join`` as a user meets them; SLURM itself is in ``tests/cluster``."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cradle_lib.cli.cluster import Tally, Wanted, wanted, words_of
from cradle_lib.errors import ClusterError, CradleError

from .in_process import invoke

MEASURED = re.compile(rb'"(?:seconds|started)": (?:"[^"]*"|[0-9.e-]+)')
KEYWORD = ["infer", "--model", "keyword", "--limit", "4", "--out"]


def normal(folder: Path) -> bytes:
    return MEASURED.sub(b"-", (folder / "surrogate-test" / "keyword.jsonl").read_bytes())


def test_processes_leave_the_journal_of_one_and_are_gone_on_with(tmp_path: Path) -> None:
    assert invoke(*KEYWORD, tmp_path / "one").exit_code == 0
    # Begun in one process, over fewer dialogues: the shards take over what it answered.
    assert invoke("infer", "--model", "keyword", "--limit", "2", "--out", tmp_path).exit_code == 0
    done = invoke(*KEYWORD, tmp_path, "--cluster", "local", "--shards", "2", "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["turns"] == content["outcomes"]["ok"] > 0
    assert normal(tmp_path) == normal(tmp_path / "one")
    before = (tmp_path / "surrogate-test" / "keyword.jsonl").read_bytes()
    # Finished: nothing is started, and nothing changes.
    assert invoke(*KEYWORD, tmp_path, "--cluster", "local", "--shards", "2").exit_code == 0
    assert (tmp_path / "surrogate-test" / "keyword.jsonl").read_bytes() == before


def test_the_journal_of_another_run_is_not_taken_to_pieces(tmp_path: Path) -> None:
    assert invoke(*KEYWORD, tmp_path, "--history", "gold").exit_code == 0
    [journal] = (tmp_path / "surrogate-test").glob("*.jsonl")
    before = journal.read_bytes()
    options = ["--limit", "5", "--cluster", "local", "--shards", "2"]
    refused = invoke("infer", "--model", "keyword", "--out", journal, *options)
    assert isinstance(refused.exception, CradleError)
    assert "belongs to another run, with another history" in str(refused.exception)
    assert journal.read_bytes() == before


def test_shards_made_by_hand_are_joined(tmp_path: Path) -> None:
    assert invoke(*KEYWORD, tmp_path / "one").exit_code == 0
    for shard in ("0/2", "1/2"):
        assert invoke(*KEYWORD, tmp_path, "--shard", shard).exit_code == 0
    journal = tmp_path / "surrogate-test" / "keyword.jsonl"
    other = invoke("join", journal, "--split", "dev")
    assert isinstance(other.exception, CradleError)
    assert "Name its corpus with --corpus" in str(other.exception)
    done = invoke("join", journal, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"journal": str(journal), "shards": 2}
    assert normal(tmp_path) == normal(tmp_path / "one")
    # The shards are still there; a shard that is not is named.
    [first, second] = sorted(journal.parent.glob("keyword.shard-*"))
    journal.unlink()
    second.unlink()
    for words in ([journal], [first]):
        refused = invoke("join", *words)
        assert isinstance(refused.exception, CradleError)
        assert "1/2" in str(refused.exception)
        assert "\n" not in str(refused.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster", "local"], "--cluster goes with --shards"),
        (["--shards", "2"], "--cluster goes with --shards"),
        (["--cluster", "local", "--shards", "2", "--shard", "0/2"], "without --shard"),
        (["--cluster", "cloud", "--shards", "2"], "no cluster 'cloud'. Choose slurm or local"),
        (["--cluster", "local", "--shards", "2", "--account", "us"], "--account is SLURM's"),
        (["--gres", "gpu:1"], "--gres says what tasks need"),
        (["--cluster", "slurm", "--shards", "2", "--sbatch", "mem"], "expected name=value"),
    ],
)
def test_options_that_do_not_go_together_are_said(
    tmp_path: Path, options: list[str], message: str
) -> None:
    refused = invoke(*KEYWORD, tmp_path, *options)
    assert isinstance(refused.exception, ClusterError)
    assert message in str(refused.exception)


def test_a_cluster_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke("infer", "--model", "keyword", "--limit", "1", "--out", tmp_path).exit_code == 0
    journal = tmp_path / "surrogate-test" / "keyword.jsonl"
    before = journal.read_bytes()
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = invoke(*KEYWORD, tmp_path, "--cluster", "slurm", "--shards", "2")
    # What was answered before is where it was.
    assert journal.read_bytes() == before
    assert "there is no SLURM here: sbatch, squeue, scancel not found" in str(refused.exception)


def test_a_refused_account_is_said_in_slurms_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What sbatch of a cluster with accounts says.
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(
        "#!/bin/sh\necho 'sbatch: error: Batch job submission failed: Invalid account or "
        "account/partition combination specified' >&2\nexit 1\n"
    )
    for name in ("squeue", "scancel", "srun"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    for name in ("sbatch", "squeue", "scancel", "srun"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    options = ["--cluster", "slurm", "--shards", "2", "--account", "theirs"]
    refused = invoke(*KEYWORD, tmp_path / "runs", *options)
    assert isinstance(refused.exception, ClusterError)
    told = str(refused.exception)
    assert told == (
        "SLURM refuses the tasks: Batch job submission failed: Invalid account or "
        "account/partition combination specified."
    )


def test_a_task_is_the_command_that_was_typed() -> None:
    found: list[tuple[str, ...]] = []
    small = typer.Typer()

    @small.command()
    def infer(
        context: typer.Context,
        model: str = typer.Option(...),
        folder: Path = typer.Option(Path("runs"), "--out"),  # noqa: B008
        decoding: list[str] = typer.Option(None),  # noqa: B008
        limit: int = 0,
        yes: bool = typer.Option(False, "--yes"),
        shard: str = "",
        cluster: str = "",
    ) -> None:
        found.append(words_of(context, shard="1/2", yes=True))

    typed = "--model openai:m --decoding seed=3 --decoding temperature=0.5 --cluster slurm"
    done = CliRunner().invoke(small, shlex.split(typed))
    assert done.exit_code == 0, done.output
    assert shlex.join(found[0]) == (
        "--model openai:m --decoding seed=3 --decoding temperature=0.5 --yes --shard 1/2"
    )


@pytest.mark.parametrize("program", ["cradle", "python -m cradle_lib.cli"])
def test_a_task_gets_the_command_whatever_the_program_is_called(program: str) -> None:
    found: list[tuple[str, ...]] = []
    app, group = typer.Typer(), typer.Typer()
    app.add_typer(group, name="construct")

    @group.command()
    def write(context: typer.Context) -> None:
        found.append(words_of(context))

    done = CliRunner().invoke(app, ["construct", "write"], prog_name=program)
    assert done.exit_code == 0, done.output
    assert found == [("construct", "write")]


def test_each_process_has_gpus_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    place = wanted("local", "gpu:2", None, None, None, None)
    assert place == Wanted("local", {"gres": "gpu:2"})
    seen = [place.environment(number)["CUDA_VISIBLE_DEVICES"] for number in range(3)]
    assert seen == ["4,5", "6,7", "4,5"]
    # Without --gres all see what their parent sees; SLURM sees to it itself.
    assert Wanted("local", {}).environment(1) == {"CUDA_VISIBLE_DEVICES": "4,5,6,7"}
    assert Wanted("slurm", {"gres": "gpu:2"}).environment(1) == {}
    with pytest.raises(ClusterError, match="shows 4 GPUs"):
        Wanted("local", {"gres": "gpu:a100:8"}).environment(0)


def test_answers_are_counted_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    tally = Tally([path])
    assert tally(0) == 0
    path.write_text('{"record": {}}\n{"outcome": "ok"}\n{"outcome": "failed"}\n{"outcome": "o')
    assert tally(0) == 1
    with path.open("a") as file:
        file.write('k"}\n{"outcome": "refused"}\n')
    assert tally(0) == 3

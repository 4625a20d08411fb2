"""``cradle cluster`` and ``cradle join`` as a user meets them; ``test_slurm`` has SLURM itself."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from cradle_extras.cluster.command import count_answers, open_cluster, run_jobs
from cradle_extras.cluster.jobs import Commands, End, Local
from cradle_lib import paths
from cradle_lib.errors import CradleError, EngineError, JournalError

from ...cli.in_process import invoke
from .gated_server import GatedServer

MEASURED = re.compile(rb'"(?:seconds|started)": (?:"[^"]*"|[0-9.e-]+)')
OPTIONS = ["--model", "keyword", "--set", "limit=4", "--out"]
KEYWORD = ["infer", *OPTIONS]
SHARDS = ["cluster", "local", "--shards", "2", *OPTIONS]


def normal(folder: Path) -> bytes:
    return MEASURED.sub(b"-", (folder / "surrogate-test" / "keyword.jsonl").read_bytes())


def test_processes_leave_the_journal_of_one_and_are_gone_on_with(tmp_path: Path) -> None:
    assert invoke(*KEYWORD, tmp_path / "one").exit_code == 0
    # A shard that was begun by hand is gone on with.
    assert invoke(*KEYWORD, tmp_path, "--shard", "1/2").exit_code == 0
    done = invoke(*SHARDS, tmp_path, "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["turns"] == content["outcomes"]["ok"] > 0
    assert normal(tmp_path) == normal(tmp_path / "one")
    before = (tmp_path / "surrogate-test" / "keyword.jsonl").read_bytes()
    # Finished: nothing is started, and nothing changes.
    assert invoke(*SHARDS, tmp_path).exit_code == 0
    assert (tmp_path / "surrogate-test" / "keyword.jsonl").read_bytes() == before


def test_an_unfinished_journal_is_left_alone(tmp_path: Path) -> None:
    part = ["infer", "--model", "keyword", "--set", "limit=2", "--out", tmp_path]
    assert invoke(*part).exit_code == 0
    [journal] = (tmp_path / "surrogate-test").glob("*.jsonl")
    before = journal.read_bytes()
    refused = invoke(*SHARDS, tmp_path)
    assert isinstance(refused.exception, JournalError)
    assert "Finish it with `cradle infer`, or move it away" in str(refused.exception)
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
    ("words", "message"),
    [
        (["local", "--shards", "2", "--shard", "0/2"], "--shard is set for each job"),
        (["cloud", "--shards", "2"], "no cluster 'cloud'. Choose slurm or local"),
        (["local", "--shards", "2", "--sbatch", "account=us"], "--sbatch account is SLURM's"),
        (["slurm", "--shards", "2", "--sbatch", "mem"], "expected name=value"),
    ],
)
def test_options_that_do_not_go_together_are_said(
    tmp_path: Path, words: list[str], message: str
) -> None:
    refused = invoke("cluster", *words, *OPTIONS, tmp_path)
    assert isinstance(refused.exception, EngineError)
    assert message in str(refused.exception)


@pytest.mark.parametrize(
    ("words", "message"), [(["--modle", "keyword"], "--modle"), (["--sample", "x"], "--sample")]
)
def test_a_mistake_in_the_options_of_infer_is_said(words: list[str], message: str) -> None:
    refused = invoke("cluster", "local", "--shards", "2", *words)
    assert refused.exit_code == 2
    assert message in refused.output


def test_a_cluster_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = invoke("cluster", "slurm", "--shards", "2", *OPTIONS, tmp_path)
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
    words = ["cluster", "slurm", "--shards", "2", "--sbatch", "account=theirs"]
    refused = invoke(*words, *OPTIONS, tmp_path / "runs")
    assert isinstance(refused.exception, EngineError)
    told = str(refused.exception)
    assert told == (
        "SLURM refuses the tasks: Batch job submission failed: Invalid account or "
        "account/partition combination specified."
    )


def test_each_process_has_gpus_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[dict[str, str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *_, env, **__: started.append(env))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    journal = tmp_path / "m.jsonl"
    commands = {number: ["infer"] for number in range(3)}
    open_cluster("local", ["gres=gpu:2"], tmp_path, journal).submit(commands)
    assert [env["CUDA_VISIBLE_DEVICES"] for env in started] == ["4,5", "6,7", "4,5"]
    # Without gres all see what their parent sees.
    open_cluster("local", [], tmp_path, journal).submit({1: ["infer"]})
    assert started[-1]["CUDA_VISIBLE_DEVICES"] == "4,5,6,7"
    with pytest.raises(EngineError, match="shows 4 GPUs"):
        open_cluster("local", ["gres=gpu:a100:8"], tmp_path, journal)


def test_answers_are_counted_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    assert count_answers(path) == 0
    path.write_text('{"record": {}}\n{"outcome": "ok"}\n{"outcome": "failed"}\n{"outcome": "o')
    assert count_answers(path) == 1
    with path.open("a") as file:
        file.write('k"}\n{"outcome": "refused"}\n')
    assert count_answers(path) == 3


class Scripted:
    """A cluster whose jobs end as a list says, one end for each submission of a shard."""

    def __init__(self, ends: dict[int, list[End | BaseException]]) -> None:
        self.ends, self.jobs = ends, dict[int, End | BaseException]()
        self.submitted: list[int] = []
        self.told: list[str] = []

    def submit(self, commands: Commands) -> None:
        self.submitted += commands
        self.jobs |= {index: self.ends[index].pop(0) for index in commands}

    def ended(self) -> dict[int, End]:
        for end in self.jobs.values():
            if isinstance(end, BaseException):
                raise end
        return {index: end for index, end in self.jobs.items() if isinstance(end, End)}

    def interrupt(self) -> None:
        self.told.append("interrupt")
        if self.ends.pop(9, None) is None:
            self.jobs = dict.fromkeys(self.jobs, FINE)

    def kill(self) -> None:
        self.told.append("kill")


KILLED, FINE = End(None, "timeout"), End(0, "Next: cradle score")


@pytest.mark.parametrize(
    ("ends", "submitted", "failed"),
    [
        ({0: [FINE], 1: [End(1)]}, [0, 1], []),
        ({0: [FINE], 1: [KILLED, FINE]}, [0, 1, 1], []),
        ({0: [KILLED, FINE], 1: [KILLED, FINE]}, [0, 1, 0, 1], []),
        ({0: [FINE], 1: [KILLED, KILLED]}, [0, 1, 1], ["shard 1/2: died (timeout)"]),
        # A reason that the command gave, or somebody who ended the job, would be the same again.
        ({0: [End(2, "no key"), FINE], 1: [End(2, "no key")]}, [0, 1], ["shard 0/2, 1/2: no key"]),
        (
            {0: [FINE], 1: [End(None, "cancelled", cancelled=True)]},
            [0, 1],
            ["shard 1/2: died (cancelled)"],
        ),
    ],
)
def test_a_job_that_dies_is_submitted_once_more(
    ends: dict[int, list[End | BaseException]],
    submitted: list[int],
    failed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    cluster = Scripted(ends)
    shown: list[None] = []
    assert run_jobs(cluster, {0: [], 1: []}, lambda: shown.append(None)) == failed
    assert cluster.submitted == submitted
    assert shown
    assert not cluster.told


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), OSError(28, "No space"), SystemExit(3)])
def test_whatever_else_happens_ends_the_jobs(
    problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    cluster = Scripted({0: [FINE], 1: [problem]})
    with pytest.raises(type(problem)):
        run_jobs(cluster, {0: [], 1: []}, lambda: None)
    assert cluster.told == ["interrupt"]
    # A second Ctrl-C while calls in flight are awaited.
    cluster = Scripted({0: [FINE], 1: [KeyboardInterrupt()], 9: []})
    with pytest.raises(KeyboardInterrupt):
        run_jobs(cluster, {0: [], 1: []}, lambda: None)
    assert cluster.told == ["interrupt", "kill"]


def test_the_end_of_a_process_has_its_reason(tmp_path: Path) -> None:
    cluster = Local(tmp_path, 0)
    cluster.submit({0: ["--version"], 1: ["score", "missing.jsonl"]})
    for index in (0, 1):
        cluster.jobs[index].wait()
    # Killed long before it has started.
    cluster.submit({2: ["models", "list"]})
    cluster.kill()
    cluster.jobs[2].wait()
    ended = cluster.ended()
    assert ended[0].status == 0
    assert ended[1].status == 2
    assert ended[1].reason.startswith("missing.jsonl: ")
    assert not ended[1].reason.endswith(".")
    assert ended[2] == End(None, "killed by SIGKILL")


def start(*words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cradle_lib.cli", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=paths.ROOT,
        env={**os.environ, "COLUMNS": "200"},
        # A job in the background of a shell inherits that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_ctrl_c_keeps_what_was_answered_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with GatedServer(3) as server:
        served = ["--model", "openai:m", "--set", f"base_url={server.url}"]
        served += ["--set", "concurrency=1", "--set", "limit=6", "--out"]
        many = ["cluster", "local", "--shards", "2"]
        first = start(*many, *served, tmp_path)
        assert server.wait_for(2)
        first.send_signal(signal.SIGINT)
        logs = tmp_path / "surrogate-test" / ".openai-m.cluster"
        waiting = threading.Event()
        for _ in range(600):
            told = [log.read_text() for log in logs.glob("shard-*.log")]
            if sum("waiting for the calls in flight" in text for text in told) == 2:
                break
            waiting.wait(0.1)
        server.open()
        out, err = first.communicate(timeout=60)
        assert first.returncode == 130, out + err
        assert "wait for calls in flight" in err
        assert "the same command resumes" in err
        shards = sorted((tmp_path / "surrogate-test").glob("openai-m.shard-*"))
        # The answers to the questions that were open came after Ctrl-C, and are kept.
        assert [count_answers(shard) for shard in shards] == [4, 4]
        assert server.asked == 8
        second = start(*many, *served, tmp_path)
        out, err = second.communicate(timeout=60)
        assert second.returncode == 0, out + err
        asked = server.asked
        alone = start("infer", *served, tmp_path / "one")
        out, err = alone.communicate(timeout=60)
        assert alone.returncode == 0, out + err
    name = "surrogate-test/openai-m.jsonl"
    one, joined = (
        MEASURED.sub(b"-", (at / name).read_bytes()) for at in (tmp_path / "one", tmp_path)
    )
    assert joined == one
    # No question was asked twice.
    assert asked == count_answers(tmp_path / name)


def test_another_number_of_shards_does_not_ask_again(tmp_path: Path) -> None:
    assert invoke(*KEYWORD, tmp_path, "--shard", "0/2").exit_code == 0
    [shard] = (tmp_path / "surrogate-test").glob("*.jsonl")
    before = shard.read_bytes()
    refused = invoke("cluster", "local", "--shards", "3", *OPTIONS, tmp_path)
    assert isinstance(refused.exception, EngineError)
    assert "Finish it with --shards 2" in str(refused.exception)
    assert invoke(*SHARDS, tmp_path).exit_code == 0
    assert invoke(*KEYWORD, tmp_path / "one").exit_code == 0
    assert normal(tmp_path) == normal(tmp_path / "one")
    # The shard that was there was gone on with.
    answered = MEASURED.sub(b"-", before).split(b"\n")[1:-1]
    assert set(answered) <= set(normal(tmp_path).split(b"\n"))


def test_shards_of_another_start_are_left_alone(tmp_path: Path) -> None:
    with GatedServer(1) as server:
        served = ["cluster", "local", "--shards", "2", "--model", "openai:m"]
        served += ["--set", f"base_url={server.url}", "--set", "concurrency=1"]
        served += ["--set", "limit=4", "--out", tmp_path]
        first = start(*served)
        assert server.wait_for(2)
        second = start(*map(str, served))
        out, err = second.communicate(timeout=60)
        assert second.returncode == 2, out + err
        assert "another process is writing this journal" in err
        # Killed, it leaves its processes; the next start asks nothing beside them.
        first.kill()
        first.communicate()
        third = start(*map(str, served))
        out, err = third.communicate(timeout=60)
        assert third.returncode == 2, out + err
        assert "another process is writing this journal" in err
        assert server.asked == 4
        server.open()
        # They end by themselves, and what they answered is not asked again.
        for shard in sorted((tmp_path / "surrogate-test").glob("openai-m.shard-*.jsonl")):
            FileLock(shard.with_name(f".{shard.name}.lock")).acquire(timeout=60).lock.release()
        asked = server.asked
        last = start(*served)
        out, err = last.communicate(timeout=60)
        assert last.returncode == 0, out + err
        assert server.asked == asked

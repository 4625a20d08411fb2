"""Tasks are led to their end; the place is played, and no time passes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cradle_lib.cluster.task import End, Task, perform, read_end
from cradle_lib.cluster.watch import TRIES, Standing, failures, lead
from cradle_lib.errors import ClusterError

TASKS = [Task(f"shard {n}/2", ("infer", str(n))) for n in range(2)]


class Played:
    """A place whose tasks do what a list says: an exit status, or the state in which they die."""

    slowest = 1.0
    lasting = True

    def __init__(
        self, fates: dict[str, list[int | str]], left: dict[str, str] | None = None
    ) -> None:
        self.fates, self.known = fates, left or {}
        self.submitted: list[str] = []
        self.cancelled: list[str] = []

    def submit(self, tasks: Sequence[tuple[Task, Path]]) -> list[str]:
        ids = []
        for task, end in tasks:
            ids.append(f"{len(self.submitted)}")
            self.submitted.append(task.name)
            fate = self.fates[task.name].pop(0)
            self.known[ids[-1]] = fate if isinstance(fate, str) else "COMPLETED"
            if isinstance(fate, int):
                end.write_text(json.dumps({"status": fate, "said": f"{task.name} says"}))
        return ids

    def states(self, ids: Sequence[str]) -> dict[str, str]:
        return {name: self.known.get(name, "FORGOTTEN") for name in ids}

    def cancel(self, ids: Sequence[str]) -> None:
        self.cancelled += ids

    def settle(self) -> None:
        pass


def run(place: Played, folder: Path, steps: Iterator[int] | None = None) -> list[End]:
    said: list[str] = []
    return lead(
        TASKS,
        place,
        folder / "c",
        further=lambda _: next(steps) if steps else 0,
        notice=said.append,
        pause=lambda _: None,
    )


def test_who_dies_is_submitted_again_and_who_ends_is_not(tmp_path: Path) -> None:
    place = Played({"shard 0/2": ["NODE_FAIL", "TIMEOUT", 0], "shard 1/2": [1]})
    ends = run(place, tmp_path)
    assert [end.status for end in ends] == [0, 1]
    assert place.submitted == ["shard 0/2", "shard 1/2", "shard 0/2", "shard 0/2"]
    assert failures(TASKS, ends, tmp_path) == []
    # Nothing is left of what was noted.
    assert not (tmp_path / "c").exists()


def test_who_gets_no_further_is_given_up_and_who_does_is_not(tmp_path: Path) -> None:
    dead: list[int | str] = ["FAILED"] * 50
    place = Played({"shard 0/2": list(dead), "shard 1/2": [0]})
    ends = run(place, tmp_path)
    assert place.submitted.count("shard 0/2") == TRIES
    [told] = failures(TASKS, ends, tmp_path / "c")
    assert "shard 0/2 died (failed) 3 times in a row, without getting further in between" in told
    # What is needed to find out why is kept.
    assert (tmp_path / "c").exists()
    # One more answer every time: as often as it takes.
    place = Played({"shard 0/2": [*dead[:20], 0], "shard 1/2": [0]})
    ends = run(place, tmp_path, iter(range(1000)))
    assert place.submitted.count("shard 0/2") == 21
    assert [end.status for end in ends] == [0, 0]


def test_who_was_cancelled_stays_cancelled(tmp_path: Path) -> None:
    place = Played({"shard 0/2": ["CANCELLED"], "shard 1/2": [0]})
    ends = run(place, tmp_path)
    assert place.submitted.count("shard 0/2") == 1
    assert "shard 0/2 died (cancelled)" in ends[0].said


def test_who_says_why_it_can_not_go_on_is_believed(tmp_path: Path) -> None:
    place = Played({"shard 0/2": [2], "shard 1/2": [2]})
    ends = run(place, tmp_path)
    assert len(place.submitted) == 2
    assert len(failures(TASKS, ends, tmp_path)) == 2
    same = [End(2, "no weights"), End(2, "no weights")]
    [told] = failures(TASKS, same, tmp_path)
    assert told.startswith("shard 0/2, shard 1/2: no weights")


def test_a_note_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    place = Played({"shard 0/2": ["COMPLETED"], "shard 1/2": [0]})
    looks = iter(range(100))

    def pause(_: float) -> None:
        if next(looks) == 3:
            (tmp_path / "c" / "end-0.json").write_text('{"status": 0, "said": ""}')

    lead(TASKS, place, tmp_path / "c", further=lambda _: 0, pause=pause)
    assert place.submitted == ["shard 0/2", "shard 1/2"]


def leave(folder: Path, words: list[list[str]]) -> None:
    (folder / "c").mkdir()
    content = {"words": words, "ids": {"0": "left-0", "1": "left-1"}}
    (folder / "c" / "tasks.json").write_text(json.dumps(content))


def test_tasks_of_a_start_that_died_are_taken_up(tmp_path: Path) -> None:
    leave(tmp_path, [list(task.words) for task in TASKS])
    place = Played({"shard 1/2": [0]}, {"left-0": "RUNNING", "left-1": "FAILED"})
    standings: list[Standing] = []

    def pause(_: float) -> None:
        (tmp_path / "c" / "end-0.json").write_text('{"status": 0, "said": ""}')

    lead(TASKS, place, tmp_path / "c", further=lambda _: 0, report=standings.append, pause=pause)
    assert place.submitted == ["shard 1/2"]


def test_tasks_that_do_something_else_with_the_same_journals_are_ended(tmp_path: Path) -> None:
    leave(tmp_path, [["infer", "otherwise"], ["infer", "1"]])
    place = Played({"shard 0/2": [0], "shard 1/2": [0]}, {"left-0": "RUNNING"})
    run(place, tmp_path)
    assert place.cancelled == ["left-0", "left-1"]
    assert place.submitted == ["shard 0/2", "shard 1/2"]


def test_an_interrupt_ends_the_tasks_and_a_silent_controller_does_not(tmp_path: Path) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    place = Played({"shard 0/2": ["RUNNING"], "shard 1/2": ["PENDING"]})
    with pytest.raises(KeyboardInterrupt):
        lead(TASKS, place, tmp_path / "c", further=lambda _: 0, pause=interrupt)
    assert place.cancelled == ["0", "1"]

    def silent(_: Sequence[str]) -> dict[str, str]:
        raise ClusterError("SLURM has not answered")

    place = Played({"shard 0/2": ["RUNNING"], "shard 1/2": ["PENDING"]})
    place.states = silent  # type: ignore[method-assign]
    (tmp_path / "c" / "tasks.json").unlink()
    with pytest.raises(ClusterError):
        lead(TASKS, place, tmp_path / "c", further=lambda _: 0, pause=lambda _: None)
    assert place.cancelled == []


def test_a_full_folder_is_said_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 0}))
    place = Played({"shard 0/2": ["FAILED"], "shard 1/2": [0]})
    ends = run(place, tmp_path)
    assert place.submitted.count("shard 0/2") == 1
    assert "no room is left in" in ends[0].said


def test_two_leaders_of_the_same_tasks_are_kept_apart(tmp_path: Path) -> None:
    def second(_: float) -> None:
        with pytest.raises(ClusterError, match="another process leads these tasks"):
            run(Played({}), tmp_path)
        (tmp_path / "c" / "end-0.json").write_text('{"status": 0, "said": ""}')

    place = Played({"shard 0/2": ["RUNNING"], "shard 1/2": [0]})
    lead(TASKS, place, tmp_path / "c", further=lambda _: 0, pause=second)


def test_a_task_notes_how_its_command_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    end = tmp_path / "end.json"
    surroundings = {"NO_SUCH": None, "COLUMNS": "80"}
    perform(Task("score", ("score", "no-such.jsonl"), surroundings), end)
    found = read_end(end)
    assert found is not None
    assert found.status == 2
    assert "there is no journal" in found.said
    assert "there is no journal" in capfd.readouterr().err
    # What is wrong with its words is told in a box, whose edge comes last.
    perform(Task("score", ("score", "--no-such-option"), surroundings), end)
    assert "No such option: --no-such-option" in (read_end(end) or found).said
    # One that is killed notes nothing, and its own end is no success.
    end.unlink()
    with pytest.raises(SystemExit) as died:
        perform(Task("dies", (), launcher=("sh", "-c", "kill -9 $$")), end)
    assert died.value.code == 137
    assert read_end(end) is None
    end.write_text('{"status": ')
    assert read_end(end) is None

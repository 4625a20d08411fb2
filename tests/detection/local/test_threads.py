"""As many threads as cores are free: against a machine that is played by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest
import torch

from cradle_lib.detection.local import threads
from cradle_lib.detection.local.threads import FreeCores, busy_seconds, cores, following_free_cores


class Machine:
    """Four cores, of which others and this process take so much."""

    def __init__(self) -> None:
        self.now = self.others = self.own = 0.0

    def free(self, most: int) -> FreeCores:
        busy = lambda: self.others + self.own  # noqa: E731
        return FreeCores(most, lambda: self.now, busy, lambda: self.own)

    def passes(self, seconds: float, others: float, own: float) -> None:
        self.now += seconds
        self.others += seconds * others
        self.own += seconds * own


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("others", "own", "expected"),
    [
        (0.0, 4.0, 4),
        (0.3, 3.7, 4),  # Somebody types.
        (0.8, 3.2, 3),  # One busy process against four threads has 4/5 of a core.
        (1.0, 3.0, 3),
        (2.0, 2.0, 2),
        (3.5, 0.5, 1),  # Eight busy processes leave a share of one thread.
    ],
)
def test_threads_are_the_cores_that_others_leave(others: float, own: float, expected: int) -> None:
    machine = Machine()
    free = machine.free(4)
    machine.passes(5.0, others, own)
    assert free.look() == expected


def test_threads_come_back_when_neighbours_leave_but_not_at_every_glance() -> None:
    machine = Machine()
    free = machine.free(3)
    machine.passes(5.0, 3.0, 1.0)
    assert free.look() == 1
    machine.passes(threads.PERIOD / 2, 0.0, 1.0)
    assert free.look() == 1
    machine.passes(5.0, 0.0, 1.0)
    assert free.look() == 3


def test_busy_seconds_are_those_of_the_system() -> None:
    before = psutil.cpu_times()
    found = busy_seconds()
    after = psutil.cpu_times()
    # With this process on fewer cores than there are, its cores did some of that work.
    slack = 0.01 * os.cpu_count() if os.cpu_count() else 0.01
    assert found <= sum(after) - after.idle + slack
    if len(cores()) == os.cpu_count():
        assert found >= before.user + before.system - slack


def test_pytorch_gets_its_threads_back() -> None:
    usual = torch.get_num_threads()
    with suppress(KeyError), following_free_cores() as adapt:
        adapt()
        torch.set_num_threads(usual + 1)
        raise KeyError
    assert torch.get_num_threads() == usual


def test_openmp_reads_the_passive_policy_before_pytorch_starts_it() -> None:
    program = (
        "from cradle_lib.detection.local.threads import wait_passively; wait_passively(); "
        "import torch; torch.ones(512, 512) @ torch.ones(512, 512)"
    )
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=surroundings | {"OMP_DISPLAY_ENV": "TRUE"},
        capture_output=True,
        text=True,
        check=True,
    )
    # OpenMP's own report of what it will do.
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in done.stderr.replace('"', "'")

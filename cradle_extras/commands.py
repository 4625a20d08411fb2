"""The commands of the optional parts, for the entry point ``cradle.commands``."""

from typing import Final

from cradle_lib.cli.command_table import Command

_RUN: Final = "Run a model on many machines"
_SHARE: Final = "Share and verify"
_MAKE: Final = "Label, write and train"
COMMANDS: Final = (
    Command(
        "cluster",
        "cradle_extras.cluster.command:app",
        "Run a model as one job per shard, on SLURM or as processes on this machine.",
        _RUN,
        "cluster",
    ),
    Command(
        "bundle",
        "cradle_extras.bundle.command:bundle",
        "Write a run, its scores and checksums to one zip archive, for others to check.",
        _SHARE,
    ),
    Command(
        "verify",
        "cradle_extras.bundle.command:verify",
        "Recompute a bundle's questions and scores, and report every mismatch.",
        _SHARE,
    ),
    Command(
        "export",
        "cradle_extras.inspect.command:exports",
        "Write a run for another tool.",
        _SHARE,
        "inspect",
    ),
    Command(
        "annotate",
        "cradle_extras.label_studio.command:app",
        "Label dialogues: tasks, exports, agreement, gold labels.",
        _MAKE,
        "annotation",
    ),
    Command(
        "construct",
        "cradle_extras.construction.command:app",
        "Make dialogues from posts: plan, write and check them.",
        _MAKE,
    ),
    Command(
        "train",
        "cradle_extras.training.command:train",
        "Train a model on a corpus. Stopped or killed, the same command resumes.",
        _MAKE,
        "train",
    ),
)

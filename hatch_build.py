"""Build hook that adds the data files of the library to wheels.

An editable installation reads them from the repository.
"""

from __future__ import annotations

from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Without the adapter (4 MB) and the book's runs. Errors about these say where to get them.
_FILES: Final = (
    "models.yml",
    "benchmarks/results",
    "data/construction",
    "data/help_lines.yml",
    "data/posts",
    "data/probes",
    "data/published",
    "data/simulations",
    "data/surrogate/README.md",
    "data/surrogate/annotations/annotations.parquet",
    "data/surrogate/SHA256SUMS",
    "data/surrogate/croissant.json",
    "data/surrogate/dev.parquet",
    "data/surrogate/meta.parquet",
    "data/surrogate/test.parquet",
    "data/surrogate/train.parquet",
)


class Shipped(BuildHookInterface):  # type: ignore[type-arg, unused-ignore]
    """Adds the files to standard wheels, not to editable ones."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Sets the files and their paths in the wheel."""
        if version == "standard":
            build_data["force_include"] |= {file: f"cradle_lib/shipped/{file}" for file in _FILES}

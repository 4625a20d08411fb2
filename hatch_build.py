"""What a wheel carries besides code: the files that the library reads, at the place it looks for.

An editable installation needs none of them, because it stands in the repository.
"""

from __future__ import annotations

from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Not the adapter (4 MB), and the runs that the book reads: what needs one of them says where it
# comes from.
_FILES: Final = (
    "models.yml",
    "benchmarks/results",
    "data/construction",
    "data/help_lines.yml",
    "data/posts",
    "data/published",
    "data/simulations",
    "data/surrogate/README.md",
    "data/surrogate/annotations/annotations.parquet",
    "data/surrogate/SHA256SUMS",
    "data/surrogate/croissant.json",
    "data/surrogate/dev.parquet",
    "data/surrogate/meta.parquet",
    "data/surrogate/phrases",
    "data/surrogate/test.parquet",
    "data/surrogate/train.parquet",
)


class Shipped(BuildHookInterface):  # type: ignore[type-arg, unused-ignore]
    """Adds the files to a wheel that is meant to be passed on."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Names the files and their places in the wheel."""
        if version == "standard":
            build_data["force_include"] |= {file: f"cradle_lib/shipped/{file}" for file in _FILES}

"""The record of a run: its model, settings, corpus, versions and machine."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from cradle_lib.version import commit, library_version

if TYPE_CHECKING:
    import pandas as pd

History = Literal["self", "gold", "none"]
#: Settings that differ, each with its two values.
Differences = dict[str, tuple[Any, Any]]

# Packages whose version can change an answer or a score.
_PACKAGES: Final = (
    "numpy",
    "scikit-learn",
    "torch",
    "transformers",
    "tokenizers",
    "openai",
    "anthropic",
)
# Fields of the identity, which is the same for all parts of a run.
_IDENTITY: Final = (
    "model",
    "engine",
    "weights",
    "revision",
    "prompt_hash",
    "decoding",
    "history",
    "corpus",
)
# Included in the identity only if set, so that existing runs keep their identity.
_IF_SET: Final = ("endpoint", "code", "tokenizer", "trained_on", "neutralise")
#: Settings of the identity that change with files, and not because the user asks for others.
VERSIONED: Final = frozenset({"revision", "code", "prompt_hash"})


# Cached, because reading the metadata of a large package takes longer than a short run.
@cache
def installed(packages: tuple[str, ...]) -> dict[str, str]:
    """Gives the version of each package that is installed."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


class Record(BaseModel):
    """The metadata of one run: one model over one corpus.

    Attributes:
        model: Id in the registry.
        name: Name on pages.
        group: Kind of system, such as ``baseline``.
        engine: Engine that ran it, such as ``reference``.
        weights: Where the weights came from, or the endpoint; ``None`` for baselines.
        revision: Revision or checksum of the weights, of a lexicon or of the train split, with the
            declared version of the engine's code if it has one.
        trained_on: Name of the base in the adapter's configuration, if it was set because it
            differs from the one in ``weights``.
        tokenizer: The parts of the adapter's own tokenizer and chat template that are used;
            ``None`` if both come with the weights.
        prompt: Name of the prompt template.
        prompt_hash: Hash of the template's text.
        decoding: Decoding settings that were used.
        history: Labels in the history: the model's own (``self``), ``gold`` or ``none``.
        neutralise: ``False`` if turns were shown without neutralising them; ``None`` otherwise.
        corpus: Name of the corpus.
        corpus_fingerprint: Its :attr:`~cradle_lib.corpus.Corpus.fingerprint`.
        corpus_file: Its :attr:`~cradle_lib.corpus.Corpus.file_key`, which distinguishes files of
            the same name; ``None`` if unknown.
        dialogues: Ids of the dialogues chosen; ``None`` for all.
        shard: ``i/n`` if the run is one of several parts.
        started: UTC time of the first start.
        version: Version of this library.
        commit: Commit of this repository.
        dirty: Whether tracked files differed from that commit.
        python: Version of Python.
        platform: Operating system and processor family.
        packages: Versions of the packages that matter, where installed.
        remote: Whether the text of the dialogues left the machine.
        endpoint: Address of an API model, if it is not its provider's default.
        code: Checksum of a function or an engine that does not ship with this library, with its
            version if it declares one.
        source: Source code of that function.
        proxy: Proxy of the requests, if the environment sets one.
        fallback: Why another engine than ``engine`` gave the answers: the wave engine asks one
            question at a time, like the reference engine, where it can't compute the same as the
            model's own forward pass.
        max_cost: Cost limit in dollars over all starts of the run; ``None`` for no limit.
    """

    # Shipped journals have fields that no longer exist.
    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str
    name: str
    group: str
    engine: str
    weights: str | None = None
    revision: str | None = None
    trained_on: str | None = None
    tokenizer: str | None = None
    prompt: str
    prompt_hash: str
    decoding: dict[str, Any]
    history: History = "self"
    neutralise: Literal[False] | None = None
    corpus: str
    corpus_fingerprint: str
    corpus_file: str | None = None
    dialogues: list[str] | None = None
    shard: str | None = None
    started: str
    version: str
    commit: str
    dirty: bool
    python: str
    platform: str
    packages: dict[str, str]
    remote: bool = False
    endpoint: str | None = None
    code: str | None = None
    source: str | None = None
    proxy: str | None = None
    fallback: str | None = None
    max_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @classmethod
    def create(cls, **fields: Any) -> Record:
        """Makes a record of a run that starts now, on this machine, from this commit.

        ``fields`` describe the run; they override the values that are filled in.
        """
        head, dirty = commit()
        return cls(
            **{
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "version": library_version(),
                "commit": head,
                "dirty": dirty,
                "python": platform.python_version(),
                "platform": f"{platform.system()} {platform.machine()}",
                "packages": installed(_PACKAGES),
                **fields,
            }
        )

    def to_frame(self) -> pd.DataFrame:
        """Gives the record as a data frame.

        Returns:
            One row for each attribute and one for the identity: ``field`` (str) and ``content``
            (str; missing for an empty field). A list of dialogues is given as their number.
        """
        import pandas as pd

        values = {**self.model_dump(), "identity": self.identity}
        if self.dialogues is None:
            values["dialogues"] = "all"
        rows = [(name.replace("_", " "), _displayed(value)) for name, value in values.items()]
        return pd.DataFrame(rows, columns=["field", "content"])

    def is_of_another_file(self, key: str | None) -> bool:
        """Whether the corpus is known to come from a file with another key."""
        return None not in (self.corpus_file, key) and self.corpus_file != key

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of the identity with their values, which all parts of a run share."""
        settings = {name: getattr(self, name) for name in _IDENTITY}
        return settings | {
            name: value for name in _IF_SET if (value := getattr(self, name)) is not None
        }

    @property
    def flat_settings(self) -> dict[str, Any]:
        """:attr:`settings` with each decoding setting under its own name."""
        settings = self.settings
        decoding: dict[str, Any] = settings.pop("decoding")
        return settings | decoding

    @property
    def system(self) -> str:
        """Identifies the system: :attr:`settings` without the corpus and the date of the prompts.

        Runs of one system over different corpora have the same text.
        """
        decoding = {name: value for name, value in self.decoding.items() if name != "date"}
        return canonical(self.settings | {"decoding": decoding, "corpus": None})

    def is_version_of(self, other: Record) -> bool:
        """Whether only the code, the data or the text of the prompt differ."""
        different = differing(self.flat_settings, other.flat_settings).keys()
        return different <= VERSIONED and self.prompt == other.prompt

    def differences(self, other: Record) -> str:
        """Describes the settings that differ, such as ``engine is 'wave' here and ...``."""
        return describe(differing(self.settings, other.settings))

    @property
    def identity(self) -> str:
        """Checksum of :attr:`settings`: sixteen hexadecimal digits."""
        return hashlib.sha256(canonical(self.settings).encode()).hexdigest()[:16]


def canonical(value: Any) -> str:
    """Writes a value as JSON in a unique form; unlike ``==``, it distinguishes 1, 1.0 and true."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def differing(here: Mapping[str, Any], there: Mapping[str, Any]) -> Differences:
    """Finds the settings that differ, with both values; ``None`` if a setting is missing."""
    pairs = {name: (here.get(name), there.get(name)) for name in {**here, **there}}
    return {name: pair for name, pair in pairs.items() if canonical(pair[0]) != canonical(pair[1])}


def with_prompt_names(differences: Differences, here: str, there: str) -> Differences:
    """Replaces the checksums of two prompts by their names, if these differ."""
    if here == there or "prompt_hash" not in differences:
        return differences
    names = ("prompt" if name == "prompt_hash" else name for name in differences)
    return dict(zip(names, differences.values(), strict=True)) | {"prompt": (here, there)}


def describe(differences: Differences) -> str:
    """Describes settings that differ: ``temperature is 0.7 here and not set there``."""

    def shown(value: Any) -> str:
        return "not set" if value is None else f"{value!r:.80}"

    return "; ".join(
        f"{name} is {shown(here)} here and {shown(there)} there"
        for name, (here, there) in differences.items()
    )


def _displayed(value: Any) -> str | None:
    """Formats the value of a field for display; ``None`` for an empty one."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items()) or None
    if isinstance(value, list):
        return f"{len(value):,} chosen"
    return None if value is None else str(value)

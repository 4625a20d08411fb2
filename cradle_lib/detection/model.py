"""One model: the fields of an entry of the registry, and their checks."""

from __future__ import annotations

import re
from datetime import date as Date  # noqa: N812 - a field is called date
from ipaddress import ip_address
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from cradle_lib.detection.engine import find_engine
from cradle_lib.detection.local.chat import Day

# `own` is what a user brings without an entry: a function, or a model named by a spec.
Group = Literal["baseline", "embedded", "open", "fine-tuned", "proprietary", "own"]

# Without a user name, a password, a query or a fragment, any of which could hold a key, and without
# white space, which URL parsers remove: the text would go to another host.
_ADDRESS: Final = re.compile(
    r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[!-~]*)?"
)
# How providers' keys begin, and names under which one is handed over.
_KEY: Final = re.compile(
    r"[?#]|/(sk-|gsk_|hf_|xai-|pplx-|nvapi-|r8_|AIza)[\w-]{8}|(key|token|secret|password)=",
    re.IGNORECASE,
)
# Joins the base and the adapter, and what pins each.
_PLUS: Final = " + "
Dollars = Annotated[float, Field(ge=0)]
# Options of a call that have a field of their own, and those that the protocol sets.
_OWN_FIELD: Final = frozenset({"max_completion_tokens", "max_tokens", "seed", "temperature"})
_PROTOCOL: Final = frozenset({"messages", "model", "n", "stream"})


class _Strict(BaseModel):
    # A message never repeats what was given: it could be a key.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Decoding(_Strict):
    """Settings that shape an answer.

    Attributes:
        max_new_tokens: Upper limit of the answer's length.
        mode: ``constrained`` lets the model write only answers that parse; the wave engine
            can do it, and ``max_new_tokens`` has no effect then. ``None`` lets it write freely.
        temperature: Sampling temperature. ``None`` leaves it to the provider of a service;
            local weights are then decoded greedily.
        seed: Seed of the sampling, for local weights and services that know one.
        none_bias: Added to the logit of ``none``'s first token, for local weights. With
            ln(t / (1 - t)) a label is written where it is preferred to ``none`` by t to 1 - t.
        dtype: Number format of local weights, such as ``bfloat16``.
        chat: Switches of the model's chat template, such as ``enable_thinking: false``.
        date: Date that the chat template of local weights prints, such as ``2026-11-25``. ``None``
            for the day on which a run began, which its record then has here; no date is recorded
            for a template that prints none.
        answer_after: A control text after which the answer proper begins, for models
            that write their reasoning in a channel of its own.
        from_checkpoint: Whether local weights are decoded with the settings that their checkpoint
            ships (``generation_config.json``), such as ``top_p``; those that are used are recorded
            one by one. Settings of the entry itself come first; the length is always its own.
        extra: Further options of a service's calls, sent as they stand, such as ``top_p`` or
            ``reasoning_effort``.
    """

    max_new_tokens: Annotated[int, Field(ge=1)] = 512
    mode: Literal["constrained"] | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    seed: int | None = None
    none_bias: Annotated[float, Field(allow_inf_nan=False)] | None = None
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    chat: dict[str, bool | int | float | str] = {}
    date: Day | None = None
    answer_after: str | None = None
    from_checkpoint: bool = False
    extra: dict[str, Any] = {}

    @field_validator("extra")
    @classmethod
    def _says_nothing_twice(cls, extra: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted((_OWN_FIELD | _PROTOCOL) & extra.keys()):
            raise ValueError(f"{', '.join(taken)}: set outside 'extra', or not to be changed")
        return extra

    @model_validator(mode="after")
    def _is_obeyed(self) -> Decoding:
        if self.mode is not None and (self.from_checkpoint or self.temperature):
            raise ValueError(
                f"'temperature' and 'from_checkpoint' do not go with 'mode: {self.mode}'"
            )
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are set: what a record keeps."""
        found = self.model_dump().items()
        return {k: v for k, v in found if v not in (None, {}) and v is not False}


class Key(_Strict):
    """The source of an API key: always the environment.

    Attributes:
        variable: Name of the environment variable.
        url: Page of the provider on which keys are made.
    """

    variable: str
    url: str | None = None


class Prices(_Strict):
    """What a provider charges: dollars per million tokens, for each kind on its own.

    Attributes:
        input: Prompt tokens.
        cached: Prompt tokens read from a cache; ``None`` if they cost as much as ``input``.
        written: Prompt tokens written to a cache; ``None`` if writing costs nothing extra.
        output: Tokens of answers, reasoning included.
        date: Day on which they were looked up.
        source: Page of the provider.
    """

    input: Dollars
    cached: Dollars | None = None
    written: Dollars | None = None
    output: Dollars
    date: Date
    source: str


class Model(_Strict):
    """One entry of the registry.

    Attributes:
        id: Its key in the file: lower case, used in file names and commands.
        name: What pages call it.
        group: Kind of system.
        engine: What drives it.
        weights: Repository or folder of the weights, a name that starts with
            ``embedded:``, or the provider's name of the model.
            ``BASE + FOLDER`` is a base with the adapter in a folder.
        revision: Commit or checksum of the weights; ``None`` if it is not pinned. With an
            adapter ``BASE + ADAPTER``: that of the base, and the digest of the adapter.
        prompt: Name of its prompt template.
        decoding: Settings that shape the answer; ``None`` for systems that generate nothing.
        default: Whether it is part of the default book.
        sample: Number of dialogues that the default book runs it on; ``None`` for all.
        published: Its key in the published numbers, if the paper reports it.
        remote: Whether the text of the dialogues leaves this machine.
        base_url: Endpoint, if it is not the provider's own.
        key: Where its API key comes from.
        prices: What the provider charges.
        hardware: What it needs, in words.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    # matplotlib leaves names that begin with an underscore out of legends, and the search page of
    # the book takes titles for HTML.
    name: Annotated[str, Field(pattern=r"^[^\s\x00-\x1f<>_][^\x00-\x1f<>]*$")]
    group: Group
    engine: str
    weights: str | None = None
    revision: str | None = None
    prompt: str = "turn"
    decoding: Decoding | None = None
    default: bool = False
    sample: Annotated[int, Field(ge=1)] | None = None
    published: str | None = None
    remote: bool = False
    base_url: str | None = None
    key: Key | None = None
    prices: Prices | None = None
    hardware: str | None = None

    @property
    def base(self) -> str:
        """The weights without an adapter."""
        return str(self.weights).partition(_PLUS)[0]

    @property
    def adapter(self) -> str | None:
        """Folder of the adapter; ``None`` if there is none."""
        return str(self.weights).partition(_PLUS)[2] or None

    @property
    def base_revision(self) -> str | None:
        """What pins the base."""
        return (self.revision or "").partition(_PLUS)[0] or None

    @property
    def adapter_revision(self) -> str | None:
        """The digest that pins the adapter."""
        return (self.revision or "").partition(_PLUS)[2] or None

    @property
    def kind(self) -> Literal["baseline", "local", "service"]:
        """What an answer costs: see :class:`~cradle_lib.detection.engine.Engine`."""
        return find_engine(self.engine).kind

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is not None and (not _ADDRESS.fullmatch(url) or _KEY.search(url)):
            raise ValueError(
                "'base_url' is no address such as https://HOST/v1 or http://HOST:8000, or it has a "
                "user name, a password, a query, a fragment or what looks like a key: keys come "
                "from 'key' only"
            )
        return url

    @model_validator(mode="after")
    def _fits_its_engine(self) -> Model:
        engine = find_engine(self.engine)
        if engine.needs_weights and not self.weights:
            raise ValueError(f"engine {self.engine} needs 'weights'")
        for setting in self.decoding.model_dump(exclude_defaults=True) if self.decoding else ():
            if setting not in engine.uses:
                raise ValueError(
                    f"engine {self.engine} does not use 'decoding.{setting}'. "
                    f"It uses: {', '.join(sorted(engine.uses)) or 'no setting'}"
                )
        if self.kind == "service" and not self.remote and not is_here(self.base_url or ""):
            host = urlsplit(self.base_url or "").hostname or "a provider's own endpoint"
            raise ValueError(f"{host} is not on this machine or network: say 'remote: true'")
        if self.kind == "service" and self.remote and self.key is None:
            raise ValueError(f"a remote model with engine {self.engine} needs 'key'")
        if (self.prices or self.base_url or self.key) and self.kind != "service":
            raise ValueError(
                f"engine {self.engine} calls no service, so it has no 'base_url', 'key' or 'prices'"
            )
        return self


def is_here(url: str) -> bool:
    """Whether an address is this machine's or a private network's, by its form alone."""
    found = _ADDRESS.fullmatch(url)
    host = found[1].strip("[]").removesuffix(".").lower() if found else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    return address.is_loopback or address.is_private


def faults(error: ValidationError) -> str:
    """Lists all faults that pydantic found, field by field; never the values, which may be keys."""
    found = []
    for fault in error.errors():
        field = ".".join(map(str, fault["loc"]))
        problem = fault["msg"].removeprefix("Value error, ")
        found.append(f"field {field}: {problem}" if field else problem)
    return "; ".join(found)

"""One model: the fields of an entry of the registry, and their checks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date as Date  # noqa: N812 - a field is called date
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from cradle_lib.detection.models.addresses import ADDRESS, is_local_address
from cradle_lib.detection.models.dates import Day
from cradle_lib.detection.models.engine import find_engine
from cradle_lib.detection.protocol.thoughts import SWITCHES
from cradle_lib.errors import RegistryError
from cradle_lib.validation import faults

# `own`: a user's model without an entry, that is, a function or a spec.
Group = Literal["baseline", "embedded", "open", "fine-tuned", "proprietary", "own"]

# Prefixes of providers' keys, and names of parameters that contain a key.
_KEY: Final = re.compile(
    r"[?#]|/(sk-|gsk_|hf_|xai-|pplx-|nvapi-|r8_|AIza)[\w-]{8}|(key|token|secret|password)=",
    re.IGNORECASE,
)
# Separates the base from the adapter in `weights`, and their pins in `revision`.
_PLUS: Final = " + "
Dollars = Annotated[float, Field(ge=0)]
# Options of a call that have a separate field, and those that the protocol sets.
_OWN_FIELD: Final = frozenset({"seed", "temperature"})
# Limits of answers below this number of tokens would cut many thoughts. The paper's is 512.
_ROOM_TO_THINK: Final = 2048
# Names of the parameter for `max_new_tokens`, of which an entry may choose one.
_LIMITS: Final = ("max_tokens", "max_completion_tokens")
_PROTOCOL: Final = frozenset({"messages", "model", "n", "stream"})


class _Strict(BaseModel):
    # Error messages never repeat the input, which could be a key.
    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False
    )

    def __init__(self, *values: Any, **fields: Any) -> None:
        name, known = type(self).__name__, type(self).model_fields
        if values:
            raise RegistryError(f"{name}: values need names. Fields: {', '.join(known)}.")
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise RegistryError(f"{name}: {faults(error, type(self))}.") from None

    # Pydantic then validates files without this method, and so knows the place of each fault.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class Decoding(_Strict):
    """Settings that affect a model's answers.

    Attributes:
        max_new_tokens: Maximum length of the answer in tokens.
        mode: ``constrained`` restricts generation to answers that parse (wave engine only), and
            ``max_new_tokens`` then has no effect. ``None``: no restriction.
        temperature: Sampling temperature. ``None`` leaves it to the provider of a service;
            local weights are then decoded greedily.
        seed: Seed of the sampling, for local weights and services that accept one.
        none_bias: Added to the logit of ``none``'s first token, for local weights. With the bias
            ln(t / (1 - t)), a label is predicted if its odds against ``none`` exceed t / (1 - t).
        dtype: Number format of local weights, such as ``bfloat16``.
        chat: Variables for the model's chat template, such as ``enable_thinking: false``. If local
            weights have such a switch, which is not set here, thinking is switched off, and this is
            recorded here, if ``max_new_tokens`` is below 2,048 or ``mode`` is ``constrained``.
        date: Date that the chat template of local weights prints, such as ``2026-11-25``. ``None``
            for the day on which the run began, which is recorded here if the template can print a
            date.
        answer_after: Marker that precedes the final answer, for models that write their reasoning
            in a separate channel.
        from_checkpoint: Whether local weights use the generation settings of their checkpoint
            (``generation_config.json``), such as ``top_p``. Each setting used is recorded. Settings
            of the entry take precedence, and the maximum length is always the entry's.
        extra: Further options of a service's calls, sent unchanged, such as ``top_p`` or
            ``reasoning_effort``. ``max_completion_tokens`` or ``max_tokens``, with the same number
            as ``max_new_tokens``, chooses the name under which the limit is sent.
    """

    max_new_tokens: Annotated[int, Field(ge=1)] = 512
    mode: Literal["constrained"] | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    seed: int | None = None
    none_bias: float | None = None
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    chat: dict[str, bool | int | float | str] = {}
    date: Day | None = None
    answer_after: str | None = None
    from_checkpoint: bool = False
    extra: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _takes_the_limit_from_extra(cls, data: Any) -> Any:
        extra = data.get("extra") if isinstance(data, dict) else None
        named = (
            [extra[name] for name in _LIMITS if name in extra] if isinstance(extra, dict) else []
        )
        return {"max_new_tokens": named[0], **data} if named else data

    @field_validator("extra")
    @classmethod
    def _sets_only_further_options(cls, extra: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted((_OWN_FIELD | _PROTOCOL) & extra.keys()):
            raise ValueError(
                f"{', '.join(taken)}: not allowed in 'extra', because another setting or the "
                "protocol determines it"
            )
        json.dumps(extra, allow_nan=False)
        return extra

    @model_validator(mode="after")
    def _is_consistent(self) -> Decoding:
        named = {name: self.extra[name] for name in _LIMITS if name in self.extra}
        if len(named) > 1 or any(limit != self.max_new_tokens for limit in named.values()):
            raise ValueError(
                f"'extra' sets {' and '.join(named)}: set one of them at most, to the number of "
                f"'max_new_tokens' ({self.max_new_tokens})"
            )
        if self.mode is not None and (self.from_checkpoint or self.temperature):
            raise ValueError(
                f"'temperature' and 'from_checkpoint' can't be combined with 'mode: {self.mode}'"
            )
        return self

    @property
    def leaves_room_to_think(self) -> bool:
        """Whether an answer can have a thought before its labels."""
        return self.mode is None and self.max_new_tokens >= _ROOM_TO_THINK

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are set, as they are recorded."""
        found = self.model_dump().items()
        return {k: v for k, v in found if v not in (None, {}) and v is not False}


class Key(_Strict):
    """The source of an API key: always the environment.

    Attributes:
        variable: Name of the environment variable.
        url: The provider's page for creating keys.
    """

    variable: str
    url: str | None = None


class Prices(_Strict):
    """A provider's prices in dollars per million tokens, for each kind of token.

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


class Retirement(_Strict):
    """The end of a service's model, as its provider announces it.

    Attributes:
        date: The last day, or the day from which on it is gone.
        successor: Id of the entry to use instead; ``None`` if there is none.
    """

    date: Date
    successor: str | None = None


class Model(_Strict):
    """One entry of the registry.

    Attributes:
        id: Its key in the file: lower case, used in file names and commands.
        name: Display name.
        group: Kind of system.
        engine: Name of its engine.
        weights: Repository or folder of the weights, a name that starts with
            ``embedded:``, or the provider's name of the model.
            ``BASE + ADAPTER`` is a base with the adapter in a folder or repository.
        revision: Commit or checksum of the weights; ``None`` if they are not pinned. With an
            adapter, ``BASE + ADAPTER``: the pin of the base and the digest or commit of the
            adapter.
        trained_on: Name of the base in the adapter's configuration, if it differs from the one in
            ``weights`` although both are the same model.
        prompt: Name of its prompt template.
        neutralise: Whether the text of turns is changed so that it can't imitate a part of the
            prompt: see :mod:`~cradle_lib.detection.protocol.neutralise`.
        decoding: Decoding settings; ``None`` for systems that generate nothing.
        default: Whether it is part of the default book.
        sample: Number of dialogues that the default book runs it on; ``None`` for all.
        published: Its key in the published numbers, if the paper reports it.
        remote: Whether the text of the dialogues leaves this machine.
        base_url: Endpoint, if it is not the provider's own.
        key: Source of its API key.
        prices: Prices of the provider.
        hardware: Required hardware, in words.
        retired: When its provider ends or ended the model.
    """

    id: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9][a-z0-9._-]*$",
            description="lower-case letters, digits, '.', '_' and '-', starting with a letter or "
            "digit",
        ),
    ]
    # matplotlib leaves names that begin with an underscore out of legends, and the search page of
    # the book interprets titles as HTML.
    name: Annotated[
        str,
        Field(
            pattern=r"^[^\s\x00-\x1f<>_][^\x00-\x1f<>]*$",
            description="one line without < and >, not starting with a space or an underscore",
        ),
    ]
    group: Group
    engine: str
    weights: str | None = None
    revision: str | None = None
    trained_on: str | None = None
    prompt: str = "turn"
    neutralise: bool = True
    decoding: Decoding | None = None
    default: bool = False
    sample: Annotated[int, Field(ge=1)] | None = None
    published: str | None = None
    remote: bool = False
    base_url: str | None = None
    key: Annotated[
        Key | None,
        Field(
            description="the name of an environment variable, such as {variable: MY_KEY}, and "
            "never the key itself"
        ),
    ] = None
    prices: Prices | None = None
    hardware: str | None = None
    retired: Retirement | None = None

    @property
    def retirement(self) -> str | None:
        """Says in a sentence when the provider ends the model; ``None`` if it does not."""
        if self.retired is None:
            return None
        other = self.retired.successor
        instead = f" Its successor here is {other}." * bool(other)
        return f"{self.id} is retired by its provider on {self.retired.date}.{instead}"

    @property
    def base(self) -> str:
        """The weights without an adapter."""
        return str(self.weights).partition(_PLUS)[0]

    @property
    def adapter(self) -> str | None:
        """Folder or repository of the adapter; ``None`` if there is none."""
        return str(self.weights).partition(_PLUS)[2] or None

    @property
    def base_revision(self) -> str | None:
        """The commit or checksum that pins the base."""
        return (self.revision or "").partition(_PLUS)[0] or None

    @property
    def adapter_revision(self) -> str | None:
        """The digest or commit that pins the adapter."""
        return (self.revision or "").partition(_PLUS)[2] or None

    @property
    def kind(self) -> Literal["baseline", "local", "service"]:
        """Kind of system, as defined by :class:`~cradle_lib.detection.models.engine.Engine`."""
        return find_engine(self.engine).kind

    def added_switches(self, chat: Mapping[str, Any]) -> dict[str, bool]:
        """Selects from ``chat`` of a stored run what its engine may have added: thinking off."""
        own = self.decoding or Decoding()
        if not find_engine(self.engine).adds_switches or own.leaves_room_to_think:
            return {}
        return {
            each: False for each in SWITCHES if chat.get(each) is False and each not in own.chat
        }

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is not None and (not ADDRESS.fullmatch(url) or _KEY.search(url)):
            raise ValueError(
                "must be an address such as https://HOST/v1 or http://HOST:8000, "
                "without user name, password, query, fragment or anything that looks like a key. "
                "Name the key's environment variable under 'key'"
            )
        return url

    @model_validator(mode="after")
    def _fits_its_engine(self) -> Model:
        engine = find_engine(self.engine)
        if engine.needs_weights and not self.weights:
            raise ValueError(f"engine {self.engine} needs 'weights'")
        if self.trained_on is not None and self.adapter is None:
            raise ValueError("'trained_on' needs 'weights' with an adapter: BASE + ADAPTER")
        for setting in self.decoding.model_dump(exclude_defaults=True) if self.decoding else ():
            if setting not in engine.uses:
                raise ValueError(
                    f"engine {self.engine} does not use 'decoding.{setting}'. "
                    f"It uses: {', '.join(sorted(engine.uses)) or 'no setting'}"
                )
        if self.kind == "service" and not self.remote and not is_local_address(self.base_url or ""):
            host = urlsplit(self.base_url or "").hostname or "a provider's own endpoint"
            raise ValueError(f"{host} is not on this machine or network: set 'remote: true'")
        if self.kind == "service" and self.remote and self.key is None:
            raise ValueError(f"a remote model with engine {self.engine} needs 'key'")
        if (self.prices or self.base_url or self.key) and self.kind != "service":
            raise ValueError(
                f"engine {self.engine} calls no service, so it has no 'base_url', 'key' or 'prices'"
            )
        return self

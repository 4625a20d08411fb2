"""Asks whether text may leave this machine."""

from __future__ import annotations

from collections.abc import Iterable

from cradle_lib.detection.models.addresses import host_of, proxy_of
from cradle_lib.detection.models.engine import Consent
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.runs.costs import highest_cost
from cradle_lib.errors import EngineError
from cradle_lib.formatting import dollars


def require_consent(
    model: Model, texts: str, prompts: Iterable[int], consent: Consent | None
) -> None:
    """Asks whether text may be sent to a remote model.

    The question names the text, the host, the proxy and the model. If the model has prices, it
    also names the maximum cost of ``prompts``, the prompts' sizes in UTF-8 bytes.

    Raises:
        EngineError: If consent is not given, or if nothing names the host.
    """
    host, proxy = host_of(model), proxy_of(model)
    if not host:
        raise EngineError(
            f"{model.name} is remote, but neither its entry nor its engine {model.engine} names an "
            "address, so nobody can agree to it. Set `base_url` in models.yml, or `endpoint` in "
            "the engine."
        )
    through = f" through the proxy {proxy}" if proxy else ""
    cost = ""
    if model.prices is not None:
        cost = f" It can cost {dollars(sum(highest_cost(model, n) for n in prompts))} at most."
    question = f"The text of {texts} will be sent to {host}{through} ({model.name}).{cost} Send it?"
    if consent is None or not consent(question):
        raise EngineError(
            f"{model.name} is remote, and sending {texts} to {host} "
            "was not agreed to. Agree with --yes, or in Python with `Options(consent=...)`."
        )

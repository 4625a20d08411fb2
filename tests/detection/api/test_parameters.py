"""Which refusals are about a parameter, and what is left out then."""

from __future__ import annotations

import pytest

from cradle_lib.detection.api.parameters import Parameters

WANTED = {"max_tokens": 8, "temperature": 0.0, "seed": 1, "cache_control": {}}
OTHER_LIMIT = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)


# What services say, from their documentation and from reports of users.
@pytest.mark.parametrize(
    ("message", "param", "name"),
    [
        ("Unsupported value: 'temperature' does not support 0.", "temperature", "temperature"),
        ("temperature is deprecated for this model.", None, "temperature"),
        ('Invalid JSON payload. Unknown name "seed": Cannot find field.', None, "seed"),
        ("messages.0.cache_control: Extra inputs are not permitted", None, "cache_control"),
        (OTHER_LIMIT, "max_tokens", "max_tokens"),
        # About something else, although a parameter is named.
        ("max_tokens is too large: 512. At most 256 tokens.", "max_tokens", None),
        ("prompt is too long: 210000 tokens > 200000 maximum", None, None),
        ("temperature must be between 0 and 2", "temperature", None),
        ("Unknown model", "model", None),
    ],
)  # fmt: skip
def test_a_refused_parameter_is_recognized_by_what_services_say(
    message: str, param: str | None, name: str | None
) -> None:
    parameters = Parameters(WANTED)
    assert parameters.refused(parameters.sent, message, param) == name


def test_the_token_limit_is_never_given_up_but_tried_under_its_other_name_once() -> None:
    parameters = Parameters({"max_tokens": 8, "top_p": 0.9})
    # What was not sent, or can't be missed, is not dropped.
    parameters.drop(["unheard-of", "top_p"])
    said = "Unsupported parameter: '{}'"
    first = parameters.sent
    assert parameters.refused(first, said.format("max_tokens"), None) == "max_tokens"
    parameters.drop(["max_tokens"])
    assert parameters.sent == {"max_completion_tokens": 8, "top_p": 0.9}
    assert parameters.dropped == ("max_tokens",)
    again = parameters.refused(parameters.sent, said.format("max_completion_tokens"), None)
    assert again is None
    # Another call of the same moment has met the same refusal.
    assert parameters.refused(first, said.format("max_tokens"), None) == "max_tokens"

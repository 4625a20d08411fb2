"""Texts that providers block: refused in every form that services and gateways report.

The bodies are those of public reports about the services; the texts are from their error messages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cradle_engines.api.faults import fault_of_status
from cradle_lib.detection import Options, Outcome, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from ...detection.dialogues import make_corpus
from .fault_server import FaultServer, Reply, as_json
from .services import GOOD, SDKS, ask, make_model

pytestmark = pytest.mark.usefixtures("api")

AZURE = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management "
    "policy. Please modify your prompt and retry."
)
INNER = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"a": {"filtered": True}}}
ANTHROPIC = "Output blocked by content filtering policy"
FLAGGED = 'x requires moderation on OpenAI. Your input was flagged for "violence".'


def coded(**fields: Any) -> dict[str, Any]:
    return {"error": {"message": "x", "type": None, "param": None, **fields}}


BLOCKED: list[tuple[int, Any]] = [
    # Azure, also through LiteLLM, which sends the code as text and may lose the inner error.
    (400, coded(code="content_filter", innererror=INNER)),
    (400, coded(message=f"AzureException - {AZURE}", code="400")),
    (400, coded(code="400", message='AzureException - {"error": {"code": "content_filter"}}')),
    (500, coded(message="litellm.APIConnectionError: litellm.ContentPolicyViolationError: x")),
    # OpenAI, xAI, Anthropic, also through Bedrock and OpenRouter.
    (400, coded(code="invalid_prompt", message="Invalid prompt: your prompt was flagged as "
      "potentially violating our usage policy.")),
    (400, coded(code="invalid_prompt", message="Invalid prompt: we've limited access to this "
      "content for safety reasons.")),
    (400, coded(message="Your request was rejected as a result of our safety system. Further "
      "requests may lead to your account being suspended.")),
    (403, {"code": "The caller does not have permission to execute the specified operation",
      "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_SELF_HARM"}),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": ANTHROPIC}}),
    (400, coded(message="Provider returned error", code=400,
      metadata={"raw": f'{{"error": {{"message": "{ANTHROPIC}"}}}}'})),
    (403, coded(message=f"OpenrouterException - {FLAGGED}", code=403)),
    # Gemini and Vertex.
    (400, [{"error": {"code": 400, "message": "The prompt could not be submitted. This prompt "
      "contains sensitive words that violate Google's Responsible AI practices."}}]),
    (400, coded(details=[{"reason": "PROHIBITED_CONTENT"}])),
    # Guardrails of Bedrock, Cloudflare and LiteLLM.
    (400, {"message": "The generated text has been blocked by our content filters."}),
    (400, {"error": [{"code": 2016, "message": "Prompt blocked due to security configurations"}]}),
    (400, {"error": {"message": "Violated guardrail policy", "code": "400"}}),
    # DeepSeek, DashScope, Moonshot, Volcengine, Zhipu.
    (400, coded(message="Content Exists Risk", type="invalid_request_error")),
    (400, {"code": "DataInspectionFailed", "message": "x"}),
    (400, coded(message="Input data may contain inappropriate content.")),
    (400, coded(message="The request was rejected because it was considered high risk")),
    (400, coded(code="InputTextSensitiveContentDetected")),
    (400, coded(code="1301", message="系统检测到输入或生成内容可能包含不安全或敏感内容")),
]  # fmt: skip
# Other errors whose sentences are similar.
NOT_BLOCKED: list[tuple[int, Any, str]] = [
    (403, coded(message="Your account was flagged for potential abuse."), "stop"),
    (403, coded(message="Your access was terminated due to violation of our policies."), "stop"),
    (403, coded(message="Your organization has been blocked because its content violates our "
      "usage policies."), "stop"),
    (403, coded(message="Requests are blocked until you accept the usage policy."), "stop"),
    (403, {"code": "The caller does not have permission to execute the specified operation",
      "error": "Team is not authorized to perform this action"}, "stop"),
    (403, coded(message="Request blocked by the organization policy allowedModels"), "stop"),
    (401, coded(message="Content blocked: safety. The key is invalid."), "stop"),
    (404, coded(message="No endpoints found matching your data policy"), "stop"),
    (429, coded(message="Requests to this content filter are blocked for 3 s"), "retry"),
    (400, coded(message="Unknown name safety_settings: the request was rejected"), "failed"),
    (400, coded(message="The request contains an unknown content filter name"), "failed"),
    (400, coded(code="invalid_prompt", message="Invalid prompt: expected a text"), "failed"),
    # A validator repeats the prompt.
    (422, {"detail": [{"loc": ["body", "x"], "msg": "no", "input": ANTHROPIC}]}, "failed"),
]  # fmt: skip


@pytest.mark.parametrize("engine", SDKS)
def test_every_form_of_a_block_is_a_refusal(engine: str, service: FaultServer) -> None:
    for status, body in BLOCKED:
        name = service.add(lambda n, body=body, status=status: as_json(body, status))
        found = ask(make_model(engine, f"{service.url}/{name}"))
        assert (found.outcome, service.calls[name]) == (Outcome.REFUSED, 1), body
        assert str(found.reason).startswith(f"HTTP {status}: ")


@pytest.mark.parametrize(("status", "body", "kind"), NOT_BLOCKED)
def test_other_errors_are_no_refusals(status: int, body: Any, kind: str) -> None:
    assert fault_of_status(status, {}, body).kind == kind


@pytest.mark.parametrize("engine", SDKS)
def test_blocked_dialogues_do_not_stop_a_run_and_are_not_asked_again(
    engine: str, service: FaultServer, tmp_path: Path
) -> None:
    hurt, fine = ([("User", f"{text} {i}.", "none") for i in (1, 2)] for text in ("Hurt", "Fine"))
    xai = next(body for status, body in BLOCKED if status == 403)

    def reply(attempt: int) -> Reply:
        hurts = "Hurt" in str(service.seen[attempt]["messages"])
        return as_json(xai, 403) if hurts else GOOD[engine]()

    name = service.add(reply)
    model = make_model(engine, f"{service.url}/{name}")
    # More refusals in a row than the failures that stop a run.
    corpus = make_corpus([hurt] * 8 + [fine] * 2)
    for _ in range(2):
        path = run(model, corpus, out=tmp_path, options=Options(concurrency=1))
        outcomes = [one.outcome for one in read_journal(path)[1]]
        assert outcomes == [Outcome.REFUSED] * 16 + [Outcome.OK] * 4
        assert service.calls[name] == 20
    denied = service.add(lambda n: as_json(NOT_BLOCKED[4][1], 403))
    with pytest.raises(EngineError, match=r"the key may not use this model \(HTTP 403\)"):
        ask(make_model(engine, f"{service.url}/{denied}"))

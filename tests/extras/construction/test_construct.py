"""Construction of a corpus from posts, with a real SDK and a service that fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cradle_engines.api.dispatch import RetryPolicy
from cradle_extras.construction import (
    check_attempts,
    construct,
    load_construction,
    load_posts,
    plan_dialogues,
)
from cradle_extras.construction.assemble import Construction
from cradle_extras.construction.plan_files import plan_text
from cradle_extras.construction.posts import Post, Posts
from cradle_extras.construction.repair import Writing, longest_requests
from cradle_extras.construction.writer import writer_model
from cradle_lib import labels, load_corpus
from cradle_lib.detection import Answer, Options, Outcome
from cradle_lib.errors import CorpusError, CradleError, EngineError, JournalError, RegistryError

from ...engines.api.fault_server import FaultServer, Reply, chat, error
from .stub_writer import good, is_repair

FEW = replace(load_posts(), items=load_posts().items[:6] + load_posts().items[-2:])
CALM = Posts(
    "calm", tuple(Post(f"c{i}", "", f"A long day at work, number {i}.", 0) for i in range(3))
)


def construct_with(
    posts: Posts, out: Path, write: Callable[[str, int], str | Reply | bytes], **options: Any
) -> Construction:
    """Runs construction with a service; ``write`` gets the prompt and the number of the call."""
    seen: list[dict[str, Any]] = []

    def reply(call: int) -> Reply | bytes:
        answer = write(seen[call]["messages"][0]["content"], call)
        return chat(message={"content": answer}) if isinstance(answer, str) else answer

    with FaultServer({"ok": reply}, seen) as server:
        url = f"{server.url}/ok/v1"
        return construct("openai:stub", out, posts=posts, base_url=url, **options)


def test_a_writer_that_follows_the_prompt_writes_all_posts(tmp_path: Path) -> None:
    posts = load_posts()
    made = construct_with(posts, tmp_path, lambda prompt, _: good(prompt))
    assert made.counts == {"accepted": len(posts.items), "rejected": 0, "failed": 0}
    corpus = load_corpus(tmp_path / "corpus.parquet")
    assert corpus.fingerprint == made.corpus.fingerprint
    for dialogue in corpus:
        assert dialogue.mask & labels.CONFIRM_MASK == posts.by_id[dialogue.id].mask
    assert corpus.meta["timing"] == made.to_frame()["timing"].tolist()
    record = json.loads((tmp_path / "record.json").read_text())
    assert (record["writer"], record["accepted"]) == ("openai-stub", len(corpus))


def test_dialogues_for_annotation_have_no_gold_labels(tmp_path: Path) -> None:
    def write(prompt: str, _: int) -> str:
        return "\n".join(line.partition(" TAG")[0] for line in good(prompt).splitlines()[:12])

    made = construct_with(FEW, tmp_path, write, kind="annotated")
    assert made.counts["accepted"] == len(FEW)
    assert not len(load_corpus(tmp_path / "corpus.parquet").labelled)


def test_a_failing_service_loses_no_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_waiting = RetryPolicy(attempts=4, base=0.0, connect=0.0)
    monkeypatch.setattr(RetryPolicy, "of", classmethod(lambda *_: no_waiting))
    trouble: list[Reply | bytes] = [error(429), error(500), b"", error(529)]
    texts = [post.text[:40] for post in FEW]

    def write(prompt: str, call: int) -> str | Reply | bytes:
        if call < len(trouble):
            return trouble[call]
        if texts[0] in prompt:
            return chat(message={"content": None, "refusal": "No."})
        if texts[1] in prompt:
            return error(400)
        if texts[2] in prompt:
            return ""
        if texts[3] in prompt and not is_repair(prompt):
            return good(prompt)[:300]
        return good(prompt)

    frame = construct_with(FEW, tmp_path, write).to_frame()
    assert frame["status"].tolist() == ["failed", "failed", "rejected", *["accepted"] * 5]
    assert frame["reason"].iloc[2] == "no dialogue lines"
    assert frame["attempts"].tolist() == [0, 0, 3, 2, 1, 1, 1, 1]


def test_a_repair_prompt_contains_the_attempt_and_the_findings(tmp_path: Path) -> None:
    prompts: list[str] = []

    def write(prompt: str, _: int) -> str:
        prompts.append(prompt)
        return good(prompt) if is_repair(prompt) else f"Sure:\n{good(prompt)}"

    made = construct_with(FEW, tmp_path, write)
    assert made.to_frame()["attempts"].tolist() == [2] * len(FEW)
    first = next(prompt for prompt in prompts if is_repair(prompt))
    assert "Sure:\nUser: " in first
    assert "Write nothing but the dialogue" in first
    sizes = longest_requests([(plan, FEW.by_id[plan.post]) for plan in plan_dialogues(FEW)], 2)
    assert max(len(prompt.encode()) for prompt in prompts) <= max(sizes.values())


def test_a_cut_dialogue_is_repaired(tmp_path: Path) -> None:
    def write(prompt: str, _: int) -> Reply:
        ending = "stop" if is_repair(prompt) else "length"
        return chat(message={"content": good(prompt)}, finish_reason=ending)

    made = construct_with(CALM, tmp_path, write)
    assert made.to_frame()["attempts"].tolist() == [2] * len(CALM)
    assert set(made.findings()["validator"]) == {"end is missing"}
    again = load_construction(tmp_path, CALM)
    assert again.outcomes == made.outcomes


def test_a_local_writer_uses_the_reference_engine_and_a_long_token_limit() -> None:
    local = writer_model("hf:org/name", max_new_tokens=10)
    assert local.engine == "reference"
    assert local.decoding is not None
    assert local.decoding.max_new_tokens == 10
    # The registry's own limit is enough for labels only.
    decoding = writer_model("smollm2-135m-openai").decoding
    assert decoding is not None
    assert decoding.max_new_tokens == 1500


def test_a_copy_of_an_accepted_dialogue_is_rejected(tmp_path: Path) -> None:
    written: list[str] = []

    def write(prompt: str, _: int) -> str:
        written.append(good(prompt))
        return written[0]

    made = construct_with(CALM, tmp_path, write, attempts=1)
    assert made.to_frame()["status"].tolist() == ["accepted", "rejected", "rejected"]
    assert set(made.to_frame()["reason"].iloc[1:]) == {"near-duplicate"}
    again = construct_with(CALM, tmp_path / "again", write, attempts=1, against=[made.corpus])
    assert again.counts["rejected"] == 3
    loaded = load_construction(tmp_path / "again", CALM)
    assert loaded.outcomes == again.outcomes
    assert check_attempts(loaded).set_index("validator").loc["near-duplicate", "found"] == 3
    assert not (tmp_path / "again" / "corpus.parquet").exists()
    with pytest.raises(CorpusError, match="was accepted"):
        _ = again.corpus


def test_posts_are_sent_only_with_consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    asked: list[str] = []
    options = Options(consent=asked.append)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="was not agreed to"):
        construct("openai:gpt-x", tmp_path, posts=FEW, options=options)
    assert "8 posts of posts will be sent to api.openai.com" in asked[0]


def test_invalid_writers_and_plans_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"can.t write dialogues"):
        construct("keyword", tmp_path, posts=FEW)
    plans = plan_dialogues([Post("other", "", "Text.", 0)])
    with pytest.raises(CorpusError, match="which is not in"):
        construct("openai:stub", tmp_path, posts=FEW, plans=plans)
    with pytest.raises(CradleError, match="price"):
        construct_with(FEW, tmp_path, lambda *_: "", options=Options(max_cost=1.0))
    assert not (tmp_path / "plans.csv").exists()


def test_a_construction_is_loaded_with_its_own_plans_and_posts(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.csv", tmp_path / "out"
    file.write_text('id,text,labels\na,"A long week, number 1.",no_crisis\n')
    made = construct_with(load_posts(file), out, lambda prompt, _: good(prompt))
    assert load_construction(out).outcomes == made.outcomes
    plans = (out / "plans.csv").read_bytes()
    # The journal is about another writer, so the new plans are not written.
    with pytest.raises(JournalError, match="belongs to another run"):
        construct_with(FEW, out, lambda prompt, _: good(prompt), temperature=0.5)
    assert (out / "plans.csv").read_bytes() == plans
    file.write_text(file.read_text().replace("long", "short"))
    with pytest.raises(CorpusError, match=r"mine has the fingerprint .* Restore the file"):
        load_construction(out)
    (out / "plans.csv").write_text(plan_text(plan_dialogues(CALM)))
    with pytest.raises(CorpusError, match=r"plans\.csv has the fingerprint"):
        load_construction(out, CALM)


def test_a_stored_writing_resumes_and_ends_after_its_attempts() -> None:
    post = FEW.items[0]
    [plan] = plan_dialogues([post])
    writing = Writing(plan, post, attempts=2)
    made = [writing.answer(Answer("nothing of the kind"))]
    assert (made[0].outcome, made[0].reason) == (Outcome.UNPARSED, "no dialogue lines")
    again = Writing(plan, post, attempts=2, stored=made)
    assert again.taken == made
    assert again.prompt is not None
    assert writing.prompt is not None
    assert again.prompt.key == writing.prompt.key
    made.append(again.answer(Answer(good(again.prompt.text))))
    assert made[1].outcome is Outcome.OK
    complete = Writing(plan, post, attempts=2, stored=made)
    assert (complete.remaining, complete.draft) == (0, again.draft)

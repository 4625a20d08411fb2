"""Prompts that a server cuts, recognised from the tokens that it reports.

The oracle is a simulated server that knows the whole prompt. It counts, cuts and caches as servers
do according to public reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

from cradle_engines.api.truncation import TokenCounts
from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Answer, Options, Outcome, Prediction, Prompt, Session, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.prompts import load_template

from ...detection.dialogues import make_corpus
from ...loopback import Handler, Loopback
from .fault_server import FaultServer
from .services import GOOD, SDKS, long_corpus, make_model, make_remote, sessions

pytestmark = pytest.mark.usefixtures("api")

TOKENIZERS: dict[str, Callable[[str], int]] = {
    "four characters": lambda text: 12 + len(text) // 4,
    "pieces of words": lambda text: 20 + len(re.findall(r"\w{1,6}|[^\w\s]", text)),
    "bytes and a long system prompt": lambda text: 400 + len(text.encode()),
}


def shifted(tokens: int, context: int) -> int:
    """Drops blocks of half the context from the middle, as llama.cpp did."""
    block = context // 2
    return tokens - (tokens - block) // block * block if tokens >= context else tokens


CUTS: dict[str, Callable[[int, int], int]] = {
    "the end is kept": min,
    "half of the context is kept": lambda n, context: n if n <= context else context // 2,
    "blocks are dropped": shifted,
    "never": lambda n, _: n,
}


class Server:
    """Counts the tokens of prompts that it may cut.

    Attributes:
        has_cut: Whether the last prompt was cut.
    """

    def __init__(self, count: Callable[[str], int], cut: Callable[[int, int], int]) -> None:
        self._count, self._cut = count, cut
        self.context, self.has_cut, self.counts_cached, self._last = 10**6, False, True, ""

    def tokens(self, text: str) -> int:
        tokens = self._count(text)
        left = self._cut(tokens, self.context)
        self.has_cut = left < tokens
        if self.counts_cached or self.has_cut:
            return left
        same = takewhile(lambda pair: pair[0] == pair[1], zip(text, self._last, strict=False))
        shared = text[: sum(1 for _ in same)]
        # All texts but the first begin with the same system prompt.
        cached = self._count(shared) if self._last else 0
        self._last = text
        return max(left - cached, 1)


def asked(server: Server, counts: TokenCounts, session: Session) -> list[tuple[bool, str]]:
    """Asks about a dialogue; gives for each question whether it was cut, and the verdict."""
    found = []
    while (prompt := session.prompt) is not None:
        tokens, has_cut = server.tokens(prompt.text), server.has_cut
        while (text := counts.next_test(prompt, tokens)) is not None:
            counts.record(server.tokens(text))
        found.append((has_cut, counts.judge(prompt, tokens)))
        session.answer(Answer("none"))
    return found


@pytest.fixture(scope="module")
def dialogues() -> Corpus:
    return load_corpus("surrogate").subset([3, 40, 333], "some")


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("prompt", ["turn", "append"])
def test_cut_prompts_are_recognised_and_no_others(
    cut: str, tokenizer: str, prompt: str, dialogues: Corpus
) -> None:
    template, count = load_template(prompt), TOKENIZERS[tokenizer]
    first = Session(dialogues.dialogues[0], template).prompt
    assert first
    cuts = 0
    for share in (0.3, 0.6, 0.99, 1.005, 1.05, 1.2, 1.6, 3.0):
        server, counts = Server(count, CUTS[cut]), TokenCounts(testable=True)
        server.context = int(count(first.text) * share)
        for dialogue in dialogues:
            for has_cut, verdict in asked(server, counts, Session(dialogue, template)):
                cuts += has_cut
                assert not has_cut or verdict == "cut"
        # A prompt that almost fills the context may count as cut; none does in a long context.
        if share == 3.0:
            assert counts.limit in ("none", "unknown")
            assert {
                v for d in dialogues for _, v in asked(server, counts, Session(d, template))
            } == {"complete"}
    assert (cuts > 0) == (cut != "never")


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("prompt", ["turn", "append", "brief"])
def test_no_answer_is_lost_if_cached_tokens_are_not_counted(
    warm: bool, tokenizer: str, prompt: str, dialogues: Corpus
) -> None:
    template = load_template(prompt)
    server, counts = Server(TOKENIZERS[tokenizer], min), TokenCounts(testable=True)
    server.counts_cached = False
    if warm:
        asked(server, TokenCounts(testable=False), Session(dialogues.dialogues[0], template))
    verdicts = {v for d in dialogues for _, v in asked(server, counts, Session(d, template))}
    assert "cut" not in verdicts


def test_without_tests_a_drop_below_half_is_no_cut() -> None:
    # A context that held the prompt before has at least as many tokens, and is half full at least.
    counts = TokenCounts(testable=False)
    prompts = [
        Prompt("d", turn, "I" * 400 + turn * "J" * 400, 0, "", 0, history=turn * "h")
        for turn in range(3)
    ]
    assert counts.next_test(prompts[0], 1) is None
    assert counts.judge(prompts[0], 100) == "complete"
    assert [counts.judge(prompts[1], tokens) for tokens in (49, 51)] == ["unknown", "cut"]
    assert counts.judge(prompts[2], 200) == "complete"


def test_counts_are_compared_only_with_those_of_a_prefix() -> None:
    # Prompts that do not extend each other: a shorter one, and a longer one with fewer tokens.
    counts = TokenCounts(testable=False)
    for text, tokens in ((400 * "a ", 400), (100 * "a ", 90), (105 * "aa ", 80)):
        assert counts.judge(Prompt("draft", 0, text, 0, text, 0), tokens) == "complete"


# ---- Runs ----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", SDKS)
# Number of prompts that fit, and spare tokens of the context beyond the last of them.
@pytest.mark.parametrize(("complete", "beyond"), [(4, 0), (2, 1)])
def test_short_prompts_that_are_cut_fail(
    engine: str, complete: int, beyond: int, service: FaultServer
) -> None:
    model = make_model(engine, f"{service.url}/{service.add(lambda n: GOOD[engine]())}")
    whole: list[Prediction] = []
    make_remote(model).answer_all(sessions(long_corpus(1, 4)), whole.append)
    service.context = (whole[complete - 1].tokens_in or 0) + beyond
    found: list[Prediction] = []
    make_remote(model).answer_all(sessions(long_corpus(1, 4)), found.append)
    assert [p.outcome for p in found] == [Outcome.OK] * complete + [Outcome.FAILED] * (4 - complete)
    for prediction in found[complete:]:
        assert (prediction.answer, prediction.mask) == ("", 0)
        assert f"reports {service.context} tokens" in (prediction.reason or "")
        # It was paid for.
        assert prediction.tokens_in == service.context


@pytest.mark.parametrize("engine", SDKS)
def test_a_short_first_prompt_that_is_cut_is_recognised(engine: str, service: FaultServer) -> None:
    service.context = 12
    name = service.add(lambda n: GOOD[engine]())
    dialogue = make_corpus([[("User", 40 * "and then ", "none")]])
    found: list[Prediction] = []
    remote = make_remote(make_model(engine, f"{service.url}/{name}"))
    remote.answer_all(sessions(dialogue), found.append)
    assert [prediction.outcome for prediction in found] == [Outcome.FAILED]


class Chat(Handler):
    """Chat Completions of a model that answers ``none`` only if it sees the first rule.

    Attributes:
        context: Context in tokens of four characters; a prompt keeps its end.
        usage: Gives the reported tokens of a prompt, from their number and the prompt.
        seen: The prompts.
        refuses: Whether a longer prompt is refused instead of cut.
    """

    context: int
    usage: Any
    seen: list[str]
    refuses: bool

    def do_GET(self) -> None:
        self.send_json({"data": [{"id": "smollm2-135m"}]})

    def do_POST(self) -> None:
        text = json.loads(self.body())["messages"][0]["content"]
        kept = text[-4 * self.context :]
        if self.refuses and kept != text:
            return self.send_json({"error": {"message": "too long", "code": 400}}, 400)
        reported = type(self).usage(len(kept) // 4, text)
        self.seen.append(text)
        answer = "none" if "FIRST RULE" in kept else "alert_ongoing"
        choice = {"index": 0, "finish_reason": "stop", "message": {"content": answer}}
        usage = {"prompt_tokens": reported, "completion_tokens": 2}
        self.send_json({"object": "chat.completion", "choices": [choice], "usage": usage})


@pytest.fixture
def chat_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Chat]:
    monkeypatch.setattr(paths, "PROMPTS", tmp_path)
    rules = "A sentence of a codebook that is long. " * 300
    (tmp_path / "long.txt").write_text(f"FIRST RULE: none.\n{rules}\n{{history}}\n{{current_turn}}")
    fields = {"context": 10**6, "usage": lambda tokens, _: tokens, "seen": [], "refuses": False}
    return type("Server", (Chat,), fields)


def turns_of(path: Path) -> dict[str, int]:
    answers = read_journal(path)[1]
    return {o: n for o in Outcome if (n := sum(one.outcome == o for one in answers))}


def test_answers_to_cut_first_turns_never_count_and_are_asked_again(
    chat_server: type[Chat], tmp_path: Path
) -> None:
    # Single turns, so that no prompt extends another one.
    corpus = make_corpus([[("User", f"I am tired, for reason {i}.", "none")] for i in range(6)])
    out = tmp_path / "run.jsonl"
    with Loopback(chat_server) as server:
        model = make_model("openai", server.url).model_copy(update={"prompt": "long"})
        chat_server.context = 2050
        run(model, corpus, out=out)
        assert turns_of(out) == {"failed": 6}
        assert "it has cut the prompt. Increase its context" in str(read_journal(out)[1][0].reason)
        chat_server.context = 8000
        run(model, corpus, out=out)
    assert turns_of(out) == {"ok": 6}
    assert {one.answer for one in read_journal(out)[1]} == {"none"}


def uncached(tokens: int, text: str) -> int:
    return tokens if "User:" not in text else 40


CACHED = "It leaves out tokens, probably those that it read from its prompt cache"


@pytest.mark.parametrize(
    ("usage", "refuses", "notice"),
    [
        (lambda tokens, _: tokens, False, ""),
        (lambda tokens, _: tokens, True, ""),
        (uncached, False, CACHED),
        (uncached, True, CACHED),
        (lambda *_: 1, False, "Its counts do not depend on the prompt"),
        (lambda *_: 2000, False, "Its counts do not depend on the prompt"),
        (lambda *_: 0, False, ""),
        (lambda tokens, _: str(tokens), False, ""),
    ],
)
def test_no_paid_answer_is_lost_to_a_wrong_count(
    usage: Any, refuses: bool, notice: str, chat_server: type[Chat], tmp_path: Path
) -> None:
    turns = [("User", f"I am tired, for reason {i}.", "none") for i in range(7)]
    chat_server.usage, chat_server.refuses = staticmethod(usage), refuses
    # The prompts have up to 3,200 tokens.
    chat_server.context = 3500
    notices: list[str] = []
    out = tmp_path / "run.jsonl"
    with Loopback(chat_server) as server:
        model = make_model("openai", server.url).model_copy(update={"prompt": "long"})
        run(model, make_corpus([turns] * 2), out=out, options=Options(notice=notices.append))
    assert turns_of(out) == {"ok": 14}
    assert len(notices) == bool(notice)
    assert all(notice in each for each in notices)
    # Wrong numbers are not recorded.
    last = read_journal(out)[1][-1].tokens_in
    assert last == (len(chat_server.seen[-1]) // 4 if usage(7, "User:") == 7 else None)
    texts = [text for text in chat_server.seen if "User:" not in text]
    assert all("tired" not in text for text in texts)
    assert len(texts) <= 3


def test_a_paid_service_and_a_provider_get_no_test_texts() -> None:
    prompt = Prompt("d", 0, "word " * 1000, 5000, "word", 0)
    prices = {"input": 1.0, "output": 1.0, "date": "2026-01-01", "source": "https://x.example"}
    local = make_model("openai", "http://127.0.0.1:9")
    paid = type(local).model_validate(local.model_dump() | {"prices": prices})
    for model, tested in ((make_model("openai", None), False), (paid, False), (local, True)):
        assert (make_remote(model)._counts.next_test(prompt, 1000) is not None) == tested


def test_an_overload_during_a_test_repeats_the_question(
    chat_server: type[Chat], tmp_path: Path
) -> None:
    class Busy(chat_server):  # type: ignore[misc, valid-type]
        def do_POST(self) -> None:
            if len(self.seen) == 2 and not chat_server.refuses:
                chat_server.refuses = True
                self.body()
                return self.send_json({"error": {"message": "wait", "retry_after": 0}}, 503)
            super().do_POST()

    with Loopback(Busy) as server:
        remote = make_remote(make_model("openai", server.url).model_copy(update={"prompt": "long"}))
        found: list[Prediction] = []
        dialogue = make_corpus([[("User", "Hello.", "none")]]).dialogues[0]
        remote.answer_all([Session(dialogue, load_template("long"))], found.append)
    assert [one.outcome for one in found] == [Outcome.OK]
    asked_again = [("User:" in a, "User:" in b) for a, b in pairwise(chat_server.seen)]
    assert asked_again == [(True, False), (False, True), (True, False), (False, False)]

"""What identifies a function: source, values bound to it, and what it uses."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from re import IGNORECASE
from types import ModuleType

import pytest
from numpy import argmax
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import f1_score

from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Prompt, run_model
from cradle_lib.detection.baselines.function_code import FunctionCode
from cradle_lib.errors import EngineError

Answers = Callable[[Prompt], str]
WORDS = ["one"]


def always(prompt: Prompt, label: str = "none", words: object = ()) -> str:
    return label


def other(prompt: Prompt, label: str = "none") -> str:
    return label


@dataclass(frozen=True)
class Fixed:
    """An object with a setting."""

    label: object

    def __call__(self, prompt: Prompt) -> str:
        return str(self.label)


class Lexicon(dict[str, str]):
    """A value with methods of its own."""


def closure(label: object) -> Answers:
    def answer(prompt: Prompt) -> str:
        return str(label)

    return answer


def default(label: object) -> Answers:
    def answer(prompt: Prompt, chosen: object = label) -> str:
        return str(chosen)

    return answer


def decorated(inner: Answers) -> Answers:
    @functools.wraps(inner)
    def answer(prompt: Prompt) -> str:
        return inner(prompt)

    return answer


def code(function: object) -> str:
    read = FunctionCode(function)
    assert not read.unknown
    return read.text


@pytest.mark.parametrize(
    "make",
    [
        lambda value: functools.partial(always, label=value),
        lambda value: functools.partial(always, words=value),
        lambda value: functools.partial(functools.partial(always, words=value), label="none"),
        closure,
        default,
        lambda value: decorated(closure(value)),
        lambda value: functools.cache(closure(value)),
    ],
)
def test_other_values_are_another_function(make: Callable[[object], object]) -> None:
    values = ["none", "alert_past", 1, 1.0, None, ("a", "b"), ["a", "b"], {"b", "a"}, {"a": "b"}]
    values += [["ab"], {"b": "a"}, re.compile("a"), re.compile("a", re.IGNORECASE), [["a"], "b"]]
    values += [re.compile(999 * "a"), re.compile(999 * "a" + "b"), [always, other], [other, always]]
    values += [{frozenset("ab"): 1}, {frozenset("ac"): 1}, {re.compile(999 * "a" + "c"): 1}]
    values += [{re.compile(999 * "a" + "d"): 1}, {("a", 1), ("b", 2)}, {("a", 2), ("b", 1)}]
    values += [[always, always], {"a": always, "b": other}, {"a": other, "b": always}, len, max]
    codes = [code(make(value)) for value in values]
    assert len(set(codes)) == len(values)
    assert codes == [code(make(value)) for value in values]


def test_other_functions_within_are_another_function() -> None:
    made = [closure("x"), decorated(closure("x")), decorated(other), decorated(always)]
    made += [functools.partial(always, label="x"), functools.partial(other, label="x")]
    assert len({code(one) for one in made}) == len(made)


def test_a_plain_function_is_its_source() -> None:
    read = FunctionCode(other)
    assert read.text.startswith('def other(prompt: Prompt, label: str = "none") -> str:')
    assert read.source == read.text.partition("\nother default 0 = 'none'")[0]


def test_global_variables_and_functions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(prompt: Prompt) -> str:
        return "none" if any(word in prompt.current for word in WORDS) else always(prompt)

    first = code(answer)
    monkeypatch.setitem(globals(), "WORDS", ["one", "two"])
    second = code(answer)
    monkeypatch.setitem(globals(), "always", other)
    assert len({first, second, code(answer)}) == 3


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the user with functions that use another one."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rules_help.py").write_text("def label():\n    return 'none'\n")
    (tmp_path / "rules.py").write_text(
        "import rules_help\nfrom rules_help import label\n\n\n"
        "def answer(prompt):\n    return label()\n\n\n"
        "def by_module(prompt):\n    return rules_help.label()\n\n\n"
        "def by_import(prompt):\n    from rules_help import label\n    return label()\n"
    )
    for name in ("rules", "rules_help"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("rules")


def test_a_function_of_another_module_counts(rules: ModuleType, tmp_path: Path) -> None:
    before = code(rules.answer)
    (tmp_path / "rules_help.py").write_text("def label():\n    return 'alert_past'\n")
    with pytest.raises(EngineError, match=r"rules_help\.py was changed after it was imported"):
        code(rules.answer)
    importlib.reload(rules.rules_help)
    importlib.reload(rules)
    assert code(rules.answer) != before


@pytest.mark.parametrize("name", ["by_module", "by_import"])
def test_a_module_of_the_user_is_unknown(name: str, rules: ModuleType) -> None:
    """Its variables may have any value, and come from files."""
    assert [one.partition(" ")[0] for one in FunctionCode(getattr(rules, name)).unknown] == [
        "`rules_help`"
    ]


def test_code_of_packages_is_known_by_its_name() -> None:
    def answer(prompt: Prompt) -> str:
        import math

        f1_score([1], [1])
        load_corpus("surrogate")
        math.floor(CountVectorizer.min_df + argmax(re.findall("a", prompt.current, IGNORECASE)))
        return "none"

    assert code(answer).splitlines()[-6:] == [
        "f1_score = sklearn.metrics._classification.f1_score",
        "load_corpus = cradle_lib.corpus.load.load_corpus",
        "CountVectorizer = sklearn.feature_extraction.text.CountVectorizer",
        "argmax = numpy.argmax",
        "re = re",
        "IGNORECASE = re.RegexFlag.IGNORECASE",
    ]


def test_lambdas_are_identified_by_their_own_text() -> None:
    one = functools.partial(always, words=lambda text: "a" if text
                            else "b")  # fmt: skip
    two = functools.partial(always, words=lambda text: "a" if text
                            else "c")  # fmt: skip
    assert code(one) != code(two)
    pair = [lambda prompt: "none", lambda prompt: "alert_past"]
    assert all(FunctionCode(one).unknown == ["`<lambda>` (no source)"] for one in pair)


@pytest.mark.parametrize("text", ["def answer(prompt):\n    return 'alert_past'\n", "def answer("])
def test_a_file_that_was_changed_after_its_import_is_refused(
    text: str, rules: ModuleType, tmp_path: Path, corpus: Corpus
) -> None:
    (tmp_path / "rules.py").write_text(text)
    with pytest.raises(EngineError, match=r"rules\.py was changed after it was imported"):
        run_model(rules.answer, corpus)


@pytest.mark.parametrize(
    "function",
    [
        closure(CountVectorizer()),
        functools.partial(always, words=iter("ab")),
        functools.partial(always, words=Lexicon(a="b")),
        Fixed("none"),
        closure(Fixed),
        functools.partial(Fixed.__call__, Fixed("none")),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_value_that_cannot_be_compared_needs_a_version(function: Answers, corpus: Corpus) -> None:
    with pytest.raises(EngineError, match=r"which can't be compared.* Give `version=`"):
        run_model(function, corpus, name="Mine")
    first, second = (run_model(function, corpus, name="Mine", version=one).record for one in "12")
    assert first.code != second.code


@pytest.mark.usefixtures("home")
def test_functions_with_other_values_do_not_share_a_run(corpus: Corpus) -> None:
    for label in ("none", "alert_past", "none"):
        made = run_model(functools.partial(always, label=label), corpus)
        assert made.masks.any() == (label != "none")


def test_another_process_finds_the_same_code(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import re\nfrom cradle_lib.detection.baselines.function_code import FunctionCode\n"
        "WORDS = {'one', 'two', 'three'}\n"
        "def answer(prompt):\n    return re.sub('a', 'b', str(sorted(WORDS)))\n"
        "print(FunctionCode(answer).text)\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "mine.py"],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in "123"
    }
    assert len(texts) == 1
    assert "WORDS" in texts.pop()

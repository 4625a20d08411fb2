"""The page about the library's names has all of them, each in the way that its kind needs."""

from __future__ import annotations

import inspect
import re

import cradle_lib
from cradle_lib import paths

LINE = re.compile(r"^\.\. auto(function|class|data):: cradle_lib\.([\w.]+)$", re.MULTILINE)


def test_every_public_name_is_on_the_page_once() -> None:
    found = LINE.findall((paths.BOOK / "api.md").read_text(encoding="utf-8"))
    assert sorted(name.rpartition(".")[2] for _, name in found) == sorted(cradle_lib.__all__)
    for kind, path in found:
        name = path.rpartition(".")[2]
        # A constant's own words stand only where it is made.
        assert (kind == "data") == ("." in path), name
        assert (kind == "class") == inspect.isclass(getattr(cradle_lib, name)), name


def test_every_public_function_says_what_it_takes_and_gives() -> None:
    functions = {name: getattr(cradle_lib, name) for name in cradle_lib.__all__}
    functions = {name: one for name, one in functions.items() if inspect.isfunction(one)}
    for name, one in functions.items():
        said, signature = inspect.getdoc(one) or "", inspect.signature(one)
        assert all(f"{parameter}:" in said for parameter in signature.parameters), name
        assert "Returns:" in said or signature.return_annotation in ("None", "Iterator[None]")

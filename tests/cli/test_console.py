"""What a command prints steers no terminal."""

from __future__ import annotations

import pytest

from cradle_lib.cli.console import err, out
from cradle_lib.cli.main import main


def test_escapes_are_written_out_and_what_is_endless_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out.print("\x1b[2J\x9b1m\u202ename")
    err.print("x" * 20_000_000)
    shown = capsys.readouterr()
    assert shown.out == "\\x1b[2J\\x9b1m\\u202ename\n"
    assert len(shown.err) < 3_000


def test_an_argument_with_escapes_is_quoted_without_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["cradle", "data", "check", "\x1b]0;t\x07.csv"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: \\x1b]0;t\\x07.csv: no such file. Check the path.\n"

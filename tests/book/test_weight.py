"""What a page need not carry is left out of the built site, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib.book.site.weight import icons, lighten, pruned
from cradle_lib.errors import BookError

# Three sets, each with its own shape of the moon; the script ends with the solid ones.
SCRIPT = (
    'var p={moon:[1,1,[],"f186","BRAND"]};d("fa-brands",p)'
    'var p={moon:[2,2,[],"f186","OUTLINE"]};d("fa-regular",p)'
    'var p={"full-moon":[3,3,[],"f6c3","OTHER"],moon:[384,512,[127769],"f186","M1 2z"],'
    '"angle-left":[320,512,[8249],"f104","M4 5z"]};d("fa-solid",p)'
)


@pytest.mark.parametrize(
    ("style", "left"),
    [
        (".met{a:b}", ".met{a:b}"),
        (".absent{a:b}", ""),
        (".absent .met{a:b}", ""),
        (".absent,.met{a:b}", ".met{a:b}"),
        ("p:not(.absent),#here{a:b}", "p:not(.absent),#here{a:b}"),
        (":is(.absent,.met) p{a:b}", ":is(.absent,.met) p{a:b}"),
        ("[class*=absent]{a:b}", "[class*=absent]{a:b}"),
        ("@media print{.absent{a:b}}", ""),
        ("@media print{.absent{a:b}.met{c:d}}", "@media print{.met{c:d}}"),
        ("@font-face{font-family:x}", "@font-face{font-family:x}"),
        ('@import "x.css";/* .gone{} */.met{a:b}', '@import "x.css";\n.met{a:b}'),
    ],
)
def test_a_rule_stays_if_something_can_meet_it(style: str, left: str) -> None:
    assert pruned(style, {"met", "here"}) == left
    assert pruned(left, {"met", "here"}) == left


def test_an_icon_is_the_solid_one_of_its_name(tmp_path: Path) -> None:
    script = tmp_path / "all.js"
    script.write_text(SCRIPT)
    style = icons(script, {"moon", "angle-left"})
    assert "M1 2z" in style
    assert "M4 5z" in style
    assert not any(other in style for other in ("BRAND", "OUTLINE", "OTHER"))
    with pytest.raises(BookError, match="no solid icon 'sun'"):
        icons(script, {"sun"})


def test_a_site_keeps_what_its_pages_name(tmp_path: Path) -> None:
    static = tmp_path / "_static"
    for name, text in {
        "page.html": '<i class="fa-solid fa-moon"></i><p class="met">1</p>',
        "_static/template.html": '<i class="fa-solid fa-nowhere"></i>',
        "_static/vendor/fontawesome/1/js/all.min.js": SCRIPT,
        "_static/theme.css": ".met{a:b}.absent{a:b}.made{a:b}",
        "_static/own.css": ".absent{a:b}",
        "_static/theme.js": 'x&&console.log("made");',
        "_static/own.js": 'console.log("mine");',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for _ in range(2):
        lighten(tmp_path, {"own.css", "own.js"})
        assert (static / "theme.css").read_text() == ".met{a:b}\n.made{a:b}"
        assert (static / "own.css").read_text() == ".absent{a:b}"
        assert (static / "theme.js").read_text() == 'x&&void("made");'
        assert (static / "own.js").read_text() == 'console.log("mine");'
        assert ".fa-moon" in (static / "icons.css").read_text()
        assert not (static / "vendor").exists()

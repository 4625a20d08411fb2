"""The one command, ``jupyter-book build book/``, over a miniature book."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .mini_book import build, make_site, notebook, write

TABLE = (
    "from IPython.display import HTML\n"
    "HTML('<table><tr><th></th><th>a</th></tr><tr><th>1</th><td>2</td></tr></table>')"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of two pages with the real configuration, templates and styles."""
    root = make_site(tmp_path_factory.mktemp("book"))
    write(root / "models.yml", "always-none: {name: None, group: baseline, engine: always-none}")
    write(root / "notebooks/pages.yml", "pages: [{page: one, notebook: one.ipynb}]")
    write(root / "notebooks/one.ipynb", notebook([TABLE], parameters=False, title="One"))
    return root


def test_a_failing_notebook_ends_the_build_with_four_lines_and_no_traceback(root: Path) -> None:
    good = (root / "notebooks/one.ipynb").read_text(encoding="utf-8")
    write(root / "notebooks/one.ipynb", notebook(["1 / 0"], parameters=False, title="One"))

    done = build(root)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "notebooks/one.ipynb (page one) failed",
        "  cell 2: 1 / 0",
        "  ZeroDivisionError: division by zero",
        "  full traceback: book/_build/notebook-runs/one.traceback.txt",
    ]
    assert "Traceback" not in done.stdout
    write(root / "notebooks/one.ipynb", good)


def test_one_command_executes_renders_and_tidies(root: Path) -> None:
    done = build(root)

    assert done.returncode == 0, done.stderr
    assert "[book] 1 pages executed, 0 up to date" in done.stdout
    page = (root / "book/_build/html/sections/one.html").read_text(encoding="utf-8")
    assert "<title>One" in page
    offered = root / "book/_build/html/_sources/sections/one.ipynb"
    assert offered.read_bytes() == (root / "notebooks/one.ipynb").read_bytes()
    assert "<th></th>" not in page
    assert "THEBE" not in page
    assert "x-thebe-config" not in page
    assert 'src="https://' not in page
    for number in ("988", "741741"):
        assert number in page
    intro = (root / "book/_build/html/intro.html").read_text(encoding="utf-8")
    assert "It costs $1 or $2." in intro
    assert "cradle-help-list" in intro


def test_without_changes_nothing_is_executed_or_written_again(root: Path) -> None:
    build(root)
    page = root / "book/_build/html/sections/one.html"
    before = page.stat().st_mtime_ns

    done = build(root)

    assert "[book] 0 pages executed, 1 up to date" in done.stdout
    assert page.stat().st_mtime_ns == before


def test_what_a_library_says_on_stderr_is_shown_and_is_no_fault_of_the_page(root: Path) -> None:
    good = (root / "notebooks/one.ipynb").read_text(encoding="utf-8")
    aside = "import sys, warnings\nwarnings.warn('old options')\nprint('half', file=sys.stderr)"
    bar = (
        "for done in (10, 90, 100):\n    print(end=f'\\rbar {done} %', file=sys.stderr, flush=True)"
    )
    write(
        root / "notebooks/one.ipynb",
        notebook([aside, bar, "'shown'"], parameters=False, title="One"),
    )

    done = build(root)

    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if "notebooks/one.ipynb (one): " in line]
    assert any(line.endswith("UserWarning: old options") for line in said)
    assert [line.partition("(one): ")[2] for line in said[-2:]] == ["half", "bar 100 %"]
    for place in ("book/_build/html", "book/sections"):
        assert not holding(root / place, "bar 100", "UserWarning")
    assert "shown" in (root / "book/_build/html/sections/one.html").read_text(encoding="utf-8")

    write(root / "notebooks/one.ipynb", notebook([aside, "1 / 0"], parameters=False, title="One"))
    done = build(root)
    assert done.returncode == 1
    assert "notebooks/one.ipynb (one): half" in done.stdout
    assert len(done.stderr.splitlines()) == 4
    write(root / "notebooks/one.ipynb", good)


def holding(folder: Path, *words: str) -> list[str]:
    """The files with one of these words in them, or in their name."""
    return [
        str(file)
        for file in folder.rglob("*")
        if any(word in file.name for word in words)
        or (file.is_file() and any(word.encode() in file.read_bytes() for word in words))
    ]


READ = [
    'corpus: str = "surrogate"',
    "from pathlib import Path\nfrom IPython.display import HTML, SVG\n"
    "said = Path(corpus).read_text()\nHTML(f'<p>{said}</p><h2>{said}</h2>')",
    'SVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">\'\n'
    "    f'<text>{said}</text></svg>')",
]


@pytest.fixture
def read(root: Path) -> Iterator[Path]:
    """The book with a page that shows its corpus, and one that belongs to one corpus alone."""
    before = {file: file.read_text() for file in (root / "notebooks").iterdir()}
    write(root / "notebooks/read.ipynb", notebook(READ, title="Read"))
    entry = (
        '{page: read, notebook: read.ipynb, parameters: {corpus: "{corpus}"}, '
        'inputs: ["corpus:test"]}'
    )
    pages = f"pages: [{{page: one, notebook: one.ipynb}}, {entry}]"
    write(root / "notebooks/pages.yml", pages)
    for name in "ab":
        write(root / f"{name}.csv", f"utterance of {name}")
    yield root
    for file in (root / "notebooks").iterdir():
        file.unlink()
    for file, text in before.items():
        file.write_text(text)
    build(root)


def test_a_book_about_another_corpus_leaves_nothing_of_the_one_before(read: Path) -> None:
    html, sections = read / "book/_build/html", read / "book/sections"
    extra = read / "notebooks/pages.yml"
    plan = extra.read_text(encoding="utf-8")
    only_a = '{page: only-a, notebook: read.ipynb, parameters: {corpus: "{corpus}"}}, '
    write(extra, plan.replace("{page: one,", only_a + "{page: one,"))
    assert build(read, "a.csv").returncode == 0
    assert len(holding(html, "utterance of a")) >= 3
    assert holding(sections, "utterance of a")
    kept = (sections / "one.ipynb").stat().st_mtime_ns
    write(extra, plan)

    done = build(read, "b.csv")

    assert done.returncode == 0, done.stderr
    assert "removed the pages of another corpus" in done.stdout
    assert "[book] 1 pages executed, 1 up to date" in done.stdout
    assert holding(html, "utterance of b")
    for folder in (html, sections, read / "book/_build"):
        assert not holding(folder, "utterance of a", "only-a")
    assert (sections / "one.ipynb").stat().st_mtime_ns == kept
    assert "another corpus" not in build(read, "b.csv").stdout


def test_a_page_that_is_dropped_leaves_no_page_source_picture_or_title(read: Path) -> None:
    assert build(read, "a.csv").returncode == 0
    html = read / "book/_build/html"
    assert list((html / "_images").iterdir())
    write(read / "notebooks/pages.yml", "pages: [{page: one, notebook: one.ipynb}]")

    done = build(read, "a.csv")

    assert done.returncode == 0, done.stderr
    assert "removed sections/read.html: the book has no such page" in done.stdout
    assert not holding(html, "utterance of a", "sections/read", "read.html", "read.ipynb")
    assert (html / "index.html").exists()
    assert (html / "search.html").exists()
    assert (html / "_sources/intro.md").exists()


def test_an_old_address_leads_to_its_new_page(root: Path) -> None:
    settings = root / "_config.yml"
    before = settings.read_text(encoding="utf-8")
    old = "{sections/gone: sections/one.html#one, older/gone: intro.html}"
    settings.write_text(before.replace("cradle_redirects: {}", f"cradle_redirects: {old}"))
    done = build(root)
    assert done.returncode == 0, done.stderr
    html = root / "book/_build/html"
    for page, target in {"sections/gone": "one.html#one", "older/gone": "../intro.html"}.items():
        text = (html / f"{page}.html").read_text(encoding="utf-8")
        assert f'content="0; url={target}"' in text
        assert f'rel="canonical" href="{target}"' in text
        assert f'<a href="{target}">' in text
        assert "noindex" in text
    for faulty in ("{gone: none.html}", "{gone: intro.html#none}", "{intro: sections/one.html}"):
        settings.write_text(before.replace("cradle_redirects: {}", f"cradle_redirects: {faulty}"))
        done = build(root)
        assert done.returncode == 1
        assert "WARNING: cradle_redirects: " in done.stderr
    settings.write_text(before)

"""The command ``jupyter-book build book/`` with a miniature book."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .mini_book import build, make_site, notebook, write

TABLE = (
    "from IPython.display import HTML\n"
    "HTML('<table><tr><th></th><th>a</th></tr><tr><th>1</th><td>2</td></tr></table>')"
)
ASIDE = "import sys, warnings\nwarnings.warn('old options')\nprint('half', file=sys.stderr)"
UNREAD = "Not shown: runs/<i>.jsonl: can't be read."
ASIDE += f"\nprint({UNREAD!r}, file=sys.stderr)"
BAR = "for done in (10, 90, 100):\n    print(end=f'\\rbar {done} %', file=sys.stderr, flush=True)"
BAR += f"\nprint('\\r' + {UNREAD!r}, file=sys.stderr)"
ONE = "{page: one, notebook: one.ipynb}"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of two pages with the real configuration, templates and styles."""
    root = make_site(tmp_path_factory.mktemp("book"))
    write(root / "book/search.yml", 'sections/one: ["988", help line]\n')
    write(root / "notebooks/pages.yml", f"pages: [{ONE}]")
    write_one(root, ASIDE, BAR, TABLE)
    return root


def write_one(root: Path, *cells: str) -> None:
    write(root / "notebooks/one.ipynb", notebook(cells, parameters=False, title="One"))


def redirect(root: Path, old: str, new: str) -> None:
    settings = root / "_config.yml"
    text = settings.read_text(encoding="utf-8")
    assert old in text
    settings.write_text(text.replace(old, new))


def files_with(folder: Path, *words: str) -> list[str]:
    """Returns the files with one of these words in their content or name."""
    return [
        str(file)
        for file in folder.rglob("*")
        if any(word in file.name for word in words)
        or (file.is_file() and any(word.encode() in file.read_bytes() for word in words))
    ]


def test_a_failing_notebook_fails_the_build_with_four_lines_and_no_traceback(root: Path) -> None:
    write_one(root, ASIDE, "1 / 0")

    done = build(root)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "notebooks/one.ipynb (page one) failed",
        "  cell 3: 1 / 0",
        "  ZeroDivisionError: division by zero",
        "  full traceback: book/_build/notebook-runs/one.traceback.txt",
    ]
    assert "Traceback" not in done.stdout
    write_one(root, ASIDE, BAR, TABLE)


def test_one_command_executes_and_renders_pages(root: Path) -> None:
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
    # A run that can't be read is a line on the page, and a warning that does not end the build,
    # also of a build that does not execute the page again.
    assert page.count('role="note"><p>Not shown: runs/&lt;i&gt;.jsonl') == 1
    for shown in (done.stdout, build(root).stdout):
        assert f"[book] warning: {UNREAD}" in shown
    # Standard error of libraries is not on the page.
    for place in ("book/_build/html", "book/sections"):
        assert not files_with(root / place, "bar 100", "UserWarning")


def test_old_addresses_redirect_and_keywords_are_indexed(root: Path) -> None:
    # Changing one page must keep the keywords of the other.
    write(root / "book/intro.md", "# Title\n\n```{helplines}\n```\n\nAnother text.\n")
    old = "{sections/gone: sections/one.html#one, older/gone: intro.html}"
    redirect(root, "cradle_redirects: {}", f"cradle_redirects: {old}")
    done = build(root)
    assert done.returncode == 0, done.stderr
    assert "executed, 1 up to date" in done.stdout
    html = root / "book/_build/html"
    for page, target in {"sections/gone": "one.html#one", "older/gone": "../intro.html"}.items():
        text = (html / f"{page}.html").read_text(encoding="utf-8")
        assert f'content="0; url={target}"' in text
        assert f'rel="canonical" href="{target}"' in text
        assert f'<a href="{target}">' in text
        assert "noindex" in text
    index = (html / "search-sections.js").read_text(encoding="utf-8")
    sections = json.loads(index.removeprefix("const SECTIONS = ").removesuffix(";\n"))
    keywords = {section["address"]: section["keywords"] for section in sections}
    assert keywords["sections/one.html"] == "988 · help line"
    assert keywords["intro.html"] == ""
    text = (html / "sections/one.html").read_text(encoding="utf-8")
    assert '<meta content="988, help line" name="keywords"' in text
    redirect(root, old, "{}")


READ = [
    'corpus: str = "surrogate"',
    "from pathlib import Path\nfrom IPython.display import HTML, SVG\n"
    "said = Path(corpus).read_text()\nHTML(f'<p>{said}</p><h2>{said}</h2>')",
    'SVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">\'\n'
    "    f'<text>{said}</text></svg>')",
]


def plan(root: Path, page: str) -> None:
    """Writes a plan with the first page and a page that shows the text of the corpus."""
    read = f'page: {page}, notebook: read.ipynb, parameters: {{corpus: "{{corpus}}"}}'
    write(root / "notebooks/pages.yml", f"pages: [{ONE}, {{{read}}}]")


def test_pages_of_another_corpus_are_removed_completely(root: Path) -> None:
    html, sections = root / "book/_build/html", root / "book/sections"
    write(root / "notebooks/read.ipynb", notebook(READ, title="Read"))
    write(root / "mine.csv", "utterance of a")
    plan(root, "only-a")
    assert build(root, "mine.csv").returncode == 0
    assert len(files_with(html, "utterance of a")) >= 2
    assert files_with(sections, "utterance of a")
    kept = (sections / "one.ipynb").stat().st_mtime_ns
    plan(root, "read")
    # The same file with other dialogues is another corpus.
    write(root / "mine.csv", "utterance of b")

    done = build(root, "mine.csv")

    assert done.returncode == 0, done.stderr
    assert "removed the pages of another corpus" in done.stdout
    assert "[book] 1 pages executed, 1 up to date" in done.stdout
    assert files_with(html, "utterance of b")
    assert list((html / "_images").iterdir())
    for folder in (html, sections, root / "book/_build"):
        assert not files_with(folder, "utterance of a", "only-a")
    assert (sections / "one.ipynb").stat().st_mtime_ns == kept


FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2], [{}, 3])\nplt.show()"


def test_a_page_that_is_removed_leaves_the_site(root: Path) -> None:
    html = root / "book/_build/html"
    write(root / "notebooks/qqmine.ipynb", notebook([FIGURE.format(0)], title="Qqmine"))
    entry = "{page: qqmine, notebook: qqmine.ipynb}"
    write(root / "notebooks/pages.yml", f"pages: [{ONE}, {entry}]")
    assert build(root).returncode == 0
    figures = {*(html / "_images").iterdir()}
    assert files_with(html, "qqmine")
    (root / "notebooks/qqmine.ipynb").unlink()

    # The notebook alone is not enough: the message says what is left to do.
    done = build(root)
    assert done.returncode == 1
    missing = f"{root}/notebooks/qqmine.ipynb: there is no such notebook."
    assert done.stderr.splitlines() == [f"{missing} {RESTORE}"]
    write(root / "notebooks/pages.yml", f"pages: [{ONE}]")
    done = build(root)

    assert done.returncode == 0, done.stderr
    assert not files_with(html, "qqmine")
    assert not (root / "book/sections/qqmine.ipynb").exists()
    assert len({*(html / "_images").iterdir()}) < len(figures)


RESTORE = "Restore it, or remove its entry from notebooks/pages.yml."
# A page that runs until it is ended, with processes that also write to the pipe.
ENDLESS = """
import subprocess
from multiprocessing import get_context
from threading import Event
pipe = open("running", "w")
subprocess.Popen(["sleep", "1000"], stdout=pipe)
pool = get_context("spawn").Pool(1)
pool.apply(int)
Event().wait()
"""


@pytest.mark.parametrize(
    ("sent", "to_all"), [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGKILL, False)]
)
def test_a_build_that_is_ended_leaves_no_process(
    root: Path, sent: signal.Signals, to_all: bool
) -> None:
    write(root / "notebooks/pages.yml", f"pages: [{ONE}]")
    write_one(root, "print('kept')")
    assert build(root).returncode == 0
    before = (root / "book/sections/one.ipynb").read_bytes()
    pipe = root / "notebooks/running"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    write_one(root, ENDLESS)
    process = subprocess.Popen(
        [Path(sys.executable).with_name("jupyter-book"), "build", "book/"],
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with pipe.open("rb") as running:
        # In a terminal, Ctrl-C reaches every process of the build.
        (os.killpg if to_all else os.kill)(process.pid, sent)
        _, message = process.communicate(timeout=300)
        # A pipe ends when the last process that writes to it does.
        assert select.select([running], [], [], 300)[0]
        assert running.read() == b""

    killed = sent == signal.SIGKILL
    line = "interrupted; the same command continues, and finished pages are kept"
    assert message.splitlines() == [line] * (not killed)
    assert process.returncode == (-sent if killed else 130)
    assert (root / "book/sections/one.ipynb").read_bytes() == before
    assert not list(root.glob("book/_build/notebook-runs/one*"))

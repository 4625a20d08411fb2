"""The book's Sphinx extension: executes outdated notebooks, and cleans pages and site.

Listed in ``_config.yml`` under ``sphinx.extra_extensions``, so that
``jupyter-book build book/`` is the only command needed.
"""

from __future__ import annotations

import html
import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final, NoReturn

from docutils import nodes  # type: ignore[import-untyped, unused-ignore]
from pydantic import RootModel
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from cradle_lib.book.build import update
from cradle_lib.book.cache_key import digest
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.outputs import place_files, remove_old_pages, remove_other_corpus
from cradle_lib.book.notebooks.page import UNREADABLE, tags_of
from cradle_lib.book.plan import Project
from cradle_lib.book.search_index import write_search_index
from cradle_lib.book.yaml_file import read_yaml
from cradle_lib.errors import CradleError
from cradle_lib.files import visible_files, write_text
from cradle_lib.version import library_version

# The table of contents is read at priority 900; until then the pages that it lists may be missing.
_BEFORE_TOC: Final = 100
_AFTER_THEMES: Final = 950
#: Exit status of the shell for a command that Ctrl-C ended.
_INTERRUPTED: Final = 130
#: Search keywords of pages, in the folder of the book.
_KEYWORDS: Final = "search.yml"
_THEBE: Final = re.compile(r'<script type="text/x-thebe-config">.*?</script>', re.DOTALL)
# Invalid for screen readers: empty header cells, and roles not allowed on these elements.
_BARRIERS: Final = (
    ("<th></th>", "<td></td>"),
    (' role="doc-biblioentry"', ""),
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),
)
# On a page without a table of contents, the theme's scroll spy would treat every link as an entry
# of one, and addresses of turns in the explorer as selectors.
_NO_SPY: Final = (
    "addEventListener('DOMContentLoaded', () => "
    "document.querySelector('.bd-toc-nav') || delete document.body.dataset.bsSpy);"
)
_log = logging.getLogger(__name__)


def bring_up_to_date(app: Sphinx, config: Config) -> None:
    """Executes the notebooks that are out of date, before Sphinx looks for pages.

    A failure ends the build with status 1 and the message of the failure. ``SystemExit`` passes
    through Sphinx and Jupyter Book, which wrap any other exception in a long traceback.
    """
    project = Project(Path(app.srcdir).parent)
    try:
        lines = read_yaml(project.root / "data" / "help_lines.yml", RootModel[dict[str, Any]])
        config.html_context["help_lines"] = lines.root
        keywords = Path(app.srcdir) / _KEYWORDS
        config.html_context["keywords"] = (
            read_yaml(keywords, RootModel[dict[str, list[str]]]).root if keywords.is_file() else {}
        )
        config.html_context["style_digest"] = _style_digest(Path(app.srcdir))
        corpus = BookCorpus.chosen(project.root)
        if remove_other_corpus(project, corpus, Path(app.outdir)):
            _log.info("[book] removed the pages of another corpus, so that they are never mixed")
        done = update(project, corpus=corpus, report=lambda line: _log.info("[book] %s", line))
    except CradleError as error:
        _say(str(error))
        raise SystemExit(1) from None
    for line in unreadable_runs(project):
        # Not a warning for Sphinx, which would end the build.
        _log.info("[book] warning: %s", line)
    _log.info("[book] %d pages executed, %d up to date", len({*done.executed}), len(done.fresh))


def _end(*_: object) -> NoReturn:
    """Ends the build after Ctrl-C, at any time, without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The signal may have arrived while Sphinx was printing, so that buffered output would fail.
    os.write(2, b"interrupted; the same command continues, and finished pages are kept\n")
    raise SystemExit(_INTERRUPTED)


def _say(line: str) -> None:
    sys.stdout.flush()
    print(line, file=sys.stderr)  # noqa: T201 - Sphinx would colour it and count it


def all_pages_if_any_changed(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Rebuilds all pages if one is new, changed or removed.

    Each page names the others in its navigation.
    """
    return sorted(env.found_docs) if added or changed or removed else []


def tidy_site(app: Sphinx, exception: Exception | None) -> None:
    """Removes old pages, and writes the files that pages load, and the redirects."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    remove_old_pages(out, app.env.found_docs, {name for _, name in app.env.images.values()})
    write_search_index(out, app.env.found_docs, app.config.html_context["keywords"])
    place_files(Project(Path(app.srcdir).parent), out)
    write_redirects(app)


def write_redirects(app: Sphinx) -> None:
    """Writes a redirecting page for every old address in ``cradle_redirects``."""
    out = Path(app.outdir)
    for old, new in app.config.cradle_redirects.items():
        target = os.path.relpath(out / new, (out / old).parent)
        content = app.builder.templates.render("redirect.html", {"target": target})
        write_text(out / f"{old}.html", content)


def add_keywords(app: Sphinx, document: nodes.document) -> None:
    """Adds a page's keywords to its head, for search engines."""
    keywords = app.config.html_context["keywords"]
    if keywords:
        app.env.note_dependency(str(Path(app.srcdir) / _KEYWORDS))
    words = keywords.get(app.env.docname, [])
    if words:
        document.append(nodes.meta(name="keywords", content=", ".join(words)))


def leave_search_to_the_book(app: Sphinx) -> None:
    """Switches off Sphinx's own index, which finds only pages that contain every word."""
    app.builder.search = False  # type: ignore[attr-defined]


def clean_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Removes scripts that the book does not use, and markup that is a barrier to some readers.

    The theme's extensions add a script for remote kernels, twice, which is an error in every
    browser; and scripts from content delivery networks, which would expose readers to others.
    """
    scripts = context.get("script_files", [])
    context["script_files"] = [script for script in scripts if not _unwanted(script)]
    if "pagetitle" in context:
        # The theme prints it above the page without escaping it.
        context["pagetitle"] = html.escape(context["pagetitle"])
    if "body" in context:
        body = _THEBE.sub("", context["body"])
        for found, better in _BARRIERS:
            body = body.replace(found, better)
        context["body"] = body


def unreadable_runs(project: Project) -> list[str]:
    """Lists the lines on executed pages about runs that could not be read, each once."""
    lines: dict[str, None] = {}
    for path in visible_files(project.sections, "*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if UNREADABLE in tags_of(cell):
                lines |= {"".join(output["data"]["text/plain"]): None for output in cell["outputs"]}
    return list(lines)


class HelpLinesDirective(SphinxDirective):
    """Lists the help lines in full: ``helplines``, without content or options."""

    def run(self) -> list[nodes.Node]:
        """Renders the list from the data that every page has."""
        templates = self.env.app.builder.templates
        context = {"help_lines": self.config.html_context["help_lines"]}
        return [nodes.raw("", templates.render("help-list.html", context), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the extension with Sphinx."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _end)
    app.connect("config-inited", bring_up_to_date, priority=_BEFORE_TOC)
    app.connect("builder-inited", leave_search_to_the_book)
    app.connect("env-get-outdated", all_pages_if_any_changed)
    app.connect("doctree-read", add_keywords)
    app.connect("build-finished", tidy_site)
    app.connect("html-page-context", clean_page, priority=_AFTER_THEMES)
    app.add_config_value("cradle_redirects", {}, "html", dict)
    app.add_directive("helplines", HelpLinesDirective)
    app.add_js_file(None, body=_NO_SPY)
    app.setup_extension("cradle_lib.book.mathml")
    return {"version": library_version(), "parallel_read_safe": True, "parallel_write_safe": True}


def _style_digest(book: Path) -> str:
    """Digest of styles and templates: without it, Sphinx would not copy a changed style."""
    files = sorted(
        f for part in ("_static", "_templates", "_search") for f in (book / part).rglob("*.*")
    )
    return digest(b"".join(f.name.encode() + f.read_bytes() for f in files if f.is_file()))


def _unwanted(script: Any) -> bool:
    name = str(getattr(script, "filename", script) or "")
    code = str(getattr(script, "attributes", {}).get("body") or "")
    # No page has content that the second one's buttons would fold.
    return "thebe" in name or "togglebutton" in name or "THEBE" in code or "://" in name

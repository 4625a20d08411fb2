"""Formulas on a page built with the book's settings, in a real browser."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml
from playwright.sync_api import Browser

from cradle_lib import paths

from ..command import run

PAGE = r"""# Scores

It costs $1 or $2, or $3-$4. A share is $\hat{p} = k / n$.

$$
\operatorname{micro\,F1} = \frac{2 \sum_d \mathrm{TP}_d}
  {2 \sum_d \mathrm{TP}_d + \sum_d \mathrm{FP}_d + \sum_d \mathrm{FN}_d}
$$ (micro)

See {eq}`micro`.

```{math}
\mathrm{ERDE}_o(d) = \begin{cases}
  c_\text{fp} & \text{if nothing was there to be seen}, \\
  1 - \dfrac{1}{1 + e^{k - o}} & \text{if it was predicted on turn } k
\end{cases}
```

$$
\alpha &= 1 - \frac{D_o}{D_e} \\
\bar{x} &= \frac{1}{n} \sum_{i=1}^{n} x_i
$$
"""


def build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    """Builds one page with the book's settings for formulas."""
    settings = yaml.safe_load((paths.ROOT / "_config.yml").read_text(encoding="utf-8"))
    chosen = {
        name: value
        for name, value in settings["sphinx"]["config"].items()
        if "dmath" in name or "math" in name or name == "myst_enable_extensions"
    }
    chosen |= {"extensions": ["myst_nb", "cradle_lib.book.mathml"], "html_theme": "basic"}
    lines = [f"{name} = {value!r}" for name, value in chosen.items()]
    (folder / "conf.py").write_text("\n".join(lines), encoding="utf-8")
    (folder / "index.md").write_text(page, encoding="utf-8")
    command = ["sphinx-build", "-W", "--keep-going", "-q", ".", "html"]
    code = "from sphinx.cmd.build import main\nsys.exit(main(arguments[1:]))"
    return run(code, command, os.environ, folder)


def test_a_browser_renders_formulas_without_requests(tmp_path: Path, browser: Browser) -> None:
    done = build(tmp_path, PAGE)
    assert done.returncode == 0, done.stderr
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((tmp_path / "html/index.html").as_uri(), wait_until="load")
    found = page.evaluate(
        """() => ({
          formulas: document.querySelectorAll('math').length,
          scripts: [...document.scripts].map(s => s.src).filter(s => s.includes('ath')),
          above: [...document.querySelectorAll('mfrac')].every(f =>
            f.children[0].getBoundingClientRect().bottom <=
            f.children[1].getBoundingClientRect().top + 1),
          rows: [...document.querySelectorAll('mtable')].map(t => new Set(
            [...t.querySelectorAll('mtr')].map(r => r.getBoundingClientRect().top)).size),
          text: document.body.innerText,
        })"""
    )
    page.close()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert found["scripts"] == []
    assert found["formulas"] == 4
    # Numerators are above denominators, and aligned equations have two rows.
    assert found["above"]
    assert found["rows"] == [2, 2]
    assert "$1 or $2, or $3-$4" in found["text"]


def test_an_invalid_formula_fails_the_build_with_its_position(tmp_path: Path) -> None:
    done = build(tmp_path, "# Title\n\nText.\n\n$$\n\\frobnicate{<b>}\n$$\n")
    assert done.returncode == 1
    assert "index.md:5: WARNING: the formula" in done.stderr
    assert 'Unknown command "\\frobnicate"' in done.stderr
    assert "\\frobnicate{&lt;b&gt;}" in (tmp_path / "html/index.html").read_text()

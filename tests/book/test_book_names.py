"""A model and a corpus with hostile names, on the pages of a built book, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Browser

from . import site as book
from .mini_book import build, make_site, notebook, write

NAME = r"onerror=alert(1) $x_1$ [/x] {{evil}} `*_|\#\`"

FILE = "<img src=x onerror=alert(2)> $y$ {name} [z]"
PLAN = """
pages:
  - page: runs
    notebook: runs.ipynb
    parameters: {model: hostile, corpus: "{corpus}"}
    provides: ["runs/{corpus_name}/{model}.jsonl"]
"""
CELLS = [
    'model: str = "keyword"\ncorpus: str = "surrogate"',
    "from pathlib import Path\nimport numpy as np\nimport pandas as pd\nimport yaml\n"
    "from cradle_lib import banner, confusion_frame, heat_map, load_corpus, show\n"
    "from cradle_lib import show_examples, show_figure, turn_marks\n"
    "from cradle_lib.detection import Predictions\nfrom cradle_lib.record import Record\n"
    "dialogues = load_corpus(corpus)\n"
    "name = yaml.safe_load(Path('../models.yml').read_text())[model]['name']\n"
    "record = Record.create(model=model, name=name, group='baseline', engine='keyword',\n"
    "    weights=name, prompt='turn', prompt_hash='0', decoding={'stop': name},\n"
    "    corpus=dialogues.name, corpus_fingerprint=dialogues.fingerprint)\n"
    "nothing = np.zeros(len(dialogues.gold), dtype=np.uint16)\n"
    "run = Predictions(record, dialogues, nothing, nothing.astype(np.uint8), ('',), 1)\n"
    "journal = Path('../runs') / dialogues.name / f'{model}.jsonl'\n"
    "journal.parent.mkdir(parents=True, exist_ok=True)\njournal.write_text('{}')\n"
    "banner(corpus=dialogues, runs=[run])",
    "turns = run.to_frame().assign(model=name)[['model', 'turn', 'predicted']].head(1)\n"
    "show(turns, name, rows='model')",
    "show(record.to_frame(), 'Record', rows='field')",
    "cells = confusion_frame(run)\n"
    "drawing = heat_map(cells, rows='gold', columns='predicted', value='count')\n"
    "show_figure(drawing, alt=name, caption=name)",
    "excerpts = pd.DataFrame([{'title': name, 'dialogue': dialogues.dialogues[0].id, 'first': 0,\n"
    "    'last': 0, 'turn': None, 'systems': [name]}])\n"
    "show_examples(dialogues, excerpts, turn_marks([run]))",
]
PICTURES = "[...document.images].filter(i => i.getAttribute('src').length < 5).length"


def test_a_page_shows_the_names_as_they_are(tmp_path: Path, browser: Browser) -> None:
    root = make_site(tmp_path)
    entry = {"name": NAME, "group": "baseline", "engine": "always-none", "default": True}
    write(root / "models.yml", json.dumps({"hostile": entry}))
    write(root / f"{FILE}.csv", "turn_id,text,labels\n0,User: Hello.,alert_ongoing\n")
    write(root / "notebooks/pages.yml", PLAN)
    write(root / "notebooks/runs.ipynb", notebook(CELLS, title="Runs"))
    done = build(root, f"{FILE}.csv")
    assert done.returncode == 0, done.stdout + done.stderr

    page = browser.new_page()
    alarms: list[str] = []
    requests: list[str] = []
    page.on("dialog", lambda dialog: (alarms.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: alarms.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    with book.serve(root / "book/_build/html") as site:
        page.goto(site.url("sections/runs.html"), wait_until="load")
        assert page.locator("article").inner_text().count(NAME) >= 5
        assert FILE in page.locator(".cradle-banner").inner_text()
        alt = page.locator("article figure img").first.get_attribute("alt")
        assert NAME in str(alt)
        # No script of a name runs, and no picture of a name is asked for.
        assert alarms == []
        assert not [url for url in requests if url.endswith("/x")]
        assert page.evaluate(PICTURES) == 0
    page.close()

"""How a page looks to whoever reads it, asked in the browser."""

from __future__ import annotations

import base64
import re
from pathlib import Path

# What of a page can be lost without a sign, is no sign at all, or can't be read.
LOOKS = r"""() => {
  const scrolled = [...document.querySelectorAll('.cradle-scroll, .cradle-math, ' +
      '.pst-scrollable-table-container, .text_html:has(> table, > div > table.dataframe)')]
    .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1);
  const shaded = e => getComputedStyle(e).backgroundAttachment.includes('local');
  const moves = e => {
    const cells = [...e.querySelectorAll('tbody th[scope=row]')].slice(0, 3);
    e.scrollLeft = 60;
    const kept = cells.every(c => Math.abs(
      c.getBoundingClientRect().left - e.getBoundingClientRect().left) < 2);
    e.scrollLeft = 0;
    return !kept;
  };
  const said = e => (e.getAttribute('aria-label') || e.innerText).slice(0, 60);
  const signs = [...document.querySelectorAll('body *')].flatMap(e => ['::before', '::after']
    .map(part => getComputedStyle(e, part).content)
    .filter(text => /[\ue000-\uf8ff]/.test(text)).map(text => e.className + text));
  const figures = [...document.querySelectorAll('.cradle-figure img')]
    .filter(i => i.checkVisibility())
    .map(i => [i.getAttribute('src'), i.getBoundingClientRect().width]);
  const texts = document.createTreeWalker(document.querySelector('article') ?? document.body, 4);
  const small = [];
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const size = parseFloat(getComputedStyle(node.parentElement).fontSize);
    if (node.textContent.trim() && size < 9) small.push(node.textContent.trim().slice(0, 30));
  }
  const first = document.querySelector('.tag_finding');
  const results = '.cradle-figure, .cradle-table, .cradle-choice, .cradle-explorer, .cradle-turns';
  const result = [...document.querySelectorAll(results)].find(e => e.checkVisibility());
  const top = result ? Math.round(result.getBoundingClientRect().top + scrollY) : 99999;
  const folds = [...document.querySelectorAll('article details.hide')];
  const closed = folds.map(e => e.getBoundingClientRect().height);
  const shown = [...document.querySelectorAll('article .cell_input pre')];
  const cuts = (e, way, size) => e[`scroll${size}`] > e[`client${size}`] + 1 &&
    !/auto|scroll/.test(getComputedStyle(e)[`overflow${way}`]);
  folds.forEach(e => { e.open = true; });
  const cut = shown.filter(e => [e, e.parentElement, e.closest('.cell_input')]
    .some(box => cuts(box, 'X', 'Width') || cuts(box, 'Y', 'Height'))).map(said);
  folds.forEach(e => { e.open = false; });
  return {
    top, cut,
    tall: closed.filter(height => height > 32),
    above: folds.filter(e => e.closest('.cell').querySelector('.cell_output')).map(said),
    unmarked: scrolled.filter(e => !shaded(e)).map(said),
    loose: scrolled.filter(moves).map(said),
    signs, small, figures,
    captions: [...document.querySelectorAll('figcaption')]
      .filter(e => +getComputedStyle(e).fontWeight < 400).map(said),
    finding: first?.innerText ?? '',
    opens: !first || [...document.querySelectorAll('.cell_input, details.hide, .cradle-banner')]
      .every(e => first.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING),
  };
}"""
# The contrast of every text with the first ground behind it that is not see-through.
FAINT = r"""() => {
  const parts = colour => colour.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = e => {
    for (let p = e; p; p = p.parentElement) {
      const colour = parts(getComputedStyle(p).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  const texts = document.createTreeWalker(document.body, 4);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !e.checkVisibility({visibilityProperty: true})) continue;
    if (e.closest('script, style, noscript, [disabled]')) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700) ? 3 : 4.5;
    const [one, other] = [light(parts(style.color)), light(ground(e))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < least) found.add(`${ratio.toFixed(2)} ${style.color} ${e.tagName}.${e.className}`);
  }
  return [...found].slice(0, 5);
}"""

_BOX = re.compile(r'viewBox="0 0 ([\d.]+)')
_SIZE = re.compile(r"<text[^>]*font(?:-size)?: ?(?:[a-z0-9]+ )*?([\d.]+)px")


def least_text(page: Path, figures: list[tuple[str, float]]) -> float:
    """Finds how many pixels high the smallest text on a page's figures is shown.

    Args:
        page: The file of the page.
        figures: The source of each figure, and how many pixels wide it is shown.

    Returns:
        99 without a text.
    """
    sizes = [99.0]
    for source, width in figures:
        held = source.partition(";base64,")[2]
        svg = base64.b64decode(held) if held else (page.parent / source).read_bytes()
        text = svg.decode("utf-8")
        across = _BOX.search(text)
        assert across is not None, source
        sizes += [float(size) * width / float(across[1]) for size in _SIZE.findall(text)]
    return min(sizes)

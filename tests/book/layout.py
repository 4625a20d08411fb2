"""JavaScript that checks the layout of a page in the browser."""

from __future__ import annotations

# Finds cut code, scrolling boxes without a shadow or fixed row headings, icon-font characters, thin
# captions, code above results or below the line of its download, and the position of the finding
# and the first result.
LAYOUT = r"""() => {
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
  const text = e => (e.getAttribute('aria-label') || e.innerText).slice(0, 60);
  const signs = [...document.querySelectorAll('body *')].flatMap(e => ['::before', '::after']
    .map(pseudo => getComputedStyle(e, pseudo).content)
    .filter(part => /[\ue000-\uf8ff]/.test(part)).map(part => e.className + part));
  const first = document.querySelector('.tag_finding');
  const results = '.cradle-figure, .cradle-calculator, .cradle-table, .cradle-choice, '
    + '.cradle-explorer, .cradle-turns';
  const result = [...document.querySelectorAll(results)].find(e => e.checkVisibility());
  const top = result ? Math.round(result.getBoundingClientRect().top + scrollY) : 99999;
  const folds = [...document.querySelectorAll('article details.hide')];
  const closed = folds.map(e => e.getBoundingClientRect().height);
  const shown = [...document.querySelectorAll('article .cell_input pre')];
  const cuts = (e, way, size) => e[`scroll${size}`] > e[`client${size}`] + 1 &&
    !/auto|scroll/.test(getComputedStyle(e)[`overflow${way}`]);
  folds.forEach(e => { e.open = true; });
  const cut = shown.filter(e => [e, e.parentElement, e.closest('.cell_input')]
    .some(box => cuts(box, 'X', 'Width') || cuts(box, 'Y', 'Height'))).map(text);
  folds.forEach(e => { e.open = false; });
  const middle = e => (e.getBoundingClientRect().top + e.getBoundingClientRect().bottom) / 2;
  const code = [...document.querySelectorAll(
    '.cell:has(.text_html > .cradle-downloads:last-child) + .cell.tag_hide-input > details.hide')];
  const link = e => e.closest('.cell').previousElementSibling
    .querySelector('.cradle-downloads:last-child a');
  const uneven = code.filter(e =>
    Math.abs(middle(e.querySelector('summary')) - middle(link(e))) > 4);
  return {
    top, cut, uneven: uneven.map(text),
    tall: closed.filter(height => height > 32),
    above: folds.filter(e => e.closest('.cell').querySelector('.cell_output')).map(text),
    unmarked: scrolled.filter(e => !shaded(e)).map(text),
    loose: scrolled.filter(moves).map(text),
    signs,
    captions: [...document.querySelectorAll('figcaption')]
      .filter(e => +getComputedStyle(e).fontWeight < 400).map(text),
    finding: first?.innerText ?? '',
    opens: !first || [...document.querySelectorAll('.cell_input, details.hide, .cradle-banner')]
      .every(e => first.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING),
  };
}"""

// The search: sections that contain any of the words, the best first, with the passage that matches.
(() => {
  const MOST = 30;
  const PER_PAGE = 3;
  const PASSAGE_WORDS = 36;
  // Words of questions, which almost every section contains.
  const IGNORED = new Set(
    ("a an and are as at be been between by can could did do does for from had has have how i in " +
      "is it its many me my of on one or our shall should that the their then there these they this " +
      "to was we were what when where which who why will with would you your").split(" "),
  );

  const engine = new MiniSearch({
    fields: ["heading", "page", "keywords", "text"],
    storeFields: ["address", "page", "heading", "text"],
    processTerm: (word) => {
      const term = word.toLowerCase();
      return IGNORED.has(term) ? null : term;
    },
    searchOptions: {
      boost: { heading: 3, page: 2, keywords: 6 },
      prefix: (term) => term.length > 3,
      fuzzy: (term) => (term.length > 3 ? 0.2 : false),
      weights: { prefix: 0.6, fuzzy: 0.3 },
    },
  });
  engine.addAll(SECTIONS);

  const field = document.getElementById("search-page-input");
  const list = document.getElementById("search-results");
  const count = document.getElementById("search-count");

  /** Splits a text at the words that the search found: [text, is it found]. */
  function split(text, terms) {
    const found = new Set(terms);
    return text
      .split(/([\p{L}\p{N}]+)/u)
      .map((part) => [part, found.has(part.toLowerCase())]);
  }

  /** Returns the part of a text that contains the most different words that were found. */
  function passage(text, terms) {
    const parts = split(text, terms);
    const width = 2 * PASSAGE_WORDS;
    let best = 0;
    let most = -1;
    for (let start = 0; start === 0 || start + width / 2 < parts.length; start += width / 4) {
      const words = parts.slice(start, start + width).filter(([, found]) => found);
      const different = new Set(words.map(([word]) => word.toLowerCase())).size;
      if (different > most) [best, most] = [start, different];
    }
    const shown = parts.slice(best, best + width);
    if (best > 0) shown.unshift(["… ", false]);
    if (best + width < parts.length) shown.push([" …", false]);
    return shown;
  }

  function marked(element, parts) {
    for (const [text, found] of parts) {
      if (!found) {
        element.append(text);
        continue;
      }
      const mark = document.createElement("mark");
      mark.textContent = text;
      element.append(mark);
    }
    return element;
  }

  function item(result) {
    const link = document.createElement("a");
    link.href = result.address;
    const title = result.heading ? `${result.page} › ${result.heading}` : result.page;
    marked(link, split(title, result.terms));
    const text = marked(document.createElement("p"), passage(result.text, result.terms));
    const row = document.createElement("li");
    row.append(link, text);
    return row;
  }

  function search(words) {
    const ofPage = {};
    const results = engine.search(words).filter(({ page }) => {
      ofPage[page] = (ofPage[page] ?? 0) + 1;
      return ofPage[page] <= PER_PAGE;
    });
    list.replaceChildren(...results.slice(0, MOST).map(item));
    const asked = words.trim() !== "";
    count.textContent = !asked
      ? ""
      : results.length === 0
        ? "Nothing was found. Try other words."
        : `${Math.min(results.length, MOST)} sections, the best first`;
  }

  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", () => search(field.value));
  field.focus();
  search(field.value);
})();

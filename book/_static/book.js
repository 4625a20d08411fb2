// Elements that are wider than the text also take the margin. The theme's script runs after this one
// and hides the list of sections next to elements with the class `full-width`.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  for (const box of document.querySelectorAll(".cradle-scroll, .cradle-math")) {
    if (box.scrollWidth > box.clientWidth) box.classList.add("full-width");
  }
});

// The Tab key stops once in a heat map. The left and right arrows move to the previous or next cell
// with a link, row by row; the up and down arrows to the nearest cell with a link in that direction.
document.addEventListener("keydown", event => {
  const spot = event.target.closest?.(".cradle-spot");
  if (!spot || !/^Arrow/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const spots = [...spot.parentElement.querySelectorAll(".cradle-spot")];
  const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const distance = other => {
    const ahead = down * (other.offsetTop - spot.offsetTop);
    return ahead > 1 ? ahead + 3 * Math.abs(other.offsetLeft - spot.offsetLeft) : Infinity;
  };
  const next = down
    ? spots.reduce((nearest, other) => (distance(other) < distance(nearest) ? other : nearest))
    : spots[spots.indexOf(spot) + (event.key === "ArrowRight" ? 1 : -1)];
  if (!next || (down && distance(next) === Infinity)) return;
  spot.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

// Lists the largest cells of each heat map that are not on its diagonal; on a phone the list replaces it.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  for (const map of document.querySelectorAll(".cradle-map")) {
    const cells = [...map.querySelectorAll(".cradle-spot")]
      .map(spot => [spot, ...(spot.title.match(/([^ ]+), .*?([^ ]+): ([\d,]+)$/) ?? [])])
      .filter(([, found, row, column]) => found && row !== column)
      .map(([spot, , , , number]) => [spot, Number(number.replaceAll(",", ""))])
      .sort(([, one], [, other]) => other - one);
    if (!cells.length) continue;
    const box = Object.assign(document.createElement("div"), { className: "cradle-ranked" });
    box.textContent = "The largest numbers of different labels:";
    const list = box.appendChild(document.createElement("ol"));
    for (const [spot] of cells.slice(0, 12)) {
      const link = Object.assign(document.createElement("a"), { href: spot.href, textContent: spot.title });
      list.append(document.createElement("li"));
      list.lastChild.append(link);
    }
    map.closest("figure").classList.add("cradle-has-list");
    map.closest("figure").querySelector("figcaption").before(box);
  }
});

// Shows one of several results at a time. Without this script, all results are shown.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  for (const box of document.querySelectorAll(".cradle-choice")) {
    const list = box.querySelector("select");
    const parts = box.querySelectorAll(":scope > [role=group]");
    const showSelected = () => parts.forEach((part, index) => (part.hidden = index !== list.selectedIndex));
    box.classList.add("cradle-scripted");
    list.parentElement.hidden = false;
    list.addEventListener("change", showSelected);
    showSelected();
  }
});

// Tables whose headings sort the rows within each group. Each heading becomes a button, and
// `aria-sort` marks the sorted column. Numbers start with the largest; undefined values come last.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  const collator = new Intl.Collator("en", { numeric: true });
  const compare = (a, b, down) => {
    const numbers = [a, b].map(cell => cell.dataset.value);
    const sign = down ? -1 : 1;
    if (numbers.includes(undefined) && (numbers[0] ?? numbers[1])) return numbers[0] ? -1 : 1;
    return sign * (numbers[0] ? numbers[0] - numbers[1] : collator.compare(a.textContent, b.textContent));
  };
  for (const table of document.querySelectorAll(".cradle-sortable")) {
    const heads = [...[...table.tHead.rows].at(-1).cells];
    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const down = before ? before === "ascending" : !!table.querySelector(`tr > :nth-child(${index + 1})[data-value]`);
        heads.forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        for (const body of table.tBodies) {
          const rows = [...body.rows].filter(row => !row.classList.contains("group"));
          body.append(...rows.sort((a, b) => compare(a.cells[index], b.cells[index], down)));
        }
      });
    });
  }
});

// What is wider than the text takes the margin beside it. The theme's script, which runs after this,
// hides the list of sections beside whatever is marked so.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  for (const box of document.querySelectorAll(".cradle-scroll, .cradle-math")) {
    if (box.scrollWidth > box.clientWidth) box.classList.add("full-width");
  }
});

// The cells of a heat map are one stop of the Tab key. Left and right go from one cell that leads
// anywhere to the next, row by row; up and down to the nearest one there.
document.addEventListener("keydown", event => {
  const spot = event.target.closest?.(".cradle-spot");
  if (!spot || !/^Arrow/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const spots = [...spot.parentElement.querySelectorAll(".cradle-spot")];
  const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const far = other => {
    const ahead = down * (other.offsetTop - spot.offsetTop);
    return ahead > 1 ? ahead + 3 * Math.abs(other.offsetLeft - spot.offsetLeft) : Infinity;
  };
  const next = down
    ? spots.reduce((one, other) => (far(other) < far(one) ? other : one))
    : spots[spots.indexOf(spot) + (event.key === "ArrowRight" ? 1 : -1)];
  if (!next || (down && far(next) === Infinity)) return;
  spot.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

// One of several results is open. Without this script a reader sees all of them.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  for (const box of document.querySelectorAll(".cradle-choice")) {
    const list = box.querySelector("select");
    const parts = box.querySelectorAll(":scope > [role=group]");
    const open = () => parts.forEach((part, place) => (part.hidden = place !== list.selectedIndex));
    box.classList.add("cradle-scripted");
    list.parentElement.hidden = false;
    list.addEventListener("change", open);
    open();
  }
});

// Tables whose headings sort the rows, within each group. A button is put into each heading, and
// `aria-sort` says what is sorted. Numbers begin with the largest; what is undefined comes last.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  const texts = new Intl.Collator("en", { numeric: true });
  const compare = (one, other, down) => {
    const numbers = [one, other].map(cell => cell.dataset.value);
    const sign = down ? -1 : 1;
    if (numbers.includes(undefined) && (numbers[0] ?? numbers[1])) return numbers[0] ? -1 : 1;
    return sign * (numbers[0] ? numbers[0] - numbers[1] : texts.compare(one.textContent, other.textContent));
  };
  for (const table of document.querySelectorAll(".cradle-sortable")) {
    const heads = [...[...table.tHead.rows].at(-1).cells];
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const down = before ? before === "ascending" : !!table.querySelector(`td:nth-child(${place + 1})[data-value]`);
        heads.forEach(each => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        for (const body of table.tBodies) {
          const rows = [...body.rows].filter(row => !row.classList.contains("group"));
          body.append(...rows.sort((one, other) => compare(one.cells[place], other.cells[place], down)));
        }
      });
    });
  }
});

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
    const parts = box.querySelectorAll(":scope > section");
    const open = () => parts.forEach((part, place) => (part.hidden = place !== list.selectedIndex));
    box.classList.add("cradle-scripted");
    list.parentElement.hidden = false;
    list.addEventListener("change", open);
    open();
  }
});

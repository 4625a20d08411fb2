// What is wider than the text takes the margin beside it. The theme's script, which runs after this,
// hides the list of sections beside whatever is marked so.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  for (const box of document.querySelectorAll(".cradle-scroll, .cradle-math")) {
    if (box.scrollWidth > box.clientWidth) box.classList.add("full-width");
  }
});

// The cells of a heat map are one stop of the Tab key. An arrow key goes to the nearest cell that
// leads anywhere in its direction; a step to the side counts three times as far.
const DIRECTIONS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
document.addEventListener("keydown", event => {
  const [spot, direction] = [event.target.closest?.(".cradle-spot"), DIRECTIONS[event.key]];
  if (!spot || !direction || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const middle = e => [e.offsetLeft + e.offsetWidth / 2, e.offsetTop + e.offsetHeight / 2];
  const [from, [dx, dy]] = [middle(spot), direction];
  let [next, least] = [null, Infinity];
  for (const other of spot.parentElement.querySelectorAll(".cradle-spot")) {
    const [x, y] = middle(other).map((place, axis) => place - from[axis]);
    const [ahead, aside] = [x * dx + y * dy, Math.abs(x * dy) + Math.abs(y * dx)];
    if (ahead > 1 && ahead + 3 * aside < least) [next, least] = [other, ahead + 3 * aside];
  }
  if (!next) return;
  spot.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

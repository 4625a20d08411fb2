// What is wider than the text takes the margin beside it. The theme's script, which runs after this,
// hides the list of sections beside whatever is marked so.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  for (const box of document.querySelectorAll(".cradle-scroll, .cradle-math")) {
    if (box.scrollWidth > box.clientWidth) box.classList.add("full-width");
  }
});

// The text search. It compares texts without regard to case, accents, the kind of quote, hyphen
// and space, and invisible characters such as soft hyphens.

const QUOTES = /["'`´\p{Pi}\p{Pf}\u02b9-\u02bf\u201a\u201e\u2032-\u2037\u275b-\u275e\uff02\uff07]/gu;

const folded = text => text.replace(/\p{Cf}/gu, "").replace(QUOTES, "'").normalize("NFKD").replace(/[\u0300-\u036f]/gu, "")
  .replace(/[\s\p{Z}\p{Cc}]/gu, " ").replace(/\p{Pd}/gu, "-").toUpperCase().toLowerCase().replaceAll("ς", "σ");

// Marks a folded search text in a line.
function markText(line, wanted) {
  if (!wanted) return [line];
  // The folded line, and the character of the line from which each of its characters is.
  let [text, places, place] = ["", [], 0];
  for (const char of line) {
    const part = folded(char);
    places.push(...Array(part.length).fill(place));
    text += part;
    place += char.length;
  }
  places.push(line.length);
  const parts = [];
  let from = 0;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
    const [start, end] = [places[at], places[at + wanted.length]];
    if (start === end) continue; // The first half of a character such as ß.
    parts.push(line.slice(from, start), create("mark", {}, line.slice(start, end)));
    from = end;
  }
  return [...parts, line.slice(from)];
}

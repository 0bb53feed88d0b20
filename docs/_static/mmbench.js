// On phones, tables of a few columns of words become cards, and long tables below the first of a page are folded;
// wider tables, code and equations that go on to the right fade out there.
// Headings of cells that explain themselves.
const PLAIN = ["Claim", "Meaning", "Value", "Why"];
// Number of rows above which a table is folded.
const ROWS = 10;

// Without a mathematical font, as on many phones, Chromium draws the indices of letters without a descender on
// the line of the letter.
const DESCENDER = /[∑βγζηξρφϕχψμgjpqy)]$/;

const lowerIndices = () => {
  const trial = document.createElement("div");
  trial.innerHTML = "<math><msub><mi>x</mi><mi>x</mi></msub></math>";
  document.body.append(trial);
  const [letter, index] = [...trial.querySelectorAll("mi")].map((part) => part.getBoundingClientRect().bottom);
  trial.remove();
  if (index > letter) return;
  for (const script of document.querySelectorAll("msub, msubsup"))
    if (!DESCENDER.test(script.children[0].textContent)) script.children[1].classList.add("lowered");
};

document.addEventListener("DOMContentLoaded", () => {
  lowerIndices();
  // On phones, long names in tables are broken after underscores.
  for (const name of document.querySelectorAll(".bd-article td code .pre, .bd-article td:first-child > p"))
    if (!name.children.length) name.innerHTML = name.innerHTML.replaceAll("_", "_<wbr>");
  const phone = window.matchMedia("(max-width: 600px)");
  const tables = [...document.querySelectorAll(".bd-article .pst-scrollable-table-container > table")];
  const boxes = [...document.querySelectorAll(
    ".bd-article .pst-scrollable-table-container, .bd-article pre, .bd-article div.math, .bd-article p:has(> img)"
  )];

  for (const table of tables) {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr"))
      [...row.children].forEach((cell, k) => {
        cell.dataset.label = heads[k] || "";
        cell.classList.toggle("plain", k === 0 || heads.length <= 2 || PLAIN.includes(heads[k]));
        const text = cell.textContent.trim();
        cell.classList.toggle("nothing", ["", "–"].includes(text));
        cell.classList.toggle("long", text.length > 14);
        cell.classList.toggle("words", text.length > 40);
        cell.classList.toggle("short", text.length < 10);
      });
    // A column of numbers may contain lists of parameters.
    for (const k of heads.keys()) {
      const column = [...table.querySelectorAll(`tbody td.text-right:nth-child(${k + 1})`)];
      if (column.some((cell) => cell.textContent.length > 20 && /[A-Za-z]{3}/.test(cell.textContent)))
        for (const cell of [...column, table.tHead.rows[0].cells[k]]) cell.classList.add("phrase");
    }
  }

  const folds = tables.slice(1).filter(
    (table) => table.tBodies[0].rows.length > ROWS && !table.closest("details, .autosummary")
  ).map((table) => {
    const fold = document.createElement("details");
    const names = new Set([...table.tBodies[0].rows].map((row) => row.cells[0].textContent.trim()));
    const summary = document.createElement("summary");
    summary.textContent = `${table.tBodies[0].rows.length} rows: ${[...names].filter(Boolean).join("; ")}`;
    fold.className = "phone";
    table.parentElement.replaceWith(fold);
    fold.append(summary, table.parentElement);
    return fold;
  });
  const unfold = () => folds.forEach((fold) => { fold.open = !phone.matches; });
  phone.addEventListener("change", unfold);
  unfold();

  const fade = (box) =>
    box.classList.toggle("goes-on", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);

  const lay = () => {
    for (const table of tables) {
      table.classList.remove("cards", "scrolls");
      const columns = table.rows[0].cells.length;
      const words = 3 * table.querySelectorAll("thead .text-right").length < columns;
      // Rows of many lines show that columns are too narrow for their words.
      const tall = [...table.tBodies[0].rows].some((row) => row.offsetHeight > 120);
      const few = (columns <= 7 || (tall && words)) && columns * table.rows.length <= 130;
      const wide = table.scrollWidth > table.parentElement.clientWidth + 2;
      const names = table.classList.contains("autosummary");
      const cards = phone.matches && ((few && (tall || (words && wide))) || names);
      table.classList.toggle("cards", cards);
      table.classList.toggle("scrolls", wide && !cards);
      table.classList.toggle("labelled", !!table.querySelector("td:not(.plain)"));
    }
    boxes.forEach(fade);
  };
  for (const box of boxes) box.addEventListener("scroll", () => fade(box), { passive: true });
  window.addEventListener("resize", lay);
  document.addEventListener("toggle", lay, true);
  window.addEventListener("load", lay);
  lay();
});

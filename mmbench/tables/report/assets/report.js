// Sorting, filtering and details on the pages of mmbench report; all text is readable without it.
"use strict";

// -- sorting: a button in every heading of a table of class "sortable" ---------------------------

function valueOf(cell) {
  const text = cell.dataset.sort ?? cell.textContent.trim();
  const number = Number(text.replace("−", "-"));
  return text === "" || text === "–" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortBy(table, column, ascending) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // unknown values come last
    return ascending ? compare(a, b) : compare(b, a);
  });
  body.append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortBy(table, column, ascending);
    });
  });
}

// -- filtering: a form above a table; a select element filters the column of the same name ----------

for (const form of document.querySelectorAll("form.filter")) {
  const table = document.getElementById(form.dataset.table);
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells];
  const filter = () => {
    const wanted = [...form.querySelectorAll("select")]
      .filter((select) => select.value)
      .map((select) => [heads.findIndex((h) => h.dataset.name === select.name), select.value]);
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word)) &&
        wanted.every(([column, value]) => row.cells[column].textContent.trim() === value);
      row.hidden = !fits;
      shown += fits;
    }
    form.querySelector("output").value = `${shown} of ${rows.length}`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}

// -- a long first table: folded on a phone ------------------------------------------------------------

if (matchMedia("(max-width: 40rem)").matches) {
  for (const details of document.querySelectorAll("details.first")) details.open = false;
}

// -- details of a table cell: shown on hover, on focus, or on the first tap --------------------------

const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
tip.setAttribute("role", "tooltip");
document.body.append(tip);
let owner = null;

function showTip(link) {
  owner = link;
  const details = document.getElementById(link.dataset.details);
  tip.replaceChildren(...[...details.childNodes].map((node) => node.cloneNode(true)));
  tip.hidden = false;
  const at = link.getBoundingClientRect();
  const below = at.bottom + 8 + tip.offsetHeight <= innerHeight || at.top < tip.offsetHeight + 8;
  tip.style.top = `${below ? at.bottom + 6 : at.top - tip.offsetHeight - 6}px`;
  tip.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
}

function hideTip() {
  owner = null;
  tip.hidden = true;
}

for (const link of document.querySelectorAll("[data-details]")) {
  link.setAttribute("aria-describedby", link.dataset.details);
  let touched = false;
  link.addEventListener("pointerdown", (event) => { touched = event.pointerType !== "mouse"; });
  link.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") showTip(link); });
  link.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hideTip(); });
  link.addEventListener("focus", () => { if (link.matches(":focus-visible")) showTip(link); });
  link.addEventListener("blur", () => setTimeout(() => { if (owner === link && !tip.matches(":hover")) hideTip(); }, 100));
  link.addEventListener("click", (event) => {
    if (link.tagName === "BUTTON" || (touched && owner !== link)) {
      event.preventDefault();
      showTip(link);
    }
  });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
document.addEventListener("pointerdown", (event) => {
  if (owner && !tip.contains(event.target) && !owner.contains(event.target)) hideTip();
});
document.addEventListener("scroll", () => { if (owner) hideTip(); }, { passive: true, capture: true });

// -- pictures: drawn by plotly in the colours of the page ---------------------------------------------

/** Return a title with line breaks, with at most `length` characters per line if words permit. */
function wrapped(title, length) {
  const lines = [""];
  for (const word of (title?.text ?? "").split(" ")) {
    const line = `${lines.at(-1)} ${word}`.trim();
    if (line.length > length && lines.at(-1)) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return { ...title, text: lines.join("<br>") };
}

/** Return traces with what all have in common. Names stand on the inner side of their points, and
    the legend shows filled markers. */
function completed(data, layout) {
  const at = (x) => (layout.xaxis?.type === "log" ? Math.log(x) : x);
  const places = data.flatMap(({ x }) => x.map(at));
  const middle = (Math.min(...places) + Math.max(...places)) / 2;
  return data.flatMap((trace) => {
    const { marker, name, text, x } = trace;
    const side = (value) => (at(value) > middle ? "middle left" : "middle right");
    const made = {
      type: "scatter", mode: text ? "markers+text" : "markers", hoverinfo: "text", cliponaxis: false,
      textposition: x.map(side), showlegend: name !== undefined, ...trace,
      error_x: { type: "data", thickness: 1, width: 3, ...(trace.error_x ?? { array: [] }) },
    };
    if (!Array.isArray(marker.symbol) || made.showlegend === false) return [made];
    const symbol = marker.symbol[0].replace("-open", "");
    const sign = { ...made, x: [null], y: [made.y[0]], error_x: { array: [] }, text: [""], marker: { ...marker, symbol } };
    return [{ ...sign, legendgroup: name }, { ...made, showlegend: false, legendgroup: name }];
  });
}

function themed(layout, width) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--ink"), zerolinewidth: 1.5, linecolor: colour("--line") };
  return {
    ...layout,
    autosize: true,
    showlegend: true,
    dragmode: false,
    hovermode: "closest",
    margin: { l: 10, r: 10, t: 10, b: 10 },
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { color: colour("--ink"), family: getComputedStyle(document.body).fontFamily, size: 13 },
    hoverlabel: { align: "left", bgcolor: colour("--paper"), bordercolor: colour("--soft"), font: { color: colour("--ink") } },
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" },
    // names of data sets take some 160 pixels; a character of a title takes some 9.5 pixels
    xaxis: { ...axis, ...layout.xaxis, title: wrapped(layout.xaxis?.title, Math.max(14, (width - 160) / 9.5)) },
    yaxis: { ...axis, ...layout.yaxis },
    // of two lines, the lower one has its text below it, so that the texts do not overlap
    annotations: (layout.annotations ?? []).map((note, k, notes) => ({
      xref: "paper", x: 1, xanchor: "right", showarrow: false, ...note,
      yanchor: notes.some((other, j) => other.y > note.y || (other.y === note.y && j < k)) ? "top" : "bottom",
    })),
    shapes: (layout.shapes ?? []).map((shape) => (
      shape.type === "line" ? { ...shape, line: { color: colour("--ink"), ...shape.line } }
        : { xref: "paper", x0: 0, x1: 1, opacity: 0.15, line: { width: 0 }, layer: "below", ...shape }
    )),
  };
}

function drawAll() {
  for (const script of document.querySelectorAll("script[data-plot]")) {
    const place = document.getElementById(script.dataset.plot);
    const { data, layout } = JSON.parse(script.textContent);
    Plotly.react(place, completed(data, layout), themed(layout, place.clientWidth), { displayModeBar: false, responsive: true });
    if (place.dataset.drawn) continue;
    place.dataset.drawn = "yes";
    place.on("plotly_click", ({ points: [point] }) => {
      if (point.customdata) location.href = point.customdata;
    });
  }
}

if (document.querySelector("script[data-plot]") && window.Plotly) {
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (width !== innerWidth) drawAll();
    width = innerWidth;
  });
}

// The page of machines in the browser: points are drawn, parameters are moved, and every machine is trained again.
const root = document.getElementById("browser");
const { data, machines } = JSON.parse(root.nextElementSibling.textContent);
const options = (names) => names.map((name) => `<option>${name}</option>`).join("");
// name, lowest and highest value of the slider, its first value, and the value of the parameter
const power = (x) => 10 ** x;
const sliders = [["C", -2, 4, 1, power], ["gamma", -2, 1, -0.5, power], ["B", 0.05, 1.5, 0.5, power], ["nu", 0, 1, 0, Number]];
root.innerHTML = `
  <p class="chosen">
    <button class="btn btn-primary" name="start">Start Python (40 MB)</button> <output role="status"></output>
  </p>
  <fieldset disabled>
    <p class="chosen">
      <label>Data <select name="data">${options(Object.keys(data))}</select></label>
      <button class="btn btn-secondary btn-sm" name="clear">Clear</button>
      <label>Click adds to <select name="class"><option value="1">class 1 (circles)</option><option value="-1">class −1 (squares)</option></select></label>
      <label>Kernel <select name="kernel">${options(["linear", "rbf"])}</select></label>
      ${sliders.map(([name, low, high, value]) =>
    `<label><output name="${name}"></output> <input type="range" name="${name}" min="${low}" max="${high}" step="0.05" value="${value}"></label>`).join("")}
    </p>
    <div class="machines"></div>
  </fieldset>`;
const find = (selector) => root.querySelector(selector);
const chosen = (name) => find(`select[name=${name}]`).value;
const status = find("[role=status]");
const panels = new Map(machines.map((name) => {
  const panel = document.createElement("figure");
  panel.innerHTML = `<figcaption>${name}</figcaption><svg role="img" aria-label="Boundary of the ${name}"></svg><p></p>`;
  find(".machines").append(panel);
  return [name, panel];
}));

let X = [], y = [], box, worker, asked = 0, due;
const at = ([a, b]) => [a - box[0][0], box[1][1] - b];
const point = (x, k) => {
  const [a, b] = at(x), side = (box[1][0] - box[0][0]) / 90;
  return y[k] > 0 ? `<circle data-row="${k}" cx="${a}" cy="${b}" r="${side}"/>`
    : `<rect data-row="${k}" x="${a - side}" y="${b - side}" width="${2 * side}" height="${2 * side}"/>`;
};
const paths = (lines) => lines.map((level, k) => level.map((line) =>
  `<path class="${k === 1 ? "boundary" : "margin"}" d="M${line.map((z) => at(z).join(" ")).join("L")}"/>`).join("")).join("");
const show = (name, { lines = [], facts, error }) => {
  const panel = panels.get(name), svg = panel.querySelector("svg");
  svg.setAttribute("viewBox", `0 0 ${box[1][0] - box[0][0]} ${box[1][1] - box[0][1]}`);
  svg.innerHTML = X.map(point).join("") + paths(lines);
  panel.querySelector("p").textContent = error ?? (facts ? Object.entries(facts).map((fact) => fact.join(": ")).join(" · ") : "");
};

// The machines are trained one after the other; a change of points or parameters begins anew.
const ask = (request) => new Promise((resolve) => {
  worker.onmessage = ({ data: answer }) => resolve(answer);
  worker.onerror = (event) => resolve({ error: event.message, broken: true });
  worker.postMessage(request);
});
let busy = Promise.resolve();
const train = async (turn) => {
  await busy;
  for (const name of machines) {
    if (turn !== asked) return;
    status.textContent = `Training ${name}`;
    const values = Object.fromEntries(sliders.map(([slider, , , , value]) => [slider, value(find(`input[name=${slider}]`).value)]));
    const request = ask({ machine: name, kernel: chosen("kernel"), values, X, y, box });
    busy = request;
    const answer = await request;
    if (turn === asked) show(name, answer);
  }
  status.textContent = "All machines are trained.";
};
const changed = () => {
  for (const [slider, , , , value] of sliders)
    find(`output[name=${slider}]`).textContent = `${slider} = ${Number(value(find(`input[name=${slider}]`).value).toPrecision(3))}`;
  const turn = ++asked;
  machines.forEach((name) => show(name, {}));
  clearTimeout(due);
  if (new Set(y).size < 2) status.textContent = "Draw points of both classes.";
  else if (worker) due = setTimeout(() => train(turn), 300);
};
const load = () => {
  ({ X, y, box } = structuredClone(data[chosen("data")]));
  changed();
};

root.addEventListener("input", ({ target }) => (target.name === "data" ? load() : target.name !== "class" && changed()));
find("[name=clear]").addEventListener("click", () => { X = []; y = []; changed(); });
find(".machines").addEventListener("click", ({ target, clientX, clientY }) => {
  const svg = target.closest("svg");
  if (!svg) return;
  if (target.dataset.row) {
    X.splice(target.dataset.row, 1);
    y.splice(target.dataset.row, 1);
  } else {
    const { x, y: up } = new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
    X.push([x + box[0][0], box[1][1] - up]);
    y.push(Number(chosen("class")));
  }
  changed();
});
find("[name=start]").addEventListener("click", async ({ target }) => {
  target.disabled = true;
  status.textContent = "Loading Python; this takes some seconds.";
  worker = new Worker(new URL("browser_worker.js", import.meta.url), { type: "module" });
  const answer = await ask(null);
  if (answer) { status.textContent = `Python did not start: ${answer.error}`; return; }
  target.remove();
  find("fieldset").disabled = false;
  changed();
});
load();
status.textContent = "";

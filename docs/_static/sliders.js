// The page of sliders: data, machine, kernel and the value of one parameter are chosen; the lines of the fit are drawn.
document.addEventListener("DOMContentLoaded", () => {
  const root = document.getElementById("sliders");
  if (!root) return;
  const { data, machines } = JSON.parse(root.nextElementSibling.textContent);
  const options = (names) => names.map((name) => `<option>${name}</option>`).join("");
  root.innerHTML = `
    <p class="chosen">
      <label>Machine <select name="machine">${options(Object.keys(machines))}</select></label>
      <label>Kernel <select name="kernel">${options(["linear", "rbf"])}</select></label>
      <label>Data <select name="data">${options(Object.keys(data))}</select></label>
      <label><output></output> <input type="range" min="0" max="8" value="4"></label>
    </p>
    <svg role="img" aria-label="Two classes and the decision boundary of the machine"></svg>
    <table class="table"><tbody></tbody></table>`;
  const [svg, output, slider, body] = ["svg", "output", "input", "tbody"].map((name) => root.querySelector(name));
  const value = (name) => root.querySelector(`select[name=${name}]`).value;

  const draw = () => {
    const machine = machines[value("machine")];
    const { X, y, box: [[left, low], [right, high]] } = data[value("data")];
    const fit = machine.fits.find((one) => one.data === value("data") && one.kernel === value("kernel"));
    output.textContent = `${machine.parameter} = ${machine.values[slider.value]}`;
    const { lines, facts } = fit.frames[slider.value];
    const at = ([a, b]) => `${a - left} ${high - b}`;
    const path = (line, k) => `<path class="${k === 1 ? "boundary" : "margin"}" d="M${line.map(at).join("L")}"/>`;
    const point = (x, k) => {
      const [a, b] = at(x).split(" ");
      return y[k] > 0 ? `<circle cx="${a}" cy="${b}" r=".09"/>`
        : `<rect x="${a - 0.08}" y="${b - 0.08}" width=".16" height=".16"/>`;
    };
    svg.setAttribute("viewBox", `0 0 ${right - left} ${high - low}`);
    svg.innerHTML = X.map(point).join("") + lines.map((level, k) => level.map((line) => path(line, k)).join("")).join("");
    body.innerHTML = Object.entries(facts).map(([name, fact]) => `<tr><th>${name}</th><td>${fact}</td></tr>`).join("");
  };
  root.addEventListener("input", draw);
  draw();
});

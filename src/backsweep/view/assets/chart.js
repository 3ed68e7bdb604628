// Small line charts that grow with the run.
const CHARTS = [
  { title: "Return", lines: { "training return": "--accent", "evaluation return": "--end" } },
  { title: "Value estimates", lines: { "Q of batches": "--accent", "Q at starts": "--end" } },
  { title: "Graph", lines: { states: "--green", ends: "--end" }, log: true },
  { title: "Loss", lines: { loss: "--violet" } },
];
const BOX = { width: 320, height: 110, left: 46, right: 8, top: 8, bottom: 20 }, MOST_POINTS = 300;

function short(number) {
  const size = Math.abs(number);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (size >= unit) return plain(Number((number / unit).toPrecision(3))) + letter;
  return plain(Number(number.toPrecision(size < 0.01 ? 2 : 3)));
}

// At most this many points, each the mean of its neighbours.
function thinned(points) {
  const each = Math.ceil(points.length / MOST_POINTS);
  if (each < 2) return points;
  const made = [];
  for (let i = 0; i < points.length; i += each) {
    const part = points.slice(i, i + each), mean = (k) => part.reduce((sum, point) => sum + point[k], 0) / part.length;
    made.push([mean(0), mean(1)]);
  }
  return made;
}

function svg(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function drawChart(holder, chart, series, last) {
  const shown = Object.keys(chart.lines).filter((name) => (series[name] || []).length);
  holder.hidden = !shown.length;
  if (!shown.length) return;
  const bend = chart.log ? (x) => Math.log10(Math.max(x, 0) + 1) : (x) => x;
  const lines = shown.map((name) => [name, thinned(series[name])]), values = lines.flatMap(([, points]) => points.map((p) => p[1]));
  let low = Math.min(...values), high = Math.max(...values);
  if (chart.log) low = 0;
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const { width, height, left, right, top, bottom } = BOX;
  const x = (step) => left + (width - left - right) * step / Math.max(last, 1);
  const y = (value) => top + (height - top - bottom) * (1 - (bend(value) - bend(low)) / (bend(high) - bend(low)));
  const said = lines.map(([name, points]) => `${name} ${plain(points[points.length - 1][1])}`).join(", ");
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${chart.title}: ${said}` });
  for (const value of [low, high]) {
    drawing.append(svg("line", { class: "rule", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  for (const [step, anchor] of [[0, "start"], [last, "end"]]) {
    drawing.append(svg("text", { x: x(step), y: height - 4, "text-anchor": anchor }, short(step)));
  }
  for (const [name, points] of lines) {
    const path = points.map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const colour = `var(${chart.lines[name]})`, [step, value] = points[points.length - 1];
    drawing.append(svg("path", { d: path, style: `stroke: ${colour}` }),
      svg("circle", { cx: x(step), cy: y(value), r: 2.5, style: `fill: ${colour}` }));  // a first point can be seen too
  }
  const keys = element("div", { className: "keys" });
  for (const name of shown) {
    const points = series[name], key = element("span", {}, `${name} ${short(points[points.length - 1][1])}`);
    key.style.setProperty("--colour", `var(${chart.lines[name]})`);
    keys.append(key);
  }
  holder.replaceChildren(element("h2", {}, chart.title), drawing, keys);
}

"use strict";
// One view of a chart of lines: axes, bands, lines, points, and the values at the pointer.
window.backsweep.linePanel = (() => {
  const { make, number, ticks, decades } = window.backsweep;
  const COLUMN = 6, NEAR = 1.6; // pixels

  function extent(spec, lines, smaller) {
    const xs = lines.flatMap((line) => line.x);
    const ys = lines.flatMap((line) => [...line.y, ...line.low, ...line.high]).filter((value) => value !== null);
    let [x0, x1] = [Math.min(...xs), Math.max(...xs)], [y0, y1] = [Math.min(...ys), Math.max(...ys)];
    for (const value of spec.y_shows) { y0 = Math.min(value, y0); y1 = Math.max(value, y1); }
    if (x0 === x1) { x0 -= 1; x1 += 1; }
    if (y0 === y1) { y0 -= 0.5; y1 += 0.5; }
    if (spec.log_y) { y0 = Math.max(y0, 1e-12); y1 *= 1.1; } else y1 += (y1 - y0) * (smaller ? 0.06 : 0.03);
    return { x0, x1, y0, y1 };
  }

  function axes(svg, spec, box, { x0, x1, y0, y1 }, px, py, size) {
    const { width, height, left, right, top, bottom } = box;
    const rows = size === "full" ? 5 : 3, columns = Math.max(size === "mini" ? 2 : 3, Math.min(7, Math.floor((width - left) / (size === "full" ? 75 : 55))));
    for (const at of spec.log_y ? decades(y0, y1, rows + 1) : ticks(y0, y1, rows)) {
      make("line", { class: "grid", x1: left, x2: width - right, y1: py(at), y2: py(at) }, svg);
      make("text", { x: left - 5, y: py(at) + 4, "text-anchor": "end" }, svg).textContent = number(at, spec.y_unit);
    }
    for (const at of spec.log_x ? decades(x0, x1, columns + 2) : ticks(x0, x1, columns)) {
      make("line", { class: "grid", x1: px(at), x2: px(at), y1: top, y2: height - bottom }, svg);
      const anchor = px(at) > width - right - 12 ? "end" : "middle";
      make("text", { class: "tick-x", x: px(at), y: height - bottom + 14, "text-anchor": anchor }, svg).textContent = number(at);
    }
    if (size !== "full") return;
    make("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, svg).textContent = spec.x;
    const middle = (top + height - bottom) / 2;
    make("text", { x: 11, y: middle, transform: `rotate(-90 11 ${middle})`, "text-anchor": "middle" }, svg).textContent = spec.y;
  }

  function heightAt(line, x) {
    const { x: xs, y: ys } = line, last = xs.length - 1;
    if (x <= xs[0]) return ys[0];
    if (x >= xs[last]) return ys[last];
    let low = 0, high = last;
    while (high - low > 1) { const mid = (low + high) >> 1; if (xs[mid] <= x) low = mid; else high = mid; }
    return line.steps ? ys[low] : ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / (xs[high] - xs[low]);
  }

  // Lines that overlap are drawn as alternating dashes, so that each colour is visible. For each such line: the
  // columns in which it is drawn, and the lines with which it shares nearly all of them.
  function turns(lines, box, py, back) {
    const from = box.left, count = Math.ceil((box.width - box.right - from) / COLUMN);
    const found = lines.map(() => ({ mine: [], met: false, shared: new Map() }));
    const drawn = lines.filter((line) => !line.points && line.x.length > 1);
    if (drawn.length < 2) return { found, together: [] };
    const heights = lines.map((line) => Array.from({ length: count + 1 }, (_, column) => py(heightAt(line, back(from + column * COLUMN)))));
    for (let column = 0; column < count; column++)
      lines.forEach((line, place) => {
        const group = lines.map((_, other) => other).filter((other) => !lines[other].points &&
          Math.abs(heights[other][column] - heights[place][column]) <= NEAR && Math.abs(heights[other][column + 1] - heights[place][column + 1]) <= NEAR);
        if (group.length > 1) found[place].met = true;
        for (const other of group) found[place].shared.set(other, (found[place].shared.get(other) ?? 0) + 1);
        if (group[column % group.length] === place || !group.length) found[place].mine.push(column);
      });
    const together = [], taken = new Set();
    lines.forEach((line, place) => {
      const others = [...found[place].shared].filter(([other, times]) => other > place && times > 0.9 * count && !taken.has(other)).map(([other]) => other);
      if (taken.has(place) || !others.length) return;
      others.forEach((other) => taken.add(other));
      together.push([line.name, ...others.map((other) => lines[other].name)]);
    });
    return { found, together };
  }

  let clips = 0;
  function clip(svg, box, turn) {
    if (!turn.met) return {};
    const id = `turn-${clips++}`, path = make("clipPath", { id }, svg);
    // A little wider, so that a step at an edge keeps the width of its line.
    for (const column of turn.mine) make("rect", { x: box.left + column * COLUMN - 1, y: 0, width: COLUMN + 2, height: box.height }, path);
    return { "clip-path": `url(#${id})` };
  }

  function drawLine(svg, line, px, py, colour, clipped, banded) {
    if (line.points) {
      line.x.forEach((x, place) => {
        const at = px(x).toFixed(1);
        if (line.low.length) make("line", { class: "line", x1: at, x2: at, y1: py(line.low[place]), y2: py(line.high[place]), style: `stroke: ${colour}` }, svg);
        make("circle", { cx: at, cy: py(line.y[place]), r: 5, style: `fill: ${colour}`, "data-line": line.name }, svg);
      });
      return;
    }
    if (line.low.length && banded) {
      const up = line.x.map((x, place) => `${px(x).toFixed(1)},${py(line.high[place]).toFixed(1)}`);
      const down = line.x.map((x, place) => `${px(x).toFixed(1)},${py(line.low[place]).toFixed(1)}`).reverse();
      make("polygon", { class: "band", points: [...up, ...down].join(" "), style: `fill: ${colour}` }, svg);
    }
    let path = "";
    line.x.forEach((x, place) => {
      const [a, b] = [px(x).toFixed(1), py(line.y[place]).toFixed(1)];
      path += place === 0 ? `M${a} ${b}` : line.steps ? `H${a}V${b}` : `L${a} ${b}`;
    });
    make("path", { class: "line", d: path, style: `stroke: ${colour}`, "data-line": line.name, ...clipped }, svg);
  }

  // The last point at or before x for steps, the nearest one for lines.
  function nearest(line, x) {
    let best = 0;
    line.x.forEach((at, place) => {
      if (line.steps ? at <= x : Math.abs(at - x) < Math.abs(line.x[best] - x)) best = place;
    });
    return best;
  }

  // Draws into `place`; `chart` knows colours, titles and where values are shown.
  return function linePanel(place, chart, facet, { width, height, size }) {
    const { spec } = chart;
    const left = size === "mini" ? 38 : spec.log_y ? 72 : size === "full" ? 56 : 42;
    const box = { width, height, left, right: 10, top: 8, bottom: size === "full" ? 36 : 20 };
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" }, place);
    const shown = facet.series.filter((line) => !chart.hidden.has(line.name));
    const ends = extent(spec, facet.series, size !== "full");
    const scaleX = spec.log_x ? Math.log10 : (value) => value, scaleY = spec.log_y ? (value) => Math.log10(Math.max(value, 1e-12)) : (value) => value;
    const across = width - box.left - box.right, down = height - box.top - box.bottom;
    const px = (value) => box.left + (scaleX(value) - scaleX(ends.x0)) / (scaleX(ends.x1) - scaleX(ends.x0)) * across;
    const py = (value) => height - box.bottom - (scaleY(value) - scaleY(ends.y0)) / (scaleY(ends.y1) - scaleY(ends.y0)) * down;
    axes(svg, spec, box, ends, px, py, size);
    const back = (at) => {
      const raw = scaleX(ends.x0) + (at - box.left) / across * (scaleX(ends.x1) - scaleX(ends.x0));
      return spec.log_x ? 10 ** raw : raw;
    };
    const { found, together } = turns(shown, box, py, back);
    shown.forEach((line, place) => drawLine(svg, line, px, py, chart.colour(line.name), clip(svg, box, found[place]), !chart.isCrowded));
    const last = shown.map((line) => `${chart.title(line.name)} ${number(line.y[line.y.length - 1], spec.y_unit)}`).join(", ");
    svg.setAttribute("aria-label", `${spec.title}. ${facet.label}. At the end: ${last}.`);
    if (size === "mini") return together;

    const cross = make("line", { class: "cross", y1: box.top, y2: height - box.bottom, x1: 0, x2: 0, visibility: "hidden" }, svg);
    const hide = () => { cross.setAttribute("visibility", "hidden"); chart.hideTip(); };
    const showAt = (x) => {
      const at = px(x);
      cross.setAttribute("x1", at); cross.setAttribute("x2", at); cross.setAttribute("visibility", "visible");
      chart.showTip(svg, at, `${facet.label}: ${spec.x} ${number(x)}`, shown.map((line) => {
        const best = nearest(line, x);
        const band = line.low.length ? ` (${number(line.low[best], spec.y_unit)} to ${number(line.high[best], spec.y_unit)})` : "";
        return [line.name, number(line.y[best], spec.y_unit) + band];
      }));
    };
    const move = (event) => {
      const bounds = svg.getBoundingClientRect(), at = (event.clientX - bounds.left) / bounds.width * width;
      const share = (at - box.left) / across;
      if (share < -0.02 || share > 1.02 || !shown.length) { hide(); return; }
      showAt(back(box.left + Math.max(0, Math.min(1, share)) * across));
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerdown", move);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
    // Arrow keys walk along the first line's points.
    const points = shown.length ? shown[0].x : [];
    let key = points.length - 1;
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (event.key === "Escape") hide();
      if (by === undefined || !points.length) return;
      event.preventDefault();
      key = Math.max(0, Math.min(points.length - 1, key + by));
      showAt(points[key]);
    });
    svg.addEventListener("blur", hide);
    return together;
  };
})();

"use strict";
(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 760, PAD = { left: 56, right: 14, top: 10, bottom: 40 };

  function make(name, attributes, parent) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (parent) parent.appendChild(node);
    return node;
  }

  function html(name, properties, parent) {
    const node = Object.assign(document.createElement(name), properties);
    if (parent) parent.appendChild(node);
    return node;
  }

  const number = (value) => {
    if (value === null || value === undefined) return "-";
    const size = Math.abs(value);
    const short = (part) => String(Number(part.toPrecision(3)));
    if (size >= 1e6) return short(value / 1e6) + "M";
    if (size >= 1e4) return short(value / 1e3) + "k";
    if (size !== 0 && size < 1e-3) return value.toExponential(1);
    return short(value);
  };

  // Round steps of 1, 2 or 5 times a power of ten.
  function ticks(low, high, count) {
    const raw = (high - low) / (count + 0.5), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((part) => part * power).find((part) => part >= raw);
    const result = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) result.push(at);
    return result;
  }

  function decades(low, high) {
    const result = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const part of [1, 2, 5]) {
        const at = part * 10 ** power;
        if (at >= low && at <= high) result.push(at);
      }
    return result.length > 9 ? result.filter((at) => Number.isInteger(Math.log10(at) + 1e-12) || /^1e/.test(at.toExponential())) : result;
  }

  class Chart {
    constructor(figure, spec) {
      this.figure = figure;
      this.spec = spec;
      this.view = 0;
      this.hidden = new Set();
      html("figcaption", { textContent: spec.title }, figure);
      if (spec.facets.length > 1) {
        const label = html("label", { className: "soft", textContent: "Show " }, figure);
        this.select = html("select", {}, label);
        spec.facets.forEach((facet, place) => html("option", { value: place, textContent: facet.label }, this.select));
        this.select.addEventListener("change", () => { this.view = Number(this.select.value); this.draw(); });
      } else html("div", { className: "soft", textContent: spec.facets[0].label }, figure);
      this.legend = html("div", { className: "legend" }, figure);
      this.plot = html("div", { className: "plot" }, figure);
      this.tip = html("div", { className: "tip", hidden: true });
      this.draw();
    }

    get lines() { return this.spec.facets[this.view].series; }

    colour(name) { return `var(--c${this.spec.colours[name]})`; }

    toggle(name) {
      if (this.hidden.has(name)) this.hidden.delete(name); else this.hidden.add(name);
      this.draw();
    }

    drawLegend() {
      this.legend.replaceChildren();
      for (const line of this.lines) {
        const button = html("button", { type: "button", textContent: line.name }, this.legend);
        button.style.setProperty("--colour", this.colour(line.name));
        button.setAttribute("aria-pressed", String(!this.hidden.has(line.name)));
        button.title = "Click to show or hide; double-click for this one alone";
        button.addEventListener("click", () => { this.toggle(line.name); this.legend.querySelectorAll("button").forEach((other) => { if (other.textContent === line.name) other.focus(); }); });
        button.addEventListener("dblclick", () => {
          this.hidden = new Set(this.lines.map((other) => other.name).filter((other) => other !== line.name));
          this.draw();
        });
      }
    }

    draw() {
      this.drawLegend();
      const shown = this.lines.filter((line) => !this.hidden.has(line.name));
      const narrow = this.plot.clientWidth > 0 && this.plot.clientWidth < 480;
      const width = narrow ? 400 : WIDTH, height = narrow ? 300 : 340;
      const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": this.spec.title });
      this.plot.replaceChildren(svg, this.tip);
      const xs = this.lines.flatMap((line) => line.x), all = this.lines.flatMap((line) => [...line.y, ...line.low, ...line.high]);
      const ys = all.filter((value) => value !== null);
      let [x0, x1] = [Math.min(...xs), Math.max(...xs)], [y0, y1] = [Math.min(...ys), Math.max(...ys)];
      for (const value of this.spec.y_shows) { y0 = Math.min(value, y0); y1 = Math.max(value, y1); }
      if (x0 === x1) { x0 -= 1; x1 += 1; }
      if (y0 === y1) { y0 -= 0.5; y1 += 0.5; }
      if (this.spec.log_y) y1 *= 1.1; else y1 += (y1 - y0) * 0.03;
      const scale = this.spec.log_x ? Math.log10 : (value) => value;
      const scaleY = this.spec.log_y ? Math.log10 : (value) => value;
      const px = (value) => PAD.left + (scale(value) - scale(x0)) / (scale(x1) - scale(x0)) * (width - PAD.left - PAD.right);
      const py = (value) => height - PAD.bottom - (scaleY(value) - scaleY(y0)) / (scaleY(y1) - scaleY(y0)) * (height - PAD.top - PAD.bottom);
      for (const at of this.spec.log_y ? decades(y0, y1) : ticks(y0, y1, 5)) {
        make("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: py(at), y2: py(at) }, svg);
        make("text", { x: PAD.left - 6, y: py(at) + 4, "text-anchor": "end" }, svg).textContent = number(at);
      }
      for (const at of this.spec.log_x ? decades(x0, x1) : ticks(x0, x1, narrow ? 4 : 7)) {
        make("line", { class: "grid", x1: px(at), x2: px(at), y1: PAD.top, y2: height - PAD.bottom }, svg);
        make("text", { x: px(at), y: height - PAD.bottom + 15, "text-anchor": "middle" }, svg).textContent = number(at);
      }
      make("text", { x: (PAD.left + width) / 2, y: height - 6, "text-anchor": "middle" }, svg).textContent = this.spec.x;
      make("text", { x: 12, y: height / 2, transform: `rotate(-90 12 ${height / 2})`, "text-anchor": "middle" }, svg).textContent = this.spec.y;
      for (const line of shown) this.drawLine(svg, line, px, py);
      const cross = make("line", { class: "cross", y1: PAD.top, y2: height - PAD.bottom, x1: 0, x2: 0, visibility: "hidden" }, svg);
      const move = (event) => {
        const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * width;
        const share = (at - PAD.left) / (width - PAD.left - PAD.right);
        if (share < 0 || share > 1 || !shown.length) { leave(); return; }
        const raw = scale(x0) + share * (scale(x1) - scale(x0)), x = this.spec.log_x ? 10 ** raw : raw;
        cross.setAttribute("x1", at); cross.setAttribute("x2", at); cross.setAttribute("visibility", "visible");
        this.showTip(shown, x, (event.clientX - box.left), box.width);
      };
      const leave = () => { cross.setAttribute("visibility", "hidden"); this.tip.hidden = true; };
      svg.addEventListener("pointermove", move);
      svg.addEventListener("pointerdown", move);
      svg.addEventListener("pointerleave", leave);
    }

    drawLine(svg, line, px, py) {
      const colour = this.colour(line.name);
      if (line.points) { this.drawPoints(svg, line, px, py, colour); return; }
      if (line.low.length) {
        const up = line.x.map((x, place) => `${px(x).toFixed(1)},${py(line.high[place]).toFixed(1)}`);
        const down = line.x.map((x, place) => `${px(x).toFixed(1)},${py(line.low[place]).toFixed(1)}`).reverse();
        make("polygon", { class: "band", points: [...up, ...down].join(" "), style: `fill: ${colour}` }, svg);
      }
      let path = "";
      line.x.forEach((x, place) => {
        const [a, b] = [px(x).toFixed(1), py(line.y[place]).toFixed(1)];
        path += place === 0 ? `M${a} ${b}` : line.steps ? `H${a}V${b}` : `L${a} ${b}`;
      });
      make("path", { class: "line", d: path, style: `stroke: ${colour}`, "data-line": line.name }, svg);
    }

    drawPoints(svg, line, px, py, colour) {
      line.x.forEach((x, place) => {
        const at = px(x).toFixed(1);
        if (line.low.length)
          make("line", { class: "line", x1: at, x2: at, y1: py(line.low[place]), y2: py(line.high[place]), style: `stroke: ${colour}` }, svg);
        make("circle", { cx: at, cy: py(line.y[place]), r: 5, style: `fill: ${colour}`, "data-line": line.name }, svg);
      });
    }

    showTip(lines, x, left, width) {
      this.tip.replaceChildren();
      html("div", { textContent: `${this.spec.x} ${number(x)}` }, this.tip).style.fontWeight = "600";
      for (const line of lines) {
        // The last point at or before the pointer for steps, the nearest one for lines.
        let best = 0;
        line.x.forEach((at, place) => {
          if (line.steps ? at <= x : Math.abs(at - x) < Math.abs(line.x[best] - x)) best = place;
        });
        const band = line.low.length ? ` (${number(line.low[best])} to ${number(line.high[best])})` : "";
        const row = html("div", { textContent: `${line.name}: ${number(line.y[best])}${band}` }, this.tip);
        row.style.color = this.colour(line.name);
      }
      this.tip.hidden = false;
      const room = this.tip.offsetWidth;
      this.tip.style.left = `${Math.max(0, left + 14 + room > width ? left - 14 - room : left + 14)}px`;
      this.tip.style.top = "10px";
    }
  }

  window.backsweepCharts = [...document.querySelectorAll("figure[data-chart]")].map(
    (figure) => new Chart(figure, DATA.charts[figure.dataset.chart]));
  let timer = 0;
  window.addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => window.backsweepCharts.forEach((chart) => chart.draw()), 150);
  });
})();

"use strict";
// A chart of dots: a category for each task or setting, a strip for each method, a dot for each run.
window.backsweep.dotRows = (() => {
  const { make, html, number, ticks } = window.backsweep;
  const data = window.backsweep.data;

  return function dotRows(place, chart, { width, mini }) {
    const { spec } = chart;
    const narrow = width < 440;
    const rows = html("div", { className: `dots${narrow ? " narrow" : ""}${mini ? " mini" : ""}` }, place);
    const order = (dots) => spec.lines.indexOf(dots.name);
    const shownIn = (category) => category.dots.filter((dots) => !chart.hidden.has(dots.name)).sort((a, b) => order(a) - order(b));
    const numbers = spec.categories.flatMap((category) => category.dots.flatMap((dots) => [...dots.values, dots.low, dots.high]));
    const known = [...numbers.filter((value) => value !== null && value !== undefined), ...spec.x_shows];
    const never = spec.beyond && spec.categories.some((category) => category.dots.some((dots) => dots.values.includes(null)));
    let [low, high] = [Math.min(...known), Math.max(...known)];
    if (low === high) high = low + 1;
    // Labels are to the left, on a narrow screen above.
    const beside = mini || !narrow, labels = beside ? Math.round(mini ? Math.min(130, width * 0.42) : Math.min(250, Math.max(152, width * 0.24))) : 0;
    const inner = Math.max(100, width - labels - (beside ? 8 : 0));
    rows.style.gridTemplateColumns = beside ? `${labels}px ${inner}px` : "1fr";
    const start = low < 0 ? 8 : 5, end = never ? inner - (mini ? 26 : 58) : inner - 12;
    const px = (value) => value === null ? inner - (mini ? 11.5 : 25) : start + (value - low) / (high - low) * (end - start);
    const strip = mini ? 5 : spec.categories.length * spec.lines.length > 40 ? 7.5 : 9; // many strips are drawn closer together

    const most = Math.max(2, Math.min(6, Math.floor(inner / 80))), few = ticks(low, high, most);
    const marks = few.length > 1 ? few : ticks(low, high, 2 * most);
    for (const category of chart.categoriesShown()) {
      const label = html("div", { className: "dot-label" }, rows);
      if (category.task && data.pictures[category.task]) html("img", { src: data.pictures[category.task], alt: "", width: 44, height: 44, loading: "lazy" }, label);
      html("span", { textContent: category.label }, label);
      const shown = shownIn(category), height = Math.max(mini ? 14 : 26, shown.length * strip + 8);
      const svg = make("svg", { viewBox: `0 0 ${inner} ${height}`, width: inner, height, role: "img" }, rows);
      for (const at of marks) make("line", { class: "grid faint", x1: px(at), x2: px(at), y1: 0, y2: height }, svg);
      if (low < 0) make("line", { class: "zero", x1: px(0), x2: px(0), y1: 0, y2: height }, svg);
      if (never) make("line", { class: "grid", x1: end + (mini ? 4 : 8), x2: end + (mini ? 4 : 8), y1: 0, y2: height }, svg);
      shown.forEach((dots, index) => drawStrip(svg, dots, (height - (shown.length - 1) * strip) / 2 + index * strip));
      const words = shown.map((dots) => `${chart.title(dots.name)} ${said(dots)}`);
      svg.setAttribute("aria-label", `${category.label}: ${words.join("; ")}`);
      if (!mini) listen(svg, category, shown);
    }
    axis();

    function drawStrip(svg, dots, y) {
      const colour = chart.colour(dots.name), group = make("g", { "data-line": dots.name }, svg);
      if (spec.bars && dots.middle !== undefined)
        make("line", { class: "bar", x1: px(Math.max(low, 0)), x2: px(dots.middle), y1: y, y2: y, style: `stroke: ${colour}` }, group);
      if (dots.low !== null && dots.high !== null)
        make("line", { class: "span", x1: px(dots.low), x2: px(dots.high), y1: y, y2: y, style: `stroke: ${colour}` }, group);
      // Runs that never get there are drawn next to each other, however many, between the line and the edge.
      const lost = dots.values.filter((value) => value === null).length, apart = Math.min(mini ? 3 : 6, (mini ? 16 : 40) / Math.max(1, lost - 1));
      let nth = 0;
      for (const value of dots.values)
        make("circle", { class: "dot", cx: (px(value) + (value === null ? (nth++ - (lost - 1) / 2) * apart : 0)).toFixed(1), cy: y, r: mini ? 2.2 : strip < 9 ? 3.4 : 3.8, style: `fill: ${colour}` }, group);
    }

    function said(dots) {
      const middle = number(dots.middle, spec.unit) + (dots.middle === null && spec.beyond ? ` (${spec.beyond})` : "");
      const band = dots.low !== null && dots.high !== null ? ` (${number(dots.low, spec.unit)} to ${number(dots.high, spec.unit)})` : "";
      return middle + band + (dots.note ? `, ${dots.note}` : "");
    }

    function listen(svg, category, shown) {
      const show = (event) => {
        const bounds = svg.getBoundingClientRect();
        const at = event && event.clientX !== undefined ? (event.clientX - bounds.left) / bounds.width * inner : inner / 2;
        chart.showTip(svg, at, category.label, shown.map((dots) => [dots.name, said(dots)]));
      };
      svg.setAttribute("tabindex", "0");
      svg.addEventListener("pointermove", show);
      svg.addEventListener("pointerdown", show);
      svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) show(); });
      svg.addEventListener("blur", () => chart.hideTip());
      svg.addEventListener("keydown", (event) => { if (event.key === "Escape") chart.hideTip(); });
      svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") chart.hideTip(); });
    }

    function axis() {
      html("div", { className: "dot-label axis" }, rows);
      const svg = make("svg", { viewBox: `0 0 ${inner} 22`, width: inner, height: 22, "aria-hidden": "true" }, rows);
      make("line", { class: "grid", x1: start, x2: end, y1: 1, y2: 1 }, svg);
      for (const at of marks) {
        make("line", { class: "grid", x1: px(at), x2: px(at), y1: 1, y2: 5 }, svg);
        const anchor = px(at) < 14 ? "start" : px(at) > inner - 16 ? "end" : "middle";
        make("text", { class: "tick-x", x: px(at), y: 16, "text-anchor": anchor }, svg).textContent = number(at, spec.unit);
      }
      if (never) make("text", { x: inner - 1, y: 16, "text-anchor": "end" }, svg).textContent = "never";
      if (mini) return;
      const caption = never ? `${spec.x}; “never”: ${spec.beyond}` : spec.x;
      rows.insertAdjacentElement("afterend", html("div", { className: "axis-name", textContent: caption }));
    }
  };
})();

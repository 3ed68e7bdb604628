"use strict";
// A figure: its legend, its views, and the box that shows values. Charts are drawn when they become visible.
(() => {
  const { data, html } = window.backsweep;
  const ALL = "all", MOST_BANDS = 8;  // as in figures.py

  class Figure {
    constructor(figure) {
      this.figure = figure;
      this.mini = "mini" in figure.dataset;
      this.spec = data.charts[figure.dataset.chart];
      this.hidden = new Set();
      this.view = this.spec.together ? ALL : String(this.spec.first ?? 0);
      if (!this.mini) this.addControls();
      this.body = html("div", { className: "plot" }, figure);
      this.tip = html("div", { className: "tip", hidden: true, role: "status" }, figure);
      this.draw();
      if (this.mini) this.addNames();
    }

    // A card has a legend but no room for buttons.
    addNames() {
      const drawn = this.spec.kind === "dots" ? new Set(this.categoriesShown().flatMap((category) => category.dots.map((dots) => dots.name))) : null;
      const lines = this.spec.lines.filter((name) => !drawn || drawn.has(name));
      if (this.spec.named || lines.length < 2) return;
      const names = html("div", { className: "legend" }, this.figure);
      for (const name of lines) html("span", { textContent: this.title(name) }, names).style.setProperty("--colour", this.colour(name));
    }

    // A card has room for the first few categories.
    categoriesShown() { return this.mini ? this.spec.categories.slice(0, data.card_categories) : this.spec.categories; }

    colour(name) { return this.spec.looks[name].colour; }

    title(name) { return this.spec.looks[name].title; }

    addControls() {
      const { facets } = this.spec;
      if (facets && facets.length > 1) {
        const label = html("label", { className: "view soft", textContent: "Show " }, this.figure);
        this.select = html("select", {}, label);
        if (this.spec.together) html("option", { value: ALL, textContent: `all ${facets.length} tasks` }, this.select);
        facets.forEach((facet, place) => html("option", { value: String(place), textContent: facet.label }, this.select));
        this.select.value = this.view;
        this.select.addEventListener("change", () => this.choose(this.select.value, true));
      } else if (facets) html("div", { className: "soft", textContent: facets[0].label }, this.figure);
      if (this.spec.lines.length > 1 && !this.spec.named) this.addLegend();
    }

    addLegend() {
      const legend = html("div", { className: "legend", role: "group", ariaLabel: "Lines" }, this.figure);
      for (const name of this.spec.lines) {
        const button = html("button", { type: "button", textContent: this.title(name), title: "Show or hide; double-click for this one alone" }, legend);
        button.style.setProperty("--colour", this.colour(name));
        button.dataset.name = name;
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", () => {
          if (this.hidden.has(name)) this.hidden.delete(name); else this.hidden.add(name);
          this.draw();
        });
        button.addEventListener("dblclick", () => {
          this.hidden = new Set(this.spec.lines.filter((other) => other !== name));
          this.draw();
        });
      }
      this.legend = legend;
      this.note = html("p", { className: "soft alike", hidden: true }, this.figure);
    }

    // All charts of one claim show the same task; a chart without it stays as it is.
    choose(view, leads) {
      this.view = view;
      if (this.select) this.select.value = view;
      this.draw();
      if (!leads) return;
      const task = view === ALL ? ALL : this.spec.facets[Number(view)].task;
      if (!task) return;
      for (const other of window.backsweep.figures) {
        if (other === this || other.mini || !other.spec.facets || other.figure.closest(".claim") !== this.figure.closest(".claim")) continue;
        const place = other.spec.facets.findIndex((facet) => facet.task === task);
        if (task === ALL ? other.spec.together : place >= 0) other.choose(task === ALL ? ALL : String(place), false);
      }
      this.figure.closest(".claim")?.setAttribute("data-task", task);
    }

    draw() {
      this.hideTip();
      const width = Math.max(160, Math.floor(this.body.clientWidth || this.figure.clientWidth || 600));
      this.drawn = width;
      this.body.replaceChildren();
      this.legend?.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(!this.hidden.has(button.dataset.name))));
      if (this.spec.kind === "dots") window.backsweep.dotRows(this.body, this, { width, mini: this.mini });
      else if (this.view === ALL && !this.mini) this.drawAll(width);
      else this.drawOne(width);
    }

    // Bands of many lines cover each other and the lines.
    get isCrowded() { return this.spec.lines.length - this.hidden.size > MOST_BANDS; }

    remark(words) {
      if (!this.note) return;
      const banded = this.isCrowded && this.spec.facets.some((facet) => facet.series.some((line) => line.low.length && !line.points));
      const text = [words, banded ? `Intervals are drawn for at most ${MOST_BANDS} lines: hide some, or double-click one.` : ""].filter(Boolean).join(" ");
      this.note.hidden = !text;
      this.note.textContent = text;
    }

    drawOne(width) {
      const facet = this.spec.facets[this.view === ALL ? this.spec.first ?? 0 : Number(this.view)];
      const size = this.mini ? "mini" : "full";
      const together = window.backsweep.linePanel(this.body, this, facet, { width, height: this.mini ? 120 : width < 480 ? 280 : 340, size });
      const words = together.map((names) => names.map((name) => this.title(name)).join(" and "));
      this.remark(words.length ? `On top of each other, drawn in turns: ${words.join("; ")}.` : "");
    }

    drawAll(width) {
      const columns = Math.min(this.spec.facets.length, width >= 880 ? 4 : width >= 620 ? 3 : 2), gap = 10;
      const grid = html("div", { className: "panels" }, this.body);
      grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
      const each = Math.floor((width - gap * (columns - 1)) / columns);
      let some = false;
      for (const facet of this.spec.facets) {
        const cell = html("div", { className: "panel" }, grid);
        const head = html("div", { className: "panel-head" }, cell);
        if (data.pictures[facet.task]) html("img", { src: data.pictures[facet.task], alt: "", width: 28, height: 28 }, head);
        html("span", { textContent: facet.label.split(", ")[0] }, head);
        const together = window.backsweep.linePanel(cell, this, facet, { width: each, height: each < 200 ? 130 : each < 300 ? 150 : 190, size: "small" });
        some ||= together.length > 0;
      }
      html("div", { className: "axis-name", textContent: `${this.spec.y} over ${this.spec.x}` }, this.body);
      this.remark(some ? "Lines of changing colours are several lines on top of each other." : "");
    }

    showTip(svg, at, head, rows) {
      this.tip.replaceChildren();
      html("div", { className: "tip-head", textContent: head }, this.tip);
      for (const [name, text] of rows) {
        const row = html("div", {}, this.tip);
        html("i", {}, row).style.background = this.colour(name);
        html("span", { textContent: `${this.title(name)}: ${text}` }, row);
      }
      this.tip.hidden = false;
      for (const other of window.backsweep.figures) if (other !== this) other.hideTip();
      const outer = this.figure.getBoundingClientRect(), box = svg.getBoundingClientRect();
      const x = box.left - outer.left + at, room = this.tip.offsetWidth, wide = outer.width;
      const left = x + 14 + room <= wide ? x + 14 : x - 14 - room;
      this.tip.style.left = `${Math.max(0, Math.min(wide - room, left))}px`;
      const above = box.top - outer.top - this.tip.offsetHeight - 4;
      this.tip.style.top = `${this.spec.kind === "dots" && box.top - this.tip.offsetHeight > 60 && above > 0 ? above : box.top - outer.top + (this.spec.kind === "dots" ? box.height + 4 : 8)}px`;
    }

    hideTip() { if (this.tip) this.tip.hidden = true; }
  }

  const figures = window.backsweep.figures = [];
  const waiting = new Set(document.querySelectorAll("figure[data-chart]"));
  const start = (figure) => {
    if (!waiting.delete(figure)) return;
    const made = new Figure(figure);
    figures.push(made);
    // A figure begins with the task that its claim already shows.
    const task = figure.closest(".claim")?.dataset.task;
    const place = task && !made.mini ? (made.spec.facets ?? []).findIndex((facet) => facet.task === task) : -1;
    if (place >= 0) made.choose(String(place), false);
  };
  window.backsweep.drawAll = () => [...waiting].forEach(start);
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); start(entry.target); }
  }, { rootMargin: "300px" });
  // First screen and cards at once, so that the page does not jump; the rest when it becomes visible.
  waiting.forEach((figure) => { if (figure.closest("#top, #claims")) start(figure); else near.observe(figure); });
  document.addEventListener("pointerdown", (event) => {
    for (const figure of figures) if (!figure.figure.contains(event.target)) figure.hideTip();
  });
  let timer = 0;
  window.addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => figures.forEach((figure) => {
      const width = figure.body.clientWidth;
      if (width && width !== figure.drawn) figure.draw();
    }), 150);
  });
  window.addEventListener("beforeprint", window.backsweep.drawAll);
})();

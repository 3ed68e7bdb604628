// The page of one graph.
const MARGIN_WIDE = [20, 70, 74, 335], MARGIN_NARROW = [190, 12, 74, 12];

class View {
  constructor(data) {
    this.data = data;
    this.count = data.vertex.length;
    if (innerHeight > innerWidth) stackDiscs(data);
    this.canvas = byId("graph");
    this.renderer = new Renderer(this.canvas);
    this.camera = new Camera(this.canvas, () => this.redraw());
    this.finder = new Finder(data.position, this.count);
    this.incoming = groupEdges(data.edge, this.count, 1);
    this.colours = new Uint8Array(4 * this.count);
    this.chosen = -1;
    this.matches = null;
    this.renderer.setEdges(data.edge, data.trunk);
    this.sendPlaces();
    this.player = new Player(data, () => this.recolour());
    this.listen();
    this.recolour();
    this.fit();
  }

  sendPlaces() {
    const { data, count } = this, places = new Float32Array(4 * count);
    for (let i = 0; i < count; i++) {
      const flags = data.flags[i];
      const kind = flags & TERMINAL ? 2 : flags & START ? 1 : 0;
      places.set([data.position[2 * i], data.position[2 * i + 1], kind, kind === 1 ? 1.25 : 1], 4 * i);
    }
    this.renderer.setPlaces(places, count);
  }

  fit(states = null) {
    const narrow = innerWidth < 640, margin = [...(narrow ? MARGIN_NARROW : MARGIN_WIDE)];
    if (narrow) margin[0] = Math.max(margin[0], byId("counts").parentElement.getBoundingClientRect().bottom + 8);
    if (!states) return this.camera.fit(grown(this.finder.box, 1), margin);
    const { position } = this.data, box = [Infinity, Infinity, -Infinity, -Infinity];
    for (const state of states) {
      const [x, y] = [position[2 * state], position[2 * state + 1]];
      box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y); box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
    }
    this.camera.fit(grown(box, 3), margin);
  }

  recolour() {
    const name = byId("colour").value, values = this.data[name];
    this.scale = paintStates(name, values, this.data.flags, this.colours);
    this.player.paint(this.colours, this.count);
    if (this.matches) {
      const hit = new Uint8Array(this.count);
      for (const state of this.matches) hit[state] = 1;
      for (let i = 0; i < this.count; i++) if (!hit[i]) this.colours[4 * i + 3] = 30;
    }
    this.renderer.setColours(this.colours, this.count);
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const { scale } = this.camera;
      const radius = Math.min(11, Math.max(0.55, scale * 0.22));
      const crowd = this.renderer.edges / Math.max(1, this.canvas.clientWidth * this.canvas.clientHeight / (scale * scale) / 4);
      this.renderer.draw(this.camera, {
        page: unit(styleColour("--page")), ink: unit(styleColour("--ink")), end: unit(styleColour("--end")),
        strength: Math.max(0.1, Math.min(0.55, 0.12 + scale * 0.035) / Math.max(1, Math.sqrt(crowd) / 3)),
        radius, chosen: this.chosen,
      });
      this.placeLabels();
    });
  }

  placeLabels() {
    const labels = byId("labels"), made = [], last = document.querySelector("footer").getBoundingClientRect().top - 50;
    const wide = 132;  // pixels from the middle of a label to its side
    // Below the middle of its disc; above the bar at the bottom and within the sides if the disc reaches beyond them.
    const add = (disc, text) => {
      const [x, y] = this.camera.toScreen(disc[0], disc[1] + disc[2] + 1.2), [, top] = this.camera.toScreen(disc[0], disc[1] - disc[2]);
      const left = x < 0 || x > innerWidth ? x : Math.max(wide, Math.min(innerWidth - wide, x));
      if (top < last && y > 0) made.push(element("span", { style: `left:${left}px;top:${Math.min(y, last)}px` }, text));
    };
    if (words.endsDisc && words.othersDisc) add(words.endsDisc, "ends in the middle, each step away further out");
    if (words.othersDisc) add(words.othersDisc, "no way to an end seen: starts in the middle");
    labels.replaceChildren(...made);
  }

  choose(state) {
    this.chosen = state;
    byId("tip").hidden = true;
    if (state < 0) {
      byId("details").hidden = true;
    } else {
      showDetails(byId("details"), this.data, state, this.incoming, (next) => this.choose(next), () => this.choose(-1));
      this.bringIntoView(state);
    }
    this.redraw();
  }

  bringIntoView(state) {
    const [x, y] = this.camera.toScreen(this.data.position[2 * state], this.data.position[2 * state + 1]);
    const narrow = innerWidth < 640;
    const right = narrow ? innerWidth : innerWidth - 340, bottom = narrow ? innerHeight * 0.5 : innerHeight - 80;
    const left = narrow ? 0 : 340;
    if (x < left + 10 || x > right - 10 || y < 60 || y > bottom) {
      this.camera.pan((left + right) / 2 - x, bottom / 2 + 30 - y);
    }
  }

  at(event) {
    const reach = (event.pointerType === "touch" ? 26 : 14) / this.camera.scale;
    return this.finder.nearest(...this.camera.toWorld(event.offsetX, event.offsetY), reach);
  }

  search(text) {
    const found = byId("found");
    this.matches = null;
    if (text.trim()) {
      const { problem, states } = findStates(text, this.data, this.count);
      found.textContent = problem || `${plain(states.length)} ${states.length === 1 ? "state" : "states"}`;
      if (!problem) this.matches = states;
    } else {
      found.textContent = "";
    }
    this.recolour();
  }

  next(direction) {
    const pool = this.matches && this.matches.length ? this.matches : null, size = pool ? pool.length : this.count;
    const now = pool ? pool.indexOf(this.chosen) : this.chosen;
    const place = now < 0 ? (direction > 0 ? 0 : size - 1) : (now + direction + size) % size;
    this.choose(pool ? pool[place] : place);
  }

  listen() {
    const { canvas } = this, tip = byId("tip");
    canvas.addEventListener("pointermove", (event) => {
      const state = event.buttons || event.pointerType === "touch" ? -1 : this.at(event);
      if (state < 0) tip.hidden = true; else showTip(tip, this.data, state, event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("pointerup", (event) => { if (this.camera.moved < 6) this.choose(this.at(event)); });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return this.choose(-1);
      if (event.target.matches("input, select")) return;
      if (event.key === "n") this.next(1);
      else if (event.key === "p") this.next(-1);
      else if (event.key === "0") this.fit();
      else if (event.key === "/") { event.preventDefault(); byId("search").querySelector("input").focus(); }
    });
    byId("colour").addEventListener("change", () => { this.recolour(); this.showLegend(); });
    const input = byId("search").querySelector("input");
    input.addEventListener("input", () => this.search(input.value));
    byId("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search(input.value);
      if (this.matches && this.matches.length) {
        this.fit(this.matches);
        if (this.matches.length === 1) this.choose(this.matches[0]);
      }
    });
    byId("in").onclick = () => this.camera.zoom(1.5);
    byId("out").onclick = () => this.camera.zoom(1 / 1.5);
    byId("fit").onclick = () => this.fit();
    addEventListener("resize", () => this.redraw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.recolour(); this.showLegend(); });
    this.showLegend();
  }

  showLegend() {
    const name = byId("colour").value, values = this.data[name];
    drawLegend(byId("legend"), name, values, measureScale(name, values, this.data.flags), this.data.flags);
  }
}

// On a tall screen the second disc is below the first, not to its right.
function stackDiscs(data) {
  if (!words.endsDisc || !words.othersDisc) return;
  const [x, y] = words.othersDisc;
  data.flags.forEach((flags, i) => {
    if (flags & REACHES_END) return;
    data.position[2 * i] += y - x;
    data.position[2 * i + 1] += x - y;
  });
  [words.othersDisc[0], words.othersDisc[1]] = [y, x];
}

function grown([left, top, right, bottom], by) {
  return [left - by, top - by, right + by, bottom + by];
}

function sayCounts() {
  const count = (number, noun) => `${plain(number)} ${noun}${number === 1 ? "" : "s"}`;
  byId("counts").textContent = `${count(words.states, "state")}, ${count(words.edges, "edge")}, `
    + `${count(words.ends, "end")}; ${count(words.rows, "transition")}`
    + (words.ends ? "" : ". No end was seen yet: the starts of episodes are in the middle.");
  const left = [];
  if (words.shown < words.states) left.push(`${plain(words.shown)} of ${plain(words.states)} states`);
  if (words.shownEdges < words.edges) left.push(`${plain(words.shownEdges)} of ${plain(words.edges)} edges`);
  if (left.length) {
    byId("thinned").textContent = `Thinned: ${left.join(" and ")} are shown. States on which few others hang were left out.`;
    byId("thinned").hidden = false;
  }
}

function offerColours(data) {
  const usable = Object.keys(MEASURES).filter((name) => name !== "value" || words.planned);
  for (const name of usable) byId("colour").append(element("option", { value: name }, MEASURES[name].name));
  byId("colour").value = words.planned ? "value" : words.ends ? "distance" : "visits";
}

try {
  sayCounts();
  const data = await readData();
  offerColours(data);
  window.view = new View(data);
  byId("waiting").hidden = true;
} catch (error) {
  byId("waiting").textContent = `The graph cannot be drawn: ${error.message}`;
  throw error;
}

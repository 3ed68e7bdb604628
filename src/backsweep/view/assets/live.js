// A run in training: polls its state every second, and moves from one frame of the graph to the next.
const EVERY = 1000, GLIDE = 900, GLOW = 1800, FILM_STEP = 160;
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

class LiveGraph {
  constructor() {
    this.canvas = byId("graph");
    this.renderer = new Renderer(this.canvas);
    this.camera = new Camera(this.canvas, () => this.redraw());
    this.count = 0;
    this.chosen = -1;
    this.untouched = true;
    for (const name of ["wheel", "pointerdown", "keydown"]) this.canvas.addEventListener(name, () => { this.untouched = false; });
    this.canvas.addEventListener("keydown", (event) => { if (event.key === "0") this.fit(); });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
    byId("fit").onclick = () => this.fit();
    byId("colour").addEventListener("change", () => { this.recolour(); this.showLegend(); });
    new ResizeObserver(() => (this.untouched ? this.fit() : this.redraw())).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.recolour(); this.showLegend(); });
  }

  fit() {
    this.untouched = true;
    if (this.count) this.camera.fit(this.box, innerWidth < 736 ? [150, 12, 12, 12] : [20, 20, 20, 40]);
  }

  // Moves to a new frame: known states glide, new ones appear from a neighbouring state.
  take(data, about) {
    const old = this.data, before = new Map(), count = data.id.length;
    if (old) old.id.forEach((id, i) => before.set(id, i));
    this.stateOf = new Map();
    data.id.forEach((id, i) => this.stateOf.set(id, i));
    const from = data.position.slice(), known = new Uint8Array(count), changed = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const was = before.get(data.id[i]);
      if (was === undefined) continue;
      known[i] = 1;
      from[2 * i] = this.now[2 * was]; from[2 * i + 1] = this.now[2 * was + 1];
      changed[i] = data.value[i] - old.value[was];
    }
    for (let i = 0; i < data.edge.length && old; i += 2) {
      const [a, b] = [data.edge[i], data.edge[i + 1]];
      for (const [fresh, near] of [[a, b], [b, a]]) {
        if (known[fresh] || !known[near]) continue;
        known[fresh] = 2;
        from[2 * fresh] = from[2 * near]; from[2 * fresh + 1] = from[2 * near + 1];
      }
    }
    Object.assign(this, { data, about, from, changed, count, began: performance.now(), now: from.slice() });
    this.fresh = known.map((kind) => (old && kind !== 1 ? 1 : 0));
    this.finder = new Finder(data.position, count);
    this.box = [this.finder.box[0] - 1, this.finder.box[1] - 1, this.finder.box[2] + 1, this.finder.box[3] + 1];
    this.renderer.setEdges(data.edge, data.trunk);
    this.colours = new Uint8Array(4 * count);
    this.places = new Float32Array(4 * count);
    for (let i = 0; i < count; i++) {
      this.places[4 * i + 2] = data.flags[i] & TERMINAL ? 2 : data.flags[i] & START ? 1 : 0;
      this.places[4 * i + 3] = 1;
    }
    const values = data.value.filter(Number.isFinite).sort();
    this.spread = values.length ? Math.max(values[Math.floor(values.length * 0.99)] - values[Math.floor(values.length * 0.01)], 1e-9) : 1;
    this.recolour();
    this.showLegend();
    if (this.untouched) this.fit();
    this.glide();
  }

  glide() {
    const since = performance.now() - this.began, share = still || since > GLIDE ? 1 : since / GLIDE;
    const eased = share * share * (3 - 2 * share);
    for (let i = 0; i < 2 * this.count; i++) this.now[i] = this.from[i] + (this.data.position[i] - this.from[i]) * eased;
    for (let i = 0; i < this.count; i++) {
      this.places[4 * i] = this.now[2 * i]; this.places[4 * i + 1] = this.now[2 * i + 1];
    }
    this.renderer.setPlaces(this.places, this.count);
    if (!still && since < GLOW) this.recolour(1 - since / GLOW); else this.recolour(0);
    if (!still && since < GLOW && !this.gliding) {
      this.gliding = true;
      requestAnimationFrame(() => { this.gliding = false; this.glide(); });
    }
  }

  // Colours states; those that are new or have changed their value since the last frame glow for a moment.
  recolour(glow = 0) {
    if (!this.data) return;
    const name = byId("colour").value;
    if (this.painted !== this.data || this.paintedBy !== name) {
      this.scale = paintStates(name, this.data[name], this.data.flags, this.colours);
      this.plainColours = this.colours.slice();
      [this.painted, this.paintedBy] = [this.data, name];
    }
    this.colours.set(this.plainColours);
    if (glow > 0) {
      const light = styleColour("--hit");
      for (let i = 0; i < this.count; i++) {
        const much = this.fresh[i] ? 1 : Math.min(1, Math.abs(this.changed[i]) / this.spread * 4);
        if (!(much > 0.08)) continue;
        for (let k = 0; k < 3; k++) this.colours[4 * i + k] += (light[k] - this.colours[4 * i + k]) * glow * much;
      }
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
      this.renderer.draw(this.camera, {
        page: unit(styleColour("--page")), ink: unit(styleColour("--ink")), end: unit(styleColour("--end")),
        strength: Math.max(0.12, Math.min(0.5, 0.12 + scale * 0.035)), radius: Math.min(11, Math.max(0.7, scale * 0.22)), chosen: this.chosen,
      });
    });
  }

  showLegend() {
    if (!this.data) return;
    const name = byId("colour").value, values = this.data[name];
    drawLegend(byId("legend"), name, values, measureScale(name, values, this.data.flags), this.data.flags);
  }

  point(event) {
    const tip = byId("tip");
    if (!this.data || event.buttons) return;
    const state = this.finder.nearest(...this.camera.toWorld(event.offsetX, event.offsetY), 14 / this.camera.scale);
    tip.hidden = state < 0;
    if (state < 0) return;
    const { data } = this, kind = data.flags[state] & TERMINAL ? "end" : data.flags[state] & START ? "start" : "state";
    const way = data.distance[state] < 0 ? "no way to an end seen" : `${plain(data.distance[state])} steps to an end`;
    tip.replaceChildren(element("strong", {}, `${kind} ${data.id[state]}`), element("div", {}, `value ${plain(data.value[state])}`),
      element("div", {}, `${plain(data.visits[state])} visits`), element("div", {}, way));
    tip.style.left = `${Math.min(event.clientX + 16, innerWidth - 180)}px`;
    tip.style.top = `${Math.min(event.clientY + 12, innerHeight - 110)}px`;
  }
}

// The last episode as an animation next to the graph, which marks its current state.
class Film {
  constructor(graph) {
    this.graph = graph;
    this.slider = byId("moment");
    this.slider.addEventListener("input", () => { this.held = true; this.show(Number(this.slider.value)); });
    if (!still) setInterval(() => this.next(), FILM_STEP);
  }

  take(data, about) {
    this.next_ = { data, about };
    if (!this.data || still) this.begin();
  }

  begin() {
    if (!this.next_) return;
    ({ data: this.data, about: this.about } = this.next_);
    this.next_ = null;
    this.held = false;
    this.steps = this.data.episode_reward.length;
    byId("film").hidden = !this.steps;
    this.slider.max = this.steps;
    this.pause = 0;
    this.total = Array.from(this.data.episode_reward).reduce((sum, reward) => sum + reward, 0);
    this.show(still ? this.steps : 0);
  }

  next() {
    if (!this.data || !this.steps || this.held) { if (!this.data) this.begin(); return; }
    if (this.moment < this.steps) this.show(this.moment + 1);
    else if (++this.pause > 12) { if (this.next_) this.begin(); else { this.pause = 0; this.show(0); } }
  }

  show(moment) {
    if (!this.steps) return;
    this.moment = moment;
    this.slider.value = moment;
    const { data, about } = this, lines = [`step ${moment} of ${this.steps}`];
    if (moment < this.steps) {
      lines.push(`next: ${actionName(data.episode_action[moment])}`, `reward ${plain(data.episode_reward[moment])}`);
    } else {
      lines.push("the end");
    }
    lines.push(`return ${plain(this.total)}`);
    byId("scene").textContent = lines.join("\n");
    if (about.picture) {
      const each = data.picture.shape[1];
      byId("picture").replaceChildren(drawPicture(data.tiles, data.picture.subarray(moment * each, (moment + 1) * each), about.picture) || "");
    }
    if (data.episode_state) {
      const state = data.episode_state[moment], found = state === NONE ? undefined : this.graph.stateOf.get(data.id[state]);
      this.graph.chosen = found === undefined ? -1 : found;
      this.graph.redraw();
    }
  }
}

async function readFrame(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return [await readArrays(buffer.slice(4 + length), about.arrays), about];
}

class Watch {
  constructor() {
    for (const name of ["value", "distance", "visits", "age"]) byId("colour").append(element("option", { value: name }, MEASURES[name].name));
    this.graph = new LiveGraph();
    this.film = new Film(this.graph);
    this.series = {};
    this.next = this.version = 0;
    this.charts = CHARTS.map((chart) => [chart, byId("charts").appendChild(element("div", { className: "chart", hidden: true }))]);
    this.turn();
  }

  async turn() {
    try {
      const news = await (await fetch(`state?from=${this.next}`)).json();
      this.takeNews(news);
      if (news.graph > this.version) {
        const answer = await fetch("graph");
        if (answer.status === 200) this.takeFrame(...await readFrame(await answer.arrayBuffer()));
        this.version = news.graph;
      }
      setTimeout(() => this.turn(), EVERY);
    } catch (error) {
      byId("progress").textContent = `The run has ended or was stopped (last seen at step ${plain(this.step || 0)}). This page keeps what it has.`;
      if (!this.version) byId("waiting").textContent = "No graph was drawn before the run ended.";
      document.body.dataset.ended = "true";
      if (!(error instanceof TypeError)) throw error;
    }
  }

  takeNews(news) {
    this.step = news.step;
    this.next = news.next;
    for (const [name, step, value] of news.points) (this.series[name] ||= []).push([step, value]);
    if (news.points.length) for (const [chart, holder] of this.charts) drawChart(holder, chart, this.series, news.step);
    byId("done").value = news.step / news.total;
    const now = performance.now();
    if (this.last && news.step > this.last.step) {
      const speed = (news.step - this.last.step) / (now - this.last.at) * 1000;
      this.speed = this.speed ? 0.8 * this.speed + 0.2 * speed : speed;
    }
    this.last = { step: news.step, at: now };
    byId("progress").textContent = `step ${plain(news.step)} of ${plain(news.total)}`
      + (this.speed ? `, ${plain(Math.round(this.speed))} steps/s` : "");
  }

  takeFrame(data, about) {
    const thin = about.shown < about.states ? ` (${plain(about.shown)} shown: thinned)` : "";
    if (data.id && data.id.length) {
      this.graph.take(data, about);
      byId("waiting").hidden = true;
      const whose = about.planned ? "graph values" : "the network\u2019s values";
      byId("counts").textContent = `${plain(about.states)} states${thin}, ${plain(about.edges)} edges, ${plain(about.ends)} ${about.ends === 1 ? "end" : "ends"}; ${whose}; `
        + `random actions ${plain(Math.round(about.epsilon * 100))}%, ${plain(about.episodes)} ${about.episodes === 1 ? "episode" : "episodes"}`;
    } else {
      byId("waiting").textContent = "This method keeps no graph; curves and the last episode are on the side.";
    }
    this.film.take(data, about);
  }
}

try {
  window.watch = new Watch();
} catch (error) {
  byId("waiting").textContent = `The page cannot be drawn: ${error.message}`;
  throw error;
}

// The camera, moved by mouse, touch and keys.
class Camera {
  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed, x: 0, y: 0, scale: 1, smallest: 0.01, largest: 400 });
    this.fingers = new Map();
    this.listen();
  }

  toWorld(x, y) {
    const { canvas } = this;
    return [this.x + (x - canvas.clientWidth / 2) / this.scale, this.y + (y - canvas.clientHeight / 2) / this.scale];
  }

  toScreen(x, y) {
    const { canvas } = this;
    return [(x - this.x) * this.scale + canvas.clientWidth / 2, (y - this.y) * this.scale + canvas.clientHeight / 2];
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const before = this.toWorld(x, y);
    this.scale = Math.min(this.largest, Math.max(this.smallest, this.scale * factor));
    const after = this.toWorld(x, y);
    this.x += before[0] - after[0];
    this.y += before[1] - after[1];
    this.changed();
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.changed();
  }

  // Show a box; `margin` has the pixels at top, right, bottom and left that panels cover.
  fit([left, top, right, bottom], margin = [20, 20, 20, 20]) {
    const width = Math.max(60, this.canvas.clientWidth - margin[1] - margin[3]);
    const height = Math.max(60, this.canvas.clientHeight - margin[0] - margin[2]);
    this.scale = Math.min(width / Math.max(right - left, 1e-6), height / Math.max(bottom - top, 1e-6), 60);
    this.smallest = Math.min(this.smallest, this.scale / 4);
    this.x = (left + right) / 2 - (margin[3] - margin[1]) / 2 / this.scale;
    this.y = (top + bottom) / 2 - (margin[0] - margin[2]) / 2 / this.scale;
    this.changed();
  }

  listen() {
    const { canvas, fingers } = this;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
      if (fingers.size === 1) this.moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return;
      const now = [event.offsetX, event.offsetY];
      this.moved += Math.hypot(now[0] - last[0], now[1] - last[1]);
      if (fingers.size === 1) {
        this.pan(now[0] - last[0], now[1] - last[1]);
      } else if (fingers.size === 2) {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
        const before = Math.hypot(last[0] - other[0], last[1] - other[1]);
        const after = Math.hypot(now[0] - other[0], now[1] - other[1]);
        this.pan((now[0] - last[0]) / 2, (now[1] - last[1]) / 2);
        this.zoom(after / Math.max(before, 1), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      }
      fingers.set(event.pointerId, now);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
    }
    canvas.addEventListener("keydown", (event) => {
      const step = 60, moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
      if (moves[event.key]) this.pan(...moves[event.key]);
      else if (event.key === "+" || event.key === "=") this.zoom(1.3);
      else if (event.key === "-") this.zoom(1 / 1.3);
      else return;
      event.preventDefault();
    });
  }
}

// Finds the state nearest to a point, by a grid of cells with about two states each.
class Finder {
  constructor(position, count) {
    this.position = position;
    const xs = [Infinity, -Infinity], ys = [Infinity, -Infinity];
    for (let i = 0; i < count; i++) {
      xs[0] = Math.min(xs[0], position[2 * i]); xs[1] = Math.max(xs[1], position[2 * i]);
      ys[0] = Math.min(ys[0], position[2 * i + 1]); ys[1] = Math.max(ys[1], position[2 * i + 1]);
    }
    this.box = count ? [xs[0], ys[0], xs[1], ys[1]] : [-1, -1, 1, 1];
    const area = Math.max(xs[1] - xs[0], 1e-3) * Math.max(ys[1] - ys[0], 1e-3);
    this.cell = Math.max(Math.sqrt(2 * area / Math.max(count, 1)), 1e-3);
    this.columns = Math.floor((xs[1] - xs[0]) / this.cell) + 1;
    this.rows = Math.floor((ys[1] - ys[0]) / this.cell) + 1;
    this.first = new Uint32Array(this.columns * this.rows + 1);
    const cellOf = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      cellOf[i] = this.row(position[2 * i + 1]) * this.columns + this.column(position[2 * i]);
      this.first[cellOf[i] + 1]++;
    }
    for (let i = 0; i < this.first.length - 1; i++) this.first[i + 1] += this.first[i];
    this.states = new Uint32Array(count);
    const next = this.first.slice();
    for (let i = 0; i < count; i++) this.states[next[cellOf[i]]++] = i;
  }

  column(x) { return Math.min(this.columns - 1, Math.max(0, Math.floor((x - this.box[0]) / this.cell))); }
  row(y) { return Math.min(this.rows - 1, Math.max(0, Math.floor((y - this.box[1]) / this.cell))); }

  nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    for (let row = this.row(y - reach); row <= this.row(y + reach); row++) {
      for (let column = this.column(x - reach); column <= this.column(x + reach); column++) {
        const cell = row * this.columns + column;
        for (let i = this.first[cell]; i < this.first[cell + 1]; i++) {
          const state = this.states[i];
          const away = (this.position[2 * state] - x) ** 2 + (this.position[2 * state + 1] - y) ** 2;
          if (away < least) [best, least] = [state, away];
        }
      }
    }
    return best;
  }
}

// Plays a sweep batch by batch: swept states keep their colour, the current batch glows, the rest is dim.
const FRAMES_A_SECOND = 12, SECONDS_AT_MOST = 30;

class Player {
  constructor(data, changed) {
    Object.assign(this, { data, changed, playing: false, batch: 0, batches: data.sweep_end.length - 1 });
    this.slider = byId("batch");
    this.button = byId("play");
    this.slider.max = this.batches;
    byId("sweep").hidden = this.batches < 1;
    this.slider.addEventListener("input", () => { this.stop(); this.go(Number(this.slider.value)); });
    this.button.addEventListener("click", () => (this.playing ? this.stop() : this.play()));
    this.say();
  }

  go(batch) {
    this.batch = Math.min(this.batches, Math.max(0, batch));
    this.slider.value = this.batch;
    this.say();
    this.changed();
  }

  say() {
    const number = this.batch && this.data.sweep_number[this.batch - 1];
    const text = this.batch ? `sweep ${plain(number)}, batch ${plain(this.batch)} of ${plain(this.batches)}`
      : `${plain(this.batches)} ${this.batches === 1 ? "batch" : "batches"} of ${words.sweepBatch}`;
    byId("played").textContent = text;
    document.querySelector("footer .newest").hidden = !this.batch;
    this.slider.setAttribute("aria-valuetext", text);
  }

  play() {
    if (this.batch >= this.batches) this.go(0);
    this.playing = true;
    this.button.textContent = "\u275a\u275a";
    this.button.setAttribute("aria-label", "Stop the sweep");
    const step = Math.max(1, Math.ceil(this.batches / (FRAMES_A_SECOND * SECONDS_AT_MOST)));
    const turn = () => {
      if (!this.playing) return;
      this.go(this.batch + step);
      if (this.batch >= this.batches) this.stop(); else setTimeout(turn, 1000 / FRAMES_A_SECOND);
    };
    turn();
  }

  stop() {
    this.playing = false;
    this.button.textContent = "\u25b6";
    this.button.setAttribute("aria-label", "Play the sweep");
  }

  // Dims states that are not swept yet and highlights the newest batch.
  paint(colours, count) {
    if (!this.batch) return;
    const { sweep_state: states, sweep_end: end } = this.data, glow = styleColour("--hit");
    const swept = new Uint8Array(count);
    for (let i = 0; i < end[this.batch]; i++) swept[states[i]] = 1;
    for (let i = 0; i < count; i++) {
      if (!swept[i] && !(this.data.flags[i] & TERMINAL)) colours[4 * i + 3] = 26;
    }
    for (let i = end[this.batch - 1]; i < end[this.batch]; i++) colours.set(glow, 4 * states[i]);
  }
}

// The colours of states, and their legend.
const RAMP = ["#4b3b8f", "#2e6f95", "#2f9c8a", "#93bf4a", "#f4c534"].map(rgb);

function rgb(text) {
  const number = parseInt(text.trim().slice(1), 16);
  return [number >> 16 & 255, number >> 8 & 255, number & 255];
}

function styleColour(name) {
  return rgb(getComputedStyle(document.documentElement).getPropertyValue(name));
}

const unit = (colour) => colour.map((part) => part / 255);

function ramp(share) {
  const place = Math.min(1, Math.max(0, share)) * (RAMP.length - 1), low = Math.min(Math.floor(place), RAMP.length - 2);
  return RAMP[low].map((part, i) => part + (RAMP[low + 1][i] - part) * (place - low));
}

const MEASURES = {
  value: { name: "Value", about: "graph value" },
  distance: { name: "Steps to an end", about: "fewest steps to an end", unknown: (x) => x < 0, reverse: true },
  visits: { name: "Visits", about: "stored visits", log: true },
  age: { name: "Age", about: "rows since the last visit", reverse: true },
  draws: { name: "Sampler\u2019s draws", about: "draws in a trial of the sampler", log: true },
};

function measureScale(name, values, flags) {
  const measure = MEASURES[name], missing = measure.unknown || ((x) => !Number.isFinite(x));
  // Outliers, and ends, whose value is always 0, must not leave all other states one colour.
  let known = values.filter((value, i) => !missing(value) && !(name === "value" && flags[i] & TERMINAL));
  if (!known.length) known = values.filter((value) => !missing(value));
  if (!known.length) return null;
  known.sort();
  const cut = measure.log || known.length < 200 ? 0 : Math.floor(known.length * 0.005);
  const low = known[cut], high = known[known.length - 1 - cut];
  const bend = measure.log ? (x) => Math.log1p(x) : (x) => x;
  const bottom = bend(low), span = bend(high) - bottom;
  const share = (x) => {
    const plainShare = span > 0 ? Math.min(1, Math.max(0, (bend(x) - bottom) / span)) : 0.5;
    return measure.reverse ? 1 - plainShare : plainShare;
  };
  return { low, high, share, missing, reverse: Boolean(measure.reverse) };
}

function paintStates(name, values, flags, into) {
  const count = flags.length, scale = measureScale(name, values, flags), unknown = styleColour("--unknown");
  for (let i = 0; i < count; i++) {
    const colour = scale && !scale.missing(values[i]) ? ramp(scale.share(values[i])) : unknown;
    into.set(colour, 4 * i);
    into[4 * i + 3] = 255;
  }
  return scale;
}

function drawLegend(holder, name, values, scale, flags) {
  holder.replaceChildren();
  if (scale) {
    const bars = 48, counts = new Float64Array(bars), canvas = element("canvas", { width: bars * 6, height: 68 });
    for (const value of values) {
      if (!scale.missing(value)) counts[Math.min(bars - 1, Math.floor(scale.share(value) * bars))]++;
    }
    const most = Math.max(...counts.map(Math.log1p)), context = canvas.getContext("2d");
    counts.forEach((number, bar) => {
      context.fillStyle = `rgb(${ramp((bar + 0.5) / bars).join(",")})`;
      const height = number ? 6 + 52 * Math.log1p(number) / most : 0;
      context.fillRect(bar * 6, 58 - height, 6, height);
      context.fillRect(bar * 6, 60, 6, 8);
    });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `How many states have which ${MEASURES[name].about}`);
    const ends = [scale.low, scale.high].map((value) => element("span", {}, plain(value)));
    if (scale.reverse) ends.reverse();
    holder.append(canvas, element("div", { className: "scale" }, ends[0], element("span", {}, MEASURES[name].about), ends[1]));
  }
  const marks = element("div", { className: "marks" });
  const has = (flag) => flags.some((value) => value & flag);
  if (has(TERMINAL)) marks.append(element("span", { className: "end" }, "end"));
  if (has(START)) marks.append(element("span", { className: "start" }, "start"));
  if (!scale || values.some(scale.missing)) {
    const text = name === "value" && !scale ? "no values planned" : name === "distance" ? "no end reached" : "not known";
    marks.append(element("span", { className: "unknown" }, text));
  }
  holder.append(marks);
}

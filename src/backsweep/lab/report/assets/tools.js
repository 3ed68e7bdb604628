"use strict";
// Shared by all scripts of the page: the data, elements, ticks, and numbers as text.
window.backsweep = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";

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

  const WORDS = [[1e12, " trillion"], [1e9, " billion"], [1e6, "M"], [1e3, "k"]];
  const digits = (value) => String(Number(value.toPrecision(3)));
  function number(value, unit) {
    if (value === null || value === undefined) return "never";
    if (unit === "percent") return digits(100 * value) + "%";
    const size = Math.abs(value);
    if (size >= 1e15) return "1e" + Math.round(Math.log10(size));
    for (const [by, word] of WORDS) if (size >= (by === 1e3 ? 1e4 : by)) return digits(value / by) + word;
    if (size !== 0 && size < 1e-3) return value.toExponential(0);
    return size >= 1000 ? Math.round(value).toLocaleString("en") : digits(value);
  }

  // Round steps of 1, 2 or 5 times a power of ten.
  function ticks(low, high, count) {
    const raw = (high - low) / (count + 0.5), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((part) => part * power).find((part) => part >= raw * 0.999999);
    const result = [];
    for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step)
      result.push(Math.abs(at) < step * 1e-9 ? 0 : at);
    return result;
  }

  // Powers of ten, with 2 and 5 times them where there is room, fewer where there is none.
  function decades(low, high, most) {
    const all = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const part of [1, 2, 5]) {
        const at = part * 10 ** power;
        if (at >= low * 0.999 && at <= high * 1.001) all.push([at, part, power]);
      }
    if (all.length <= most) return all.map(([at]) => at);
    const tens = all.filter(([, part]) => part === 1);
    const every = Math.ceil(tens.length / most);
    return tens.filter(([, , power]) => (power - tens[0][2]) % every === 0).map(([at]) => at);
  }

  return { data, make, html, number, ticks, decades };
})();

"use strict";
(() => {
  const place = document.getElementById("nchain-player");
  if (!place) return;
  const { length, views, looks } = window.backsweep.data.chain;
  const methods = Object.keys(views[0].traces);
  const element = (name, properties, parent) => {
    const node = Object.assign(document.createElement(name), properties);
    parent.appendChild(node);
    return node;
  };

  const controls = element("div", { className: "controls" }, place);
  const button = (text, label, act) => {
    const node = element("button", { type: "button", textContent: text, ariaLabel: label, title: label }, controls);
    node.addEventListener("click", act);
    return node;
  };
  let at = 0, view = 0, timer = 0, moved = false;
  const last = () => Math.max(...Object.values(views[view].traces).map((trace) => trace.length));
  const stop = () => { clearInterval(timer); timer = 0; play.textContent = "▶ play"; };
  button("start", "back to the start", () => { stop(); show(0); });
  button("−1", "one backup back", () => { stop(); show(at - 1); });
  button("+1", "one backup on", () => { stop(); show(at + 1); });
  button("+10", "ten backups on", () => { stop(); show(at + 10); });
  const play = button("▶ play", "play or pause", () => {
    if (timer) { stop(); return; }
    if (at >= last() || !moved) show(0);
    moved = true;
    play.textContent = "⏸ pause";
    timer = setInterval(() => { if (at >= last()) stop(); else show(at + 1); }, 120);
  });
  const slider = element("input", { type: "range", min: 0, max: last(), value: 0, ariaLabel: "backups" }, controls);
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  const counter = element("output", { textContent: "0 backups" }, controls);
  const select = element("select", { ariaLabel: "target table" }, controls);
  views.forEach((entry, index) => element("option", { value: index, textContent: entry.label }, select));
  select.addEventListener("change", () => { stop(); view = Number(select.value); slider.max = last(); show(0); });

  const board = element("div", { className: "chain" }, place);
  const rows = methods.map((method) => {
    const row = element("div", { className: "strip" }, board);
    element("div", { className: "name", textContent: looks[method].title }, row).style.setProperty("--colour", looks[method].colour);
    const strip = element("div", { className: "cells" }, row);
    strip.style.gridTemplateColumns = `repeat(${length}, minmax(0, 1fr))`;
    const cells = Array.from({ length }, (_, state) =>
      element("div", { className: state === length - 1 ? "cell goal" : "cell", textContent: state === length - 1 ? "G" : "" }, strip));
    strip.setAttribute("role", "img");
    return { method, strip, cells, count: element("div", { className: "count" }, row) };
  });

  // The table of a method after `upTo` backups, and the first backup after which every arrow points forward.
  function replay(method, upTo) {
    const table = Array.from({ length }, () => [0, 0]);
    let solved = null;
    views[view].traces[method].slice(0, upTo).forEach(([state, action, value], index) => {
      table[state][action] = value;
      if (solved === null && table.slice(0, -1).every(([ahead, back]) => ahead > back)) solved = index + 1;
    });
    return { table, solved };
  }

  function show(wanted) {
    at = Math.max(0, Math.min(last(), wanted));
    slider.value = at;
    counter.textContent = `${at} ${at === 1 ? "backup" : "backups"}`;
    for (const { method, strip, cells, count } of rows) {
      const { table, solved } = replay(method, at), now = at ? views[view].traces[method][at - 1] : null;
      let right = 0;
      cells.forEach((cell, state) => {
        if (state === length - 1) return;
        const [ahead, back] = table[state], best = Math.max(ahead, back);
        right += ahead > back;
        cell.style.setProperty("--v", Math.min(1, best).toFixed(3));
        cell.textContent = best === 0 ? "" : ahead > back ? "→" : ahead < back ? "←" : "·";
        cell.classList.toggle("now", now !== null && now !== undefined && now[0] === state);
        cell.title = `state ${state}: forward ${ahead.toFixed(3)}, backward ${back.toFixed(3)}`;
      });
      count.textContent = solved === null ? `${right} of ${length - 1}` : `solved at ${solved}`;
      count.classList.toggle("done", solved !== null);
      strip.setAttribute("aria-label", `${looks[method].title}: ${right} of ${length - 1} states point to the goal after ${at} backups`);
    }
  }
  // Begin where the first method has just solved the chain.
  const firsts = methods.map((method) => replay(method, Infinity).solved).filter((solved) => solved !== null);
  show(firsts.length ? Math.min(...firsts) : 0);
})();

"use strict";
// Navigation: the menu, links that unfold their target, and hints on tables that scroll sideways.
(() => {
  const menu = document.getElementById("menu"), contents = document.getElementById("contents");
  const toggle = (open) => { menu.setAttribute("aria-expanded", String(open)); contents.classList.toggle("open", open); };
  menu.addEventListener("click", () => toggle(menu.getAttribute("aria-expanded") !== "true"));
  contents.addEventListener("click", (event) => { if (event.target.closest("a")) toggle(false); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.getAttribute("aria-expanded") === "true") { toggle(false); menu.focus(); }
  });

  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    target.scrollIntoView({ block: "start" });
  }
  window.addEventListener("hashchange", unfold);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) { event.preventDefault(); unfold(); }
  });
  unfold();

  const measure = (box) => {
    const more = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("scrolls", more);
    box.classList.toggle("at-end", box.scrollLeft + box.clientWidth >= box.scrollWidth - 2);
    if (more) box.setAttribute("tabindex", "0"); else box.removeAttribute("tabindex");
  };
  const watch = new ResizeObserver((entries) => entries.forEach((entry) => measure(entry.target)));
  for (const box of document.querySelectorAll(".wide")) {
    watch.observe(box);
    box.addEventListener("scroll", () => measure(box), { passive: true });
  }

  // Marks the current section in the contents: the last one that begins at or above where a link's target stops.
  const links = new Map([...contents.querySelectorAll("li a")].map((link) => [link.hash.slice(1), link]));
  const places = [...links.keys()].filter((id) => id !== "chain" && id !== "soonest").map((id) => document.getElementById(id)).filter(Boolean);
  function mark() {
    const line = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) + 8;
    const page = document.documentElement, atEnd = window.scrollY > 0 && page.scrollHeight - page.clientHeight - window.scrollY < 2;
    const top = (part) => part.checkVisibility() ? part.getBoundingClientRect().top : Infinity;
    const begun = places.filter((part) => top(part) <= line);
    let current = begun.sort((a, b) => top(a) - top(b)).at(-1) ?? places[0];
    // What a link led to counts where it stopped, and at the end of the page, where it may not come up that far.
    const led = links.has(location.hash.slice(1)) && document.getElementById(location.hash.slice(1));
    if (led && Math.abs(top(led) - line) < 16) current = led;
    else if (led && atEnd && top(led) > line && top(led) < page.clientHeight) current = led;
    const link = links.get(current.id);
    if (!link || link.getAttribute("aria-current")) return;
    contents.querySelector("[aria-current]")?.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    const box = contents.getBoundingClientRect(), at = link.getBoundingClientRect();
    if (at.bottom > box.bottom || at.top < box.top) contents.scrollTop += at.top - box.top - box.height / 3;
  }
  let asked = 0;
  const later = () => { asked ||= requestAnimationFrame(() => { asked = 0; mark(); }); };
  for (const event of ["scroll", "resize", "hashchange"]) window.addEventListener(event, later, { passive: true });
  document.addEventListener("toggle", later, true);
  mark();
})();

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

  // Marks the current section in the contents.
  const links = new Map([...contents.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.get(entry.target.id);
      if (link && entry.isIntersecting) {
        contents.querySelector("[aria-current]")?.removeAttribute("aria-current");
        link.setAttribute("aria-current", "true");
      }
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const id of links.keys()) if (id !== "chain" && id !== "soonest") { const part = document.getElementById(id); if (part) seen.observe(part); }
})();

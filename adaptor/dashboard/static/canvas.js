"use strict";
// Crisp drawing on a canvas: one unit is one CSS pixel, lines lie on whole device pixels.
const Canvas = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const font = (size = 11) => `${size}px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif`;

  const fit = (canvas, height) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 800;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return { pen, width, height, crisp: (at) => (Math.round(at * ratio) + 0.5) / ratio, snap: (at) => Math.round(at * ratio) / ratio };
  };

  const hatch = (pen, name) => {
    const ratio = window.devicePixelRatio || 1, size = Math.round(6 * ratio);
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const brush = tile.getContext("2d");
    brush.strokeStyle = colour(name);
    brush.lineWidth = 1.2 * ratio;
    for (const shift of [-size, 0, size]) {
      brush.beginPath(); brush.moveTo(shift, size); brush.lineTo(shift + size, 0); brush.stroke();
    }
    const pattern = pen.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    return pattern;
  };

  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  const timeTicks = (begin, end, width) => {
    const step = steps.find((each) => ((end - begin) / each) * 74 <= width) || steps[steps.length - 1];
    const zone = new Date(begin * 1000).getTimezoneOffset() * 60, found = [];
    for (let at = Math.ceil((begin - zone) / step) * step + zone; at <= end; at += step) found.push(at);
    return { found, step };
  };

  const countTicks = (most, height) => {
    const room = Math.max(1, Math.floor(height / 34));
    let step = 1;
    for (let power = 1; most / step > room; power *= 10) {
      for (const each of [1, 2, 5]) { step = each * power; if (most / step <= room) break; }
    }
    const found = [];
    for (let at = 0; at + step / 2 < most; at += step) found.push(at);
    return [...found, most];  // the whole is always named
  };

  // A time axis below, with faint lines upwards.
  const timeAxis = (drawn, area, begin, end, now, x) => {
    const { pen, crisp } = drawn, ticks = timeTicks(begin, end, area.width);
    pen.font = font(); pen.textAlign = "center"; pen.textBaseline = "top"; pen.lineWidth = 1;
    let day = new Date(begin * 1000).toDateString();
    for (const at of ticks.found) {
      const date = new Date(at * 1000), left = x(at);
      pen.strokeStyle = colour("grid");
      pen.beginPath(); pen.moveTo(crisp(left), area.top); pen.lineTo(crisp(left), area.top + area.height + 4); pen.stroke();
      const fresh = date.toDateString() !== day;
      day = date.toDateString();
      pen.fillStyle = colour("muted");
      if (left - area.left < 12 || area.left + area.width - left < 12) continue;
      pen.fillText(fresh && ticks.step >= 3600 ? date.toLocaleDateString("en", { day: "numeric", month: "short" }) : Words.time(at, at, ticks.step < 60), left, area.top + area.height + 6);
    }
    if (begin < now && now < end) {
      pen.strokeStyle = colour("now"); pen.beginPath();
      pen.moveTo(crisp(x(now)), area.top - 4); pen.lineTo(crisp(x(now)), area.top + area.height + 4); pen.stroke();
      pen.fillStyle = colour("now"); pen.textBaseline = "bottom"; pen.fillText("now", x(now), area.top - 4);
    }
  };

  return { colour, font, fit, hatch, timeAxis, countTicks };
})();

// What lies under the pointer, or is chosen by the arrow keys, in words.
const Tip = (() => {
  const box = () => document.getElementById("tip");
  const show = (text, left, top) => {
    const tip = box();
    tip.textContent = text; tip.hidden = false;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    tip.style.left = `${Math.max(6, Math.min(left + 14, window.innerWidth - width - 6))}px`;
    tip.style.top = `${top + 18 + height > window.innerHeight ? Math.max(6, top - height - 10) : top + 18}px`;
  };
  const hide = () => { box().hidden = true; };
  // `places()` are {left, top, width, height, text, pick}; `find(x, y)` one of them or null.
  const attach = (canvas, places, find, picked) => {
    let at = -1;
    const tell = (place, left, top) => {
      if (!place) { hide(); picked(null); return; }
      picked(place);
      show(place.text, left, top);
    };
    canvas.addEventListener("pointermove", (event) => {
      const edge = canvas.getBoundingClientRect();
      tell(find(event.clientX - edge.left, event.clientY - edge.top), event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", () => tell(null));
    canvas.addEventListener("blur", () => { at = -1; tell(null); });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const all = places();
      if (event.key === "Escape") { at = -1; tell(null); return; }
      if (!step || !all.length) return;
      event.preventDefault();
      at = (at + step + all.length + (at < 0 && step < 0 ? 1 : 0)) % all.length;
      const place = all[at], edge = canvas.getBoundingClientRect();
      tell(place, edge.left + place.left + Math.min(place.width, 40), edge.top + place.top + Math.min(place.height, 20));
    });
  };
  return { attach, hide };
})();

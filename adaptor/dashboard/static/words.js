"use strict";
// Times, durations and counts in the words of the command line.
const Words = (() => {
  const duration = (seconds) => {
    if (seconds === null || seconds === undefined) return "–";
    if (!Number.isFinite(seconds)) return "unlimited";
    if (seconds < 0) return "-" + duration(-seconds);
    if (seconds < 9.95 && seconds !== Math.trunc(seconds)) return `${seconds.toFixed(1)}s`;
    let rest = Math.round(seconds);
    const parts = [];
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
      const count = Math.floor(rest / size);
      rest -= count * size;
      if (count) parts.push(`${count}${unit}`);
    }
    return parts.slice(0, 2).join(" ") || "0s";
  };
  const two = (number) => String(number).padStart(2, "0");
  const day = (date) => `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = (seconds, now, withSeconds = false) => {
    if (seconds === null || seconds === undefined) return "–";
    const date = new Date(seconds * 1000), today = new Date(now * 1000);
    const clock = `${two(date.getHours())}:${two(date.getMinutes())}${withSeconds ? ":" + two(date.getSeconds()) : ""}`;
    return date.toDateString() === today.toDateString() ? clock : `${day(date)} ${clock}`;
  };
  const count = (number) => Math.round(number).toLocaleString("en");
  // For axes: 100k, 2.5M.
  const short = (number) => (number < 10000 ? count(number) : number < 1e6 ? `${Number((number / 1e3).toPrecision(3))}k` : `${Number((number / 1e6).toPrecision(3))}M`);
  const amount = (credits) => {
    if (credits === null || credits === undefined) return "–";
    const digits = Math.abs(credits) < 1 ? 4 : 2;
    return credits.toLocaleString("en", { maximumFractionDigits: digits });
  };
  const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
  const bags = (ids) => `bag${ids.length === 1 ? "" : "s"} ${ids.slice(0, 5).join(", ")}${ids.length > 5 ? ", …" : ""}`;
  const share = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–");
  return { duration, time, count, short, amount, plural, bags, share };
})();

// Elements from data: texts are only ever texts, never HTML.
const element = (tag, properties = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "data") Object.assign(made.dataset, value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};

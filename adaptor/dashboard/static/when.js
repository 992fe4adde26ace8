"use strict";
// Asks when a request would start; its answer in words, and for the pictures of the queues.
const When = (() => {
  const found = new Map();  // by site, with its partition: the answer there
  let views = [];

  const place = (view) => (view.partition ? `${view.site}/${view.partition}` : view.site);
  const asked = (each) => `${Words.plural(each.processors, "processor")} for ${Words.duration(each.tr)}`;
  const start = (each, view) => {
    const at = Math.max(view.observed, view.at || 0), time = (seconds) => Words.time(seconds, view.observed);
    if (each.value <= at + 1) return at > view.observed + 1 ? `at once, at ${time(at)}` : "now";
    return `about ${time(each.value)} (${time(each.low)} to ${each.high === null ? "any time" : time(each.high)})`;
  };

  const lines = (view) => {
    if (view.problem || view.never) return [view.problem || `never: ${view.never}`];
    if (view.standing === "running") return [`job ${view.job} runs`];
    if (view.standing === "ended") return [`job ${view.job} has ended`];
    const what = view.job ? `job ${view.job}` : asked(view);
    if (view.start === null) return [`${what}: no start can be foreseen: ${view.reason}`];
    return [
      `${what} ${view.job ? "starts" : "would start"} ${start(view.start, view)}`,
      `because ${view.reason}`,
      view.choices.length ? `sooner: ${view.choices.map((each) => `${asked(each)}: ${start(each.start, view)}`).join("; ")}` : "",
      view.scheduler === null ? "" : `the scheduler’s own estimate: ${Words.time(view.scheduler, view.observed)}`,
      view.record ? `record: ${view.record.right ? "" : "too little known yet: "}${view.record.held} of ${Words.plural(view.record.starts, "start")} came ${view.record.own ? "within 10m of their plan" : "within their intervals"}` : "",
      view.remarks.length ? `not known: ${view.remarks.join("; ")}` : "",
    ].filter(Boolean);
  };

  const show = (words) => document.getElementById("when-answer").replaceChildren(...words);
  const answer = (views) => {
    found.clear();
    for (const view of views) if (view.start && !found.has(place(view))) found.set(place(view), view);
    show(views.map((view, number) => {
      const [first, ...more] = lines(view);
      return element("div", {}, element("b", {}, place(view)), " ", first, ...(number ? [] : more).map((line) => element("p", { className: "muted" }, line)));
    }));
    Page.redraw();
  };

  // The heat map: the expected wait over processors and walltime, in the shades of the command line.
  const shades = [[60, "1m"], [600, "10m"], [3600, "1h"], [21600, "6h"], [86400, "1d"], [Infinity, "longer"]];
  const cell = (start, at) => {
    if (start === null) return element("td", { title: "never, or no start can be foreseen" }, "–");
    const wait = start.value - at, shade = shades.findIndex(([most]) => wait <= most);
    const words = wait <= 1 ? "now" : Words.duration(wait < 60 ? Math.ceil(wait) : 60 * Math.ceil(wait / 60));
    const end = start.high === null ? "any time" : Words.time(start.high, at);
    return element("td", { className: `heat${shade}`, title: `${Words.time(start.low, at)} to ${end}` }, words);
  };
  const table = ({ map, observed, at }) => {
    const row = (tr, number) => element("tr", {}, element("th", { scope: "row" }, Words.duration(tr)), ...map.starts[number].map((start) => cell(start, Math.max(observed, at || 0))));
    const head = element("tr", {}, element("th", { scope: "col" }, "walltime"), ...map.processors.map((each) => element("th", { scope: "col" }, Words.count(each))));
    return element("div", { className: "scrolled" }, element("table", { className: "heat" }, element("thead", {}, head), element("tbody", {}, ...map.walltimes.map(row))));
  };
  const answerMap = (views) => {
    found.clear();
    const legend = element("p", { className: "muted" }, "wait up to ", ...shades.flatMap(([, name], shade) => [element("span", { className: `heat heat${shade}` }, name), " "]));
    show([...views.map((view) => element("div", {}, element("b", {}, place(view)), view.map ? " expected wait by processors and walltime" : ` ${view.problem || view.reason}`, ...(view.map ? [table(view)] : []))), legend]);
    Page.redraw();
  };

  const ask = async (given, shown) => {
    show([element("p", { className: "muted" }, "the queue is read …")]);
    try {
      const told = await fetch(`when.json?${new URLSearchParams(given)}`, { cache: "no-store" });
      if (!told.ok) throw new Error(await told.text());
      views = await told.json();
      shown(views);
    } catch (error) {
      found.clear(); Page.redraw();
      show([element("p", { className: "bad" }, error.message)]);
    }
  };

  // The request in the picture: as wide and long as it is, from its expected start; the whisker is its interval.
  const draw = (picture, drawn, end, most, x, y) => {
    const view = found.get(picture.site);
    if (!view || !picture.steps.length || view.start.value >= end || !view.processors) return;
    const { pen, crisp, snap } = drawn, { low, value, high } = view.start;
    const left = snap(x(value)), right = Math.max(left + 2, snap(x(value + view.tr))), top = snap(y(most));
    const bottom = snap(y(Math.max(0, most - view.processors))), middle = crisp((top + bottom) / 2);
    pen.fillStyle = pen.strokeStyle = Canvas.colour("answer");
    pen.globalAlpha = .3; pen.fillRect(left, top, right - left, bottom - top); pen.globalAlpha = 1;
    pen.lineWidth = 2; pen.strokeRect(crisp(left), crisp(top), right - left - 1, Math.max(1, bottom - top - 1));
    const from = x(low), to = x(high === null ? end : high);
    pen.beginPath(); pen.moveTo(from, middle); pen.lineTo(to, middle);
    for (const at of [from, to]) { pen.moveTo(crisp(at), middle - 6); pen.lineTo(crisp(at), middle + 6); }
    pen.stroke();
    const label = view.job ? `job ${view.job}` : `${view.processors} × ${Words.duration(view.tr)}`;
    pen.font = Canvas.font(); pen.textAlign = "left"; pen.textBaseline = "top"; pen.fillStyle = Canvas.colour("text");
    if (bottom - top >= 17 && right - left >= pen.measureText(label).width + 12) pen.fillText(label, left + 6, top + 4);
  };
  // Until when the picture has to reach.
  const until = (site) => { const view = found.get(site); return view ? view.start.value + (view.tr || 0) : 0; };

  const listen = () => {
    const form = document.getElementById("when");
    form.addEventListener("submit", (event) => { event.preventDefault(); ask([...new FormData(form)].filter(([, value]) => value.trim() !== ""), answer); });
    document.getElementById("when-map").addEventListener("click", () => ask([["map", "1"]], answerMap));
  };
  return { listen, draw, until };
})();

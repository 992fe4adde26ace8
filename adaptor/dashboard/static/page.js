"use strict";
// Keeps the page as its server tells it, or shows the data that stands in it.
const Page = (() => {
  const known = {}, told = {};  // `told.first`: when all was drawn for the first time, for the benchmark
  let received = 0, lost = null, drawing = false;

  const now = () => (known.head.static || !known.head.live ? known.head.now : known.head.now + (performance.now() - received) / 1000);

  const state = () => {
    const line = document.getElementById("state"), head = known.head;
    const tell = (kind, words) => {
      line.dataset.state = kind;
      if (line.textContent !== words) line.textContent = words;
    };
    if (lost !== null) return tell("silent", `this page has had no answer from its server since ${Words.time(lost, lost, true)}`);
    if (head.static) return tell("static", `report of ${new Date(head.now * 1000).toLocaleString("en-GB")}`);
    if (head.live) return tell("live", `live · daemon on ${head.daemon.host}, ${Words.plural(head.daemon.workers, "worker")}${head.daemon.stalled ? ` · cannot write its journal: ${head.daemon.stalled}` : ""}`);
    const since = head.silent_since === null ? "no daemon is running" : `daemon silent since ${Words.time(head.silent_since, head.now, true)}`;
    return tell("silent", `${since}; ${head.problem || (head.journal ? "what the journal has is shown" : "what it told last is shown")}`);
  };

  const title = () => {
    const running = known.bags.map((row) => row.bag).filter((bag) => bag.ended === null);
    const done = running.reduce((sum, bag) => sum + bag.done, 0), all = running.reduce((sum, bag) => sum + bag.tasks, 0);
    document.title = all ? `${Math.floor((100 * done) / all)} % · ${known.head.title}` : known.head.title;
    document.getElementById("title").textContent = known.head.title;
  };

  const pictures = () => {
    const pilots = new Map(known.pilots.map((pilot) => [pilot.id, pilot]));
    document.getElementById("queues-section").hidden = !known.queues.length;
    Queue.show(known.queues, pilots, now());
    Strips.show(known.strips, pilots, now());
  };

  const redraw = () => {
    if (drawing || !known.head) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; pictures(); if (!told.first) told.first = performance.now(); });
  };

  const texts = (changed) => {
    const at = now(), parts = {
      sites: () => { Sections.sites(known.sites, at); Sections.donations(known.sites); },
      bags: () => { Sections.bags(known.bags, known.left_out, at); title(); },
      totals: () => Sections.totals(known.totals),
      pilots: () => Sections.pilots(known.pilots, at),
      why: () => Sections.why(known.why, at),
      credits: () => Sections.credits(known.credits),
    };
    for (const name of changed) if (parts[name]) parts[name]();
    if (changed.includes("details") || changed.includes("bags")) Sections.tasks(known.details, known.bags, at, known.head.live && !known.head.static);
  };

  const take = (news) => {
    Object.assign(known, news);
    if (news.head) received = performance.now();
    lost = null;
    state();
    texts(Object.keys(news));
    redraw();
    document.documentElement.dataset.shown = String(Number(document.documentElement.dataset.shown || 0) + 1);
  };

  const gone = () => { if (lost === null) lost = Date.now() / 1000; if (known.head) state(); };

  // Where a proxy holds events back, the page asks for itself.
  const poll = async () => {
    try {
      const answer = await fetch("page.json", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      take(await answer.json());
    } catch (error) { gone(); }
    setTimeout(poll, 4000);
  };

  const follow = () => {
    const events = new EventSource("events");
    const patience = setTimeout(() => { events.close(); poll(); }, 12000);
    events.onmessage = (event) => { clearTimeout(patience); take(JSON.parse(event.data)); };
    events.onerror = () => {
      gone();
      if (events.readyState === EventSource.CLOSED) { clearTimeout(patience); setTimeout(follow, 3000); }
    };
  };

  const everything = () => { if (!known.head) return; texts(["details"]); redraw(); };

  const start = () => {
    Strips.start();
    document.getElementById("find").addEventListener("input", () => Sections.bags(known.bags, known.left_out, now()));
    Queue.ranges(redraw);
    When.listen();
    const inside = document.getElementById("data");
    if (inside) take(JSON.parse(inside.textContent));
    else { follow(); setInterval(() => { if (known.head) { state(); redraw(); } }, 5000); }
    let width = window.innerWidth;
    window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; everything(); } });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", everything);
  };

  Object.assign(told, { start, redraw, known });
  return told;
})();
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", Page.start);
else Page.start();

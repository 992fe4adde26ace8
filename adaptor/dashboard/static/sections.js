"use strict";
// The parts of the page that are text: bags, pilots, failures, reasons, credits, donated nodes.
const Sections = (() => {
  const at = (id) => document.getElementById(id);
  const hide = (id, hidden) => { at(id).hidden = hidden; };
  const field = (name, value, className = "num") => element("span", { className, data: { field: name } }, value);

  const bar = (bag) => {
    const parts = [["done", bag.done], ["running", bag.running], ["failed", bag.failed], ["cancelled", bag.cancelled]];
    const shown = element("div", { className: "bar", role: "img", "aria-label": `${bag.done} of ${bag.tasks} done` });
    for (const [name, count] of parts) {
      const part = element("i", { className: name });
      part.style.width = `${(100 * count) / Math.max(1, bag.tasks)}%`;
      if (count) shown.append(part);
    }
    return shown;
  };

  const counts = (bag) => {
    const parts = [["running", bag.running], ["waiting", bag.waiting], ["blocked", bag.blocked], ["failed", bag.failed], ["cancelled", bag.cancelled], ["retried", bag.retried]];
    const line = element("span", { className: "counts" }, element("b", { data: { field: "done" } }, Words.count(bag.done)), ` of ${Words.count(bag.tasks)} done`);
    for (const [name, count] of parts) {
      if (!count) continue;
      const bad = name === "failed";
      line.append(element("span", { className: bad ? "" : "more" }, ", ", field(name, Words.count(count), bad ? "num bad" : "num"), ` ${name}`));
    }
    if (bag.mean_runtime !== null) line.append(element("span", { className: "more" }, `, ${Words.duration(bag.mean_runtime)} on average`));
    return line;
  };

  const end = (bag, first, now) => {
    if (bag.ended !== null) {
      const word = bag.state === "done" ? "done" : bag.state;
      return element("span", { className: `end${bag.state === "failed" ? " bad" : ""}` }, `${word} ${Words.time(bag.ended, now)}, after ${Words.duration(bag.ended - bag.submitted)}`);
    }
    const ahead = bag.forecast;
    if (ahead && ahead.end !== null) {
      const time = (at) => Words.time(at, now, (ahead.end.high ?? ahead.end.value) - now < 600);
      const late = ahead.deadline !== null && ahead.end.value > ahead.deadline;
      return element("span", { className: `end${late ? " bad" : ""}` }, "done ", element("b", {}, time(ahead.end.value)), ` (${time(ahead.end.low)}${ahead.end.high === null ? " or later" : `–${time(ahead.end.high)}`})`, ahead.deadline !== null ? `, deadline ${Words.time(ahead.deadline, now)}` : "");
    }
    if (bag.awaits.length) return element("span", { className: "end muted" }, `waits for ${Words.bags(bag.awaits)}`);
    return element("span", { className: "end muted" }, bag.done || bag.running ? "no forecast yet" : "waits");
  };

  const spending = (row) => {
    const line = row.credits;
    if (!line) return element("span", { className: "spending" });
    const parts = element("span", { className: "spending" }, "credits: ", field("used", Words.amount(line.used)), " used");
    if (line.reserved) parts.append(`, ${Words.amount(line.reserved)} reserved`);
    if (line.left !== null) parts.append(`, ${Words.amount(line.left)} of ${Words.amount(line.budget)} left`);
    return parts;
  };

  const first = (forecast, now) => {
    if (!forecast) return "";
    const told = `first forecast, at ${Words.time(forecast.made, now)}: end ${Words.time(forecast.end.low, now)}–${Words.time(forecast.end.high, now)}${forecast.cost === null ? "" : `, ${Words.amount(forecast.cost.low)}–${Words.amount(forecast.cost.high)} credits`}`;
    const held = { true: "held", false: "did not hold", null: "is not counted" };
    return forecast.final_end === null ? told : `${told}; the end ${held[forecast.end_held]}${forecast.cost === null ? "" : `, the cost ${held[forecast.cost_held]}`}${forecast.not_counted ? ` (${forecast.not_counted})` : ""}`;
  };

  const MANY = 6;  // Bags from which each has one line, and those that wait or have ended are folded.
  const one = (row, now) => {
    const bag = row.bag, note = bag.paused ? `pauses: ${bag.paused}` : first(row.first_forecast, now);
    const words = [element("b", {}, String(bag.id)), bag.name];
    const name = Page.known.head.static ? element("span", { className: "name" }, ...words) : element("a", { className: "name", href: `bag/${bag.id}` }, ...words);
    return element("div", { className: "bag", data: { bag: bag.id } }, name, bar(bag), end(bag, row.first_forecast, now),
      counts(bag), spending(row), note ? element("span", { className: `note ${bag.paused ? "warn" : "muted"}` }, note) : null);
  };

  // What a fold says: how many bags there are in all, and how many of those have failures.
  const fold = (name, rows, left) => {
    const all = rows.length + left[name === "wait" ? "waiting" : "ended"], failed = rows.filter(({ bag }) => bag.failed).length + (name === "ended" ? left.failed : 0);
    const words = [`${Words.count(all)} ${name === "wait" ? "wait" : "ended"}`];
    if (failed) words.push(", ", element("span", { className: "bad" }, `${Words.count(failed)} with failures`));
    if (all > rows.length) words.push(`; the newest ${Words.count(rows.length)} are here, all: adaptor status all`);
    return element("summary", {}, ...words);
  };

  const bags = (rows, left, now) => {
    const many = rows.length > MANY, words = at("find").value.trim().toLowerCase();
    at("find").hidden = !many;
    at("bags").classList.toggle("many", many);
    const found = rows.filter(({ bag }) => !words || `${bag.id} ${bag.name}`.toLowerCase().includes(words));
    const groups = { going: [], wait: [], ended: [] };
    for (const row of found) groups[row.bag.ended !== null ? "ended" : row.bag.running || row.bag.done || row.bag.paused ? "going" : "wait"].push(row);
    const listed = (name) => {
      const rows = groups[name].map((row) => one(row, now));
      if (!many || words || name === "going" || rows.length < 2) return rows;
      const before = at("bags").querySelector(`details[data-key="${name}"]`);
      const folded = element("details", { data: { key: name } }, fold(name, groups[name], left), ...rows);
      folded.open = Boolean(before && before.open);
      return [folded];
    };
    const shown = ["going", "wait", "ended"].flatMap(listed);
    if (left.running) shown.splice(groups.going.length, 0, element("p", { className: "muted" }, `${Words.plural(left.running, "more bag")} ${left.running === 1 ? "runs" : "run"}: adaptor status all`));
    const hidden = left.waiting + left.ended;
    if (hidden && (words || !many)) shown.push(element("p", { className: "muted" }, `${Words.plural(hidden, "more bag")}: adaptor status all`));
    const none = words ? `No bag is named ${words}` : "No bag was submitted yet: adaptor submit FILE";
    at("bags").replaceChildren(...(shown.length ? shown : [element("p", { className: "empty" }, none)]));
  };

  const totals = (sums) => {
    hide("totals-section", !sums);
    if (!sums) return;
    const rows = [["requests", "requests", Words.count(sums.requests)], ["donations", "donated nodes", sums.donations ? Words.count(sums.donations) : null],
      ["paid", "processor time held", Words.duration(sums.paid)], ["used", "used for results", `${Words.duration(sums.used)} (${Words.share(sums.used, sums.paid)})`],
      ["used_by_others", `used by ${sums.others.length ? Words.bags(sums.others) : "other bags"}`, sums.used_by_others ? Words.duration(sums.used_by_others) : null],
      ["wasted", "wasted", Words.duration(sums.wasted)], ["first_result", "first result after", sums.first_result === null ? null : Words.duration(sums.first_result)],
      ["turnaround", "last result after", sums.turnaround === null ? null : Words.duration(sums.turnaround)]];
    at("totals").replaceChildren(...rows.filter((row) => row[2] !== null).map(([name, words, value]) => element("div", {}, element("dt", {}, words), element("dd", { data: { field: name } }, value))));
  };

  const LEFT = new Set(["site", "state", "why", "why no more"]);
  const table = (id, headings, rows) => {
    const old = at(id), keep = old.parentElement.scrollTop;
    old.replaceChildren(element("thead", {}, element("tr", {}, ...headings.map((each) => element("th", { scope: "col", className: LEFT.has(each) ? "left" : "" }, each)))), element("tbody", {}, ...rows));
    old.parentElement.scrollTop = keep;
  };
  const cells = (...values) => values.map((value) => (value instanceof Node ? element("td", {}, value) : element("td", {}, value)));

  const opened = new Set(); // arrays of which each pilot is listed

  // The pilots of an array in one line, which opens.
  const array = (members, show) => {
    const key = members[0].array, ids = members.map((pilot) => pilot.id), states = new Map();
    for (const { state } of members) states.set(state, (states.get(state) || 0) + 1);
    const sum = (field) => members.reduce((total, pilot) => total + pilot[field], 0);
    const first = (field) => { const known = members.map((pilot) => pilot[field]).filter((at) => at !== null); return known.length ? Math.min(...known) : null; };
    const { site, partition, p, tr, reason } = members[0];
    const row = element("tr", { tabIndex: 0, className: "array", title: "show or hide its pilots", data: { array: key } },
      ...cells(`${opened.has(key) ? "▾" : "▸"} ${Math.min(...ids)}–${Math.max(...ids)}`), ...[[site, partition].filter(Boolean).join(", "), [...states].map(([state, count]) => `${count} ${state}`).join(", ")].map((text) => element("td", { className: "left" }, text)),
      ...cells(`${members.length} × ${Words.count(p)}`, Words.duration(tr), Words.time(first("predicted_start"), show.now, true), Words.time(first("started"), show.now, true), ""),
      element("td", { data: { field: "used" } }, Words.duration(sum("used"))), element("td", { data: { field: "wasted" } }, Words.duration(sum("wasted"))),
      element("td", { className: "words" }, element("div", { className: "two-lines", title: reason }, reason)));
    const toggle = () => { if (!opened.delete(key)) opened.add(key); show.again(); };
    row.addEventListener("click", toggle);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
    return row;
  };

  const pilots = (records, now) => {
    hide("pilots-section", !records.length);
    const groups = [];
    for (const pilot of [...records].reverse()) {
      const last = groups[groups.length - 1];
      if (last && pilot.array !== null && last[0].array === pilot.array) last.push(pilot); else groups.push([pilot]);
    }
    const one = (pilot) => {
      const words = pilot.note || pilot.end_reason || pilot.reason;
      const why = element("td", { className: "words" }, element("div", { className: "two-lines", title: words }, words));
      const row = element("tr", { tabIndex: 0, data: { pilot: pilot.id, state: pilot.state } },
        ...cells(String(pilot.id)), ...[[pilot.site, pilot.node || pilot.partition].filter(Boolean).join(", "), pilot.state].map((text) => element("td", { className: "left" }, text)), ...cells(Words.count(pilot.p), Words.duration(pilot.tr),
          Words.time(pilot.predicted_start, now, true), Words.time(pilot.started, now, true), Words.time(pilot.ended, now, true)),
        element("td", { data: { field: "used" } }, Words.duration(pilot.used)), element("td", { data: { field: "wasted" } }, Words.duration(pilot.wasted)), why);
      const pick = (chosen) => { Queue.pick(pilot.partition ? `${pilot.site}/${pilot.partition}` : pilot.site, chosen); Page.redraw(); };
      row.addEventListener("focus", () => pick(pilot.id));
      row.addEventListener("blur", () => pick(null));
      row.addEventListener("pointerenter", () => pick(pilot.id));
      row.addEventListener("pointerleave", () => pick(null));
      return row;
    };
    const show = { now, again: () => pilots(records, now) };
    const rows = groups.flatMap((members) => members.length === 1 ? members.map(one) : [array(members, show), ...(opened.has(members[0].array) ? members.map(one) : [])]);
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.pilot : undefined;
    table("pilots", ["pilot", "site", "state", "processors", "walltime", "predicted", "started", "ended", "used", "wasted", "why"], rows);
    const again = focused && at("pilots").querySelector(`[data-pilot="${focused}"]`);
    if (again) again.focus({ preventScroll: true });
  };

  const failures = (details) => {
    const open = new Set([...document.querySelectorAll("#tasks details[open]")].map((each) => each.dataset.key));
    return details.failures.map((failure) => {
      const key = `${details.bag} ${failure.words}`;
      const where = `newest: task ${failure.task}${failure.node ? ` on ${failure.node}` : ""}`;
      const shown = element("details", { data: { key } }, element("summary", {}, element("b", {}, Words.count(failure.count)), failure.words, " ", element("span", { className: "muted" }, where)),
        failure.stderr ? element("pre", { tabIndex: 0 }, failure.stderr) : element("p", { className: "muted" }, "It wrote nothing on stderr that can be read from here."));
      shown.open = open.has(key) || (Page.known.head.static && Boolean(failure.stderr));
      return element("li", {}, shown);
    });
  };

  const learned = (details) => {
    if (!details.learned.length) return "";
    const told = details.learned.map((known) => `${details.learned.length > 1 ? `${known.site}: ` : ""}${Words.duration(known.estimate)}`).join(", ");
    return `learned estimate ${told}${details.walltime ? `; newest walltime asked ${Words.duration(details.walltime)}` : ""}`;
  };

  const tasks = (all, rows, now, moving) => {
    const shown = all.filter((details) => details.progress.length || details.failures.length);
    hide("tasks-section", !shown.length);
    const draw = [];
    const found = shown.map((details) => {
      const row = rows.find((each) => each.bag.id === details.bag), bag = row ? row.bag : null;
      const runs = moving && bag && bag.ended === null;
      const charts = element("div", { className: "charts" });
      if (details.progress.length > 1) {
        const home = element("div", { className: "chart" }, element("p", {}, element("b", {}, "Results over time")));
        charts.append(home); draw.push(() => Charts.progress(home, details, bag, now, runs));
      }
      if (details.runtimes.length) {
        const home = element("div", { className: "chart" }, element("p", {}, element("b", {}, "Runtimes of tasks"), " ", learned(details)));
        charts.append(home); draw.push(() => Charts.runtimes(home, details));
      }
      const rest = details.other_failures > 0 ? [element("li", { className: "muted" }, `and ${Words.plural(details.other_failures, "task")} that failed in other ways`)] : [];
      return element("div", { className: "task-bag", data: { tasks: details.bag } }, element("h3", {}, `bag ${details.bag}${bag && bag.name ? ` ${bag.name}` : ""}`), charts,
        details.failures.length ? element("ul", { className: "failures" }, ...failures(details), ...rest) : null);
    });
    at("tasks").replaceChildren(...found);
    draw.forEach((each) => each());
  };

  const why = (lines, now) => {
    hide("why-section", !lines.length);
    const list = at("why"), top = list.scrollTop;
    list.replaceChildren(...[...lines].reverse().map((line) => element("li", {},
      element("time", { dateTime: new Date(line.time * 1000).toISOString() }, Words.time(line.time, now, true)),
      element("span", { className: "about" }, [...new Set([line.site, line.subject])].filter(Boolean).join(", ")),
      element("span", { className: "kind" }, line.kind), element("span", { className: "text" }, line.text))));
    list.scrollTop = top;
  };

  // Of the budget, or of all that is spent and reserved: results, waste, reservations.
  const spent = (line) => {
    const whole = line.budget !== null ? Math.max(line.budget, line.used + line.reserved) : line.used + line.reserved, wasted = line.wasted || 0;
    const shown = element("div", { className: "bar", role: "img", "aria-label": `${Words.share(line.used, whole)} used, ${Words.share(line.reserved, whole)} reserved` });
    for (const [name, part] of [["done", line.used - wasted], ["failed", wasted], ["running", line.reserved]]) {
      const piece = element("i", { className: name });
      piece.style.width = `${whole > 0 ? (100 * part) / whole : 0}%`;
      shown.append(piece);
    }
    return shown;
  };

  const credits = (told) => {
    const lines = [...told.sites, ...told.bags].filter((line) => line.used || line.reserved || line.budget !== null);
    hide("credits-section", !lines.length);
    table("credits", ["of", "results, waste, reserved", "used", "of that wasted", "reserved", "left", "budget"], lines.map((line) => element("tr", { data: line.bag !== null ? { credits: line.bag } : {} },
      ...cells(line.bag !== null ? `bag ${line.bag}` : `${line.site}${line.period ? ` in ${line.period}` : ""}`, spent(line), Words.amount(line.used), Words.amount(line.wasted), Words.amount(line.reserved), Words.amount(line.left), Words.amount(line.budget)))));
  };

  const donations = (sites) => {
    const given = sites.filter((site) => site.donation);
    hide("donations-section", !given.length);
    table("donations", ["site", "nodes now", "idle beside", "donations", "held", "used", "lost", "reclaims", "free after (median)", "why no more"], given.map(({ name, donation }) => element("tr", {},
      ...cells(name, Words.count(donation.nodes), donation.idle === null ? "–" : Words.count(donation.idle), Words.count(donation.donations), Words.duration(donation.held), Words.duration(donation.used), Words.duration(donation.lost), Words.count(donation.reclaims), Words.duration(donation.latency)),
      element("td", { className: "words" }, donation.reason))));
  };

  const sites = (all, now) => {
    at("sites").replaceChildren(...all.map((site) => element("li", { data: { site: site.name } }, element("b", {}, site.name), " ",
      site.problem ? element("span", { className: "problem", title: site.problem }, site.since !== null ? `silent since ${Words.time(site.since, now)}` : site.problem)
        : `${site.running} running, ${site.queued} queued`)));
  };

  return { bags, totals, pilots, tasks, why, credits, donations, sites };
})();

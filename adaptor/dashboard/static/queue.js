"use strict";
// Time × processors at a site: others' jobs from below, our pilots in the holes above them.
const Queue = (() => {
  const HEIGHT = 270, TOP = 20, BOTTOM = 24, LEFT = 40, RIGHT = 8;
  const RANGES = [["auto", "fit"], [3600, "1 h"], [21600, "6 h"], [86400, "24 h"], ["all", "all"]];
  let range = "auto";
  const kept = new Map();  // by site: what is drawn there

  const horizon = (picture, now) => {
    if (range === "all") return picture.end;
    if (range !== "auto") return Math.max(now + range, now + 60);
    // A pilot that may run for a day need not be shown to its end: twice the time that it has run tells enough.
    const far = (box) => (box.state === "running" ? Math.min(box.end, now + Math.max(1800, 2 * (now - box.start))) : box.end);
    const own = Math.max(now, When.until(picture.site), ...picture.boxes.map(far));
    const edge = picture.steps.map((step) => step[0]).filter((time) => time > now);
    const wanted = own > now ? now + 1.35 * (own - now) : (edge[Math.min(3, edge.length - 1)] || now) + 1800;
    return Math.max(own, Math.min(picture.end, Math.max(now + 1800, wanted)));
  };

  const sentence = (box, pilot, now) => {
    const asked = `${box.p} × ${Words.duration(pilot ? pilot.tr : box.end - box.start)}`;
    const lines = [`pilot ${box.pilot}${pilot && pilot.node ? ` on ${pilot.node}` : ""}: ${asked}, ${box.state}`];
    if (pilot && pilot.started !== null) {
      lines.push(`started ${Words.time(pilot.started, now, true)}` + (pilot.predicted_start !== null ? `, predicted ${Words.time(pilot.predicted_start, now, true)}` : ""));
      lines.push(`used ${Words.duration(box.used)}, ${pilot.ended === null ? "no result yet" : "wasted"} ${Words.duration(box.wasted)} of processor time`);
    } else {
      lines.push(`starts ${Words.time(box.start, now, true)}` + (box.latest !== null ? `, ${Words.time(box.latest, now, true)} with the usual delay` : ""));
    }
    if (pilot && pilot.reason) lines.push(pilot.reason);
    if (pilot && pilot.note) lines.push(pilot.note);
    return lines.join("\n");
  };

  const area = (pen, points, base) => {
    pen.beginPath();
    points.forEach(([left, top], number) => { if (number) { pen.lineTo(left, points[number - 1][1]); pen.lineTo(left, top); } else { pen.moveTo(left, top); } });
    for (let number = points.length - 1; number >= 0; number -= 1) {
      const [left, top] = base[number];
      if (number < points.length - 1) pen.lineTo(base[number + 1][0], top);
      pen.lineTo(left, top);
    }
    pen.closePath();
  };

  const draw = (canvas, picture, pilots, now) => {
    const drawn = Canvas.fit(canvas, HEIGHT), { pen, crisp, snap } = drawn;
    const begin = picture.begin, end = horizon(picture, now), most = Math.max(1, picture.processors, ...picture.boxes.map((box) => box.bottom + box.p));
    const frame = { left: LEFT, top: TOP, width: drawn.width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
    const x = (time) => frame.left + (frame.width * (Math.min(end, Math.max(begin, time)) - begin)) / (end - begin);
    const y = (count) => frame.top + frame.height * (1 - count / most);
    pen.fillStyle = Canvas.colour("hole"); pen.fillRect(frame.left, frame.top, frame.width, frame.height);
    const first = picture.steps.length ? picture.steps[0][0] : now;

    // What others held at the looks before the last one.
    if (picture.past.length > 1) {
      const past = picture.past.map(([time, held]) => [x(time), y(held)]);
      past.push([x(first), past[past.length - 1][1]]);
      area(pen, past, past.map(([left]) => [left, y(0)]));
      pen.fillStyle = Canvas.colour("others-past"); pen.fill();
    }
    const unseen = x(picture.past.length > 1 ? picture.past[0][0] : picture.steps.length ? first : end);
    if (unseen > frame.left + 1) {
      pen.fillStyle = Canvas.colour("faint"); pen.fillRect(frame.left, frame.top, unseen - frame.left, frame.height);
    }
    Canvas.timeAxis(drawn, frame, begin, end, now, x);
    const steps = picture.steps.filter((step, number) => step[0] < end || number === 0);
    if (steps.length) {
      const last = steps[steps.length - 1], rows = [...steps, [end, last[1], last[2]]];
      const ground = rows.map((step) => [x(step[0]), y(0)]);
      const running = rows.map((step) => [x(step[0]), y(step[1])]);
      const planned = rows.map((step) => [x(step[0]), y(step[1] + step[2])]);
      area(pen, running, ground); pen.fillStyle = Canvas.colour("others"); pen.fill();
      area(pen, planned, running); pen.fillStyle = Canvas.hatch(pen, "planned"); pen.fill();
    }
    pen.textAlign = "right"; pen.textBaseline = "middle"; pen.font = Canvas.font(); pen.lineWidth = 1;
    for (const count of Canvas.countTicks(most, frame.height)) {
      pen.fillStyle = Canvas.colour("muted"); pen.fillText(Words.short(count), frame.left - 6, y(count));
      pen.strokeStyle = Canvas.colour("grid"); pen.globalAlpha = .6;
      pen.beginPath(); pen.moveTo(frame.left, crisp(y(count))); pen.lineTo(frame.left + frame.width, crisp(y(count))); pen.stroke();
      pen.globalAlpha = 1;
    }

    const places = [];
    for (const box of picture.boxes) {
      if (box.start >= end) continue;
      const left = snap(x(box.start)), right = Math.max(left + 2, snap(x(box.end)));
      const top = snap(y(box.bottom + box.p)), bottom = snap(y(box.bottom));
      const place = { left, top, width: right - left, height: bottom - top, box, text: sentence(box, pilots.get(box.pilot), now) };
      places.push(place);
      const started = !["queued", "submitting"].includes(box.state);
      pen.fillStyle = Canvas.colour("asked"); pen.fillRect(left, top, place.width, place.height);
      if (started) {
        const until = Math.min(right, Math.max(left + 1, snap(x(Math.min(now, box.end))))), all = box.used + box.wasted;
        const high = all > 0 ? Math.round((place.height * box.used) / all) : 0;
        pen.fillStyle = Canvas.colour("held"); pen.fillRect(left, top, until - left, place.height);
        pen.fillStyle = Canvas.colour("result"); pen.fillRect(left, bottom - high, until - left, high);
      }
      const chosen = picked.get(picture.site) === box.pilot;
      pen.strokeStyle = Canvas.colour("ours"); pen.lineWidth = chosen ? 2.5 : 1;
      pen.setLineDash(started ? [] : [4, 3]);
      // Outlines of very low boxes would hide what is in them.
      pen.globalAlpha = chosen || place.height >= 6 ? 1 : 0.35;
      pen.strokeRect(crisp(left), crisp(top), Math.max(1, place.width - 1), Math.max(1, place.height - 1));
      pen.globalAlpha = 1;
      pen.setLineDash([]);
      if (box.latest !== null && box.latest > box.start && !started) {
        const middle = crisp((top + bottom) / 2), far = x(box.latest);
        pen.lineWidth = 1; pen.beginPath(); pen.moveTo(left, middle); pen.lineTo(far, middle);
        pen.moveTo(crisp(far), middle - 4); pen.lineTo(crisp(far), middle + 4); pen.stroke();
      }
      const label = `${box.pilot}  ${box.p} × ${Words.duration((pilots.get(box.pilot) || { tr: box.end - box.start }).tr)}`;
      pen.font = Canvas.font(); pen.textAlign = "left"; pen.textBaseline = "top";
      // Beside what has passed, where the ground is light; else nowhere.
      const from = started ? Math.max(left, x(Math.min(now, box.end))) : left;
      if (place.height >= 17 && right - from >= pen.measureText(label).width + 12) {
        pen.fillStyle = Canvas.colour("text");
        pen.fillText(label, from + 6, top + 4);
      }
    }
    When.draw(picture, drawn, end, most, x, y);
    pen.strokeStyle = Canvas.colour("line"); pen.lineWidth = 1;
    pen.strokeRect(crisp(frame.left), crisp(frame.top), frame.width - 1, frame.height - 1);
    return places;
  };

  const picked = new Map();

  const site = (picture) => {
    let known = kept.get(picture.site);
    if (known) return known;
    const canvas = element("canvas", { tabIndex: 0, role: "img" });
    const title = element("p");
    known = { canvas, title, places: [], node: element("div", { className: "queue", data: { site: picture.site } }, title, canvas) };
    kept.set(picture.site, known);
    Tip.attach(canvas, () => known.places, (left, top) => known.places.findLast((place) => left >= place.left && left <= place.left + place.width && top >= place.top && top <= place.top + place.height) || null,
      (place) => {
        const chosen = place ? place.box.pilot : null;
        if (picked.get(picture.site) === chosen) return;
        picked.set(picture.site, chosen);
        Page.redraw();
      });
    return known;
  };

  const show = (pictures, pilots, now) => {
    const home = document.getElementById("queues");
    const drawn = pictures.map((picture) => {
      const known = site(picture), step = picture.steps.findLast((each) => each[0] <= now) || picture.steps[0];
      const free = step ? picture.processors - step[1] - step[2] : 0;
      const ours = picture.boxes.filter((box) => box.start <= now && box.end > now && box.state === "running").reduce((sum, box) => sum + box.p, 0);
      known.title.replaceChildren(element("b", {}, picture.site), picture.observed === null ? "its queue was not read since the daemon started; it is, while tasks wait"
        : `${Words.count(picture.processors)} processors: ${Words.count(step[1])} others’, ${Words.count(ours)} ours, ${Words.count(Math.max(0, free - ours))} free; read ${Words.duration(Math.max(0, Math.round(now - picture.observed)))} ago`);
      known.canvas.setAttribute("aria-label", `Queue of ${picture.site}: ${Words.plural(picture.boxes.length, "pilot")} of ours; arrow keys tell of each`);
      return known.node;
    });
    if (home.children.length !== drawn.length || drawn.some((node, number) => home.children[number] !== node)) home.replaceChildren(...drawn);
    for (const picture of pictures) {
      const known = kept.get(picture.site);
      known.places = draw(known.canvas, picture, pilots, now);
    }
  };

  const ranges = (changed) => {
    document.getElementById("ranges").replaceChildren(...RANGES.map(([value, words]) => {
      const input = element("input", { type: "radio", name: "range", checked: value === range, value: String(value) });
      input.addEventListener("change", () => { range = value; changed(); });
      return element("label", {}, input, element("span", {}, words));
    }));
  };
  const pick = (siteName, pilot) => { picked.set(siteName, pilot); };
  return { show, ranges, pick };
})();

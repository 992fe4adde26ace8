"use strict";
// What ran inside the pilots: a strip for each, a lane for each processor.
const Strips = (() => {
  const TOP = 18, BOTTOM = 24, LEFT = 116, RIGHT = 8, GAP = 7;
  const USES = { result: "became the result", running: "runs", failed: "failed", cut: "cut by its pilot’s end", cancelled: "cancelled", replica: "another attempt was faster" };
  let places = [];

  const TALLEST = 1000;  // of all strips together, unless they would get too low to be seen

  const height = (p) => Math.max(13, Math.min(72, p * 5));

  const shown = (strips, pilots, now) => {
    const rows = [], all = strips.filter((strip) => pilots.has(strip.pilot));
    const wanted = all.reduce((sum, strip) => sum + height(pilots.get(strip.pilot).p), 0);
    const scale = Math.min(1, TALLEST / Math.max(1, wanted)), gap = scale < 0.5 ? 3 : GAP;
    let top = TOP;
    for (const strip of all) {
      const pilot = pilots.get(strip.pilot), tall = Math.max(11, Math.round(scale * height(pilot.p)));
      rows.push({ strip, pilot, top, height: tall, end: pilot.ended === null ? Math.min(now, pilot.started + pilot.tr) : pilot.ended });
      top += tall + gap;
    }
    return { rows, bottom: top - gap };
  };

  const busy = (drawn, row, x) => {
    // From below: results, then what runs, then all that became none.
    const order = ["result", "running", "replica", "cancelled", "cut", "failed"], parts = new Map();
    for (const [use, begin, width, processors] of row.strip.busy) {
      processors.forEach((held, number) => {
        const part = parts.get(number) || { time: begin + number * width, width };
        part[use] = held; parts.set(number, part);
      });
    }
    for (const part of parts.values()) {
      let base = row.top + row.height;
      const left = drawn.snap(x(part.time)), right = drawn.snap(x(part.time + part.width));
      for (const use of order) {
        if (!part[use]) continue;
        const tall = Math.min(base - row.top, (row.height * part[use]) / row.pilot.p);
        drawn.pen.fillStyle = Canvas.colour(use);
        drawn.pen.fillRect(left, base - tall, Math.max(0.5, right - left), tall);
        base -= tall;
      }
    }
  };

  const spans = (drawn, row, x, now) => {
    const lane = row.height / row.pilot.p, gap = lane >= 4 ? 0.75 : 0;
    for (const [at, processors, start, end, use, bag, task] of row.strip.spans) {
      // Clocks of nodes may differ by a little: what then seems to have no lane of its own lies in the last one.
      const lowest = Math.min(at, Math.max(0, row.pilot.p - processors));
      const left = x(start), right = x(end === null ? now : end), top = row.top + lane * lowest;
      const wide = Math.max(0.6, right - left - (right - left > 3 ? 0.75 : 0));
      drawn.pen.fillStyle = Canvas.colour(use);
      drawn.pen.fillRect(left, top, wide, lane * processors - gap);
      if (places.length < 5000) {
        const took = (end === null ? now : end) - start;
        places.push({ left, top, width: Math.max(wide, 2), height: lane * processors, text: `bag ${bag}, task ${task}: ${USES[use]}\n${Words.time(start, now, true)}, ${Words.duration(took)}${processors > 1 ? ` on ${processors} processors` : ""}, in pilot ${row.pilot.id}` });
      }
    }
  };

  const show = (strips, pilots, now) => {
    const canvas = document.getElementById("strips"), { rows, bottom } = shown(strips, pilots, now);
    document.getElementById("strips-section").hidden = !rows.length;
    if (!rows.length) return;
    const drawn = Canvas.fit(canvas, bottom + BOTTOM), { pen } = drawn;
    const begin = Math.min(...rows.map((row) => row.pilot.started)), last = Math.max(...rows.map((row) => row.end));
    const end = last + Math.max(2, 0.02 * (last - begin));
    const frame = { left: LEFT, top: TOP, width: drawn.width - LEFT - RIGHT, height: bottom - TOP };
    const x = (time) => frame.left + (frame.width * (Math.min(end, Math.max(begin, time)) - begin)) / (end - begin);
    Canvas.timeAxis(drawn, frame, begin, end, now, x);
    places = [];
    for (const row of rows) {
      const left = drawn.snap(x(row.pilot.started)), right = Math.max(left + 1, drawn.snap(x(row.end)));
      pen.fillStyle = Canvas.colour("idle"); pen.fillRect(left, row.top, right - left, row.height);
      if (row.strip.busy.length) busy(drawn, row, x);
      spans(drawn, row, x, now);
      pen.textAlign = "right"; pen.textBaseline = "middle"; pen.font = Canvas.font();
      pen.fillStyle = Canvas.colour("muted");
      pen.fillText(`${row.pilot.p} × ${Words.duration(row.pilot.tr)}`, frame.left - 8, row.top + row.height / 2);
      pen.fillStyle = Canvas.colour("text"); pen.textAlign = "left";
      pen.fillText(`${row.pilot.node ? row.pilot.node : row.pilot.id}`, 2, row.top + row.height / 2);
    }
    canvas.setAttribute("aria-label", `${Words.plural(rows.length, "pilot")} with what ran in them; arrow keys tell of each attempt`);
  };

  const start = () => Tip.attach(document.getElementById("strips"), () => places,
    (left, top) => places.find((place) => left >= place.left && left <= place.left + place.width && top >= place.top && top < place.top + place.height) || null, () => {});
  return { show, start };
})();

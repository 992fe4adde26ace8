"use strict";
// Small charts of a bag's tasks, by uPlot.
const Charts = (() => {
  const HEIGHT = 160;
  const made = new Map();  // by bag and kind

  const axis = (more) => ({ stroke: Canvas.colour("muted"), font: Canvas.font(), grid: { stroke: Canvas.colour("grid"), width: 1 }, ticks: { stroke: Canvas.colour("grid"), width: 1, size: 4 }, ...more });

  const chart = (key, home, options, data) => {
    const known = made.get(key);
    if (known) known.destroy();
    made.set(key, new uPlot({ width: Math.max(200, home.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [8, 26, 0, 0], ...options }, data, home));
  };

  const progress = (home, details, bag, now, moving) => {
    const steps = [...details.progress];
    if (moving && steps.length) steps.push([now, steps[steps.length - 1][1]]);
    const times = steps.map((step) => step[0]), counts = steps.map((step) => step[1]);
    const end = bag && bag.forecast && bag.forecast.end !== null && bag.forecast.end.high !== null ? bag.forecast.end : null;
    const last = end ? end.high : times[times.length - 1];
    chart(`progress ${details.bag}`, home, {
      scales: { x: { time: true, range: () => [times[0], Math.max(last, times[0] + 1)] }, y: { range: () => [0, Math.max(1, bag ? bag.tasks : counts[counts.length - 1])] } },
      series: [{}, { stroke: Canvas.colour("result"), width: 1.5, fill: Canvas.colour("asked"), paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
      axes: [axis({ size: 26, gap: 2, space: 70, values: (_, ticks) => ticks.map((tick) => Words.time(tick, tick, times[times.length - 1] - times[0] < 600)) }), axis({ size: 44, gap: 4, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? Words.short(tick) : "")) })],
      hooks: { draw: [(plot) => {
        if (!end) return;
        const low = plot.valToPos(end.low, "x", true), high = plot.valToPos(end.high, "x", true), at = plot.valToPos(end.value, "x", true);
        const { top, height: tall } = plot.bbox;
        plot.ctx.save(); plot.ctx.globalAlpha = .18; plot.ctx.fillStyle = Canvas.colour("accent"); plot.ctx.fillRect(low, top, high - low, tall);
        plot.ctx.globalAlpha = 1; plot.ctx.strokeStyle = Canvas.colour("accent"); plot.ctx.setLineDash([4, 3]); plot.ctx.beginPath(); plot.ctx.moveTo(at, top); plot.ctx.lineTo(at, top + tall); plot.ctx.stroke(); plot.ctx.restore();
      }] },
    }, [times, counts]);
  };

  const runtimes = (home, details) => {
    const bins = details.runtimes, ratio = bins.length > 1 && bins[0][1] / bins[0][0] > 1.001 && Math.abs(bins[0][1] / bins[0][0] - bins[1][1] / bins[1][0]) < 1e-6;
    const place = ratio ? Math.log : (value) => value, back = ratio ? Math.exp : (value) => value;
    const marks = details.learned.map((known) => ({ at: known.estimate, words: "estimate" }));
    if (details.walltime) marks.push({ at: details.walltime, words: "walltime" });
    const low = place(bins[0][0]), high = place(bins[bins.length - 1][1]), wide = Math.max(1e-9, high - low);
    // A mark far to the right would squeeze all bars: it is then named, not drawn to scale.
    const near = marks.filter((mark) => place(mark.at) <= high + 1.5 * wide && place(mark.at) >= low - wide);
    const right = Math.max(high, ...near.map((mark) => place(mark.at)));
    const round = [0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 86400, 864000].map(Math.log);
    const margin = 0.03 * Math.max(1e-9, right - low);
    const least = bins.length === 1 ? 0.5 * (bins[0][0] || 1) : margin;
    chart(`runtimes ${details.bag}`, home, {
      scales: { x: { time: false, range: () => [low - least, right + least] }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.08)] } },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [axis({ size: 26, gap: 2, space: 60, ...(ratio ? { splits: (_, __, from, to) => round.filter((each) => each >= from && each <= to) } : {}), values: (_, ticks) => ticks.map((tick) => { const value = back(tick); return value < 0 ? "" : value < 60 ? `${Number(value.toPrecision(3))}s` : Words.duration(value); }) }), axis({ size: 44, gap: 4, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? Words.short(tick) : "")) })],
      hooks: { draw: [(plot) => {
        const { ctx, bbox } = plot, ground = bbox.top + bbox.height;
        ctx.save();
        ctx.fillStyle = Canvas.colour("result");
        for (const [from, to, count] of bins) {
          if (!count) continue;
          const left = plot.valToPos(place(from), "x", true), until = plot.valToPos(place(to), "x", true), top = plot.valToPos(count, "y", true);
          ctx.fillRect(Math.round(left) + 1, top, Math.max(2, Math.round(until) - Math.round(left) - 1), ground - top);
        }
        ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`; ctx.textBaseline = "top";
        near.forEach((mark, number) => {
          const at = Math.round(plot.valToPos(place(mark.at), "x", true)) + 0.5;
          ctx.strokeStyle = ctx.fillStyle = Canvas.colour(mark.words === "walltime" ? "muted" : "failed");
          ctx.setLineDash(mark.words === "walltime" ? [3, 3] : []);
          ctx.beginPath(); ctx.moveTo(at, bbox.top); ctx.lineTo(at, ground); ctx.stroke();
          ctx.textAlign = at > bbox.left + bbox.width / 2 ? "right" : "left";
          ctx.fillText(mark.words, at + (ctx.textAlign === "right" ? -5 : 5) * devicePixelRatio, bbox.top + 14 * number * devicePixelRatio);
        });
        ctx.restore();
      }] },
    }, [bins.map((bin) => place((bin[0] + bin[1]) / 2)), bins.map((bin) => bin[2])]);
  };

  return { progress, runtimes };
})();

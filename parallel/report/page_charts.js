// The page's charts: timeline, stacked bars, curves. Each returns an SVG element.
// One row a device, of several ranks one more for the collectives of each; a span that lies within
// another is drawn over its lower part.
function timeline(run, width, zoom, show) {
  const top = 22, row = 34, spans = run.timeline,
        left = Math.max(64, ...run.lanes.map((name) => 8 * name.length));
  if (!spans.length) return html('p', {class: 'soft'}, 'no spans');
  const from = spans.reduce((least, s) => Math.min(least, s.begin), Infinity),
        to = spans.reduce((most, s) => Math.max(most, s.begin + s.length), from);
  const wide = Math.max(width * zoom, 240), high = top + row * run.lanes.length + 6,
        scale = (wide - left - 8) / Math.max(to - from, 1e-9);
  const picture = svg(
      'svg', {width: wide, height: high, role: 'img', 'aria-label': 'Timeline of ' + runName(run)});
  for (const t of ticks(to - from, Math.max(2, Math.floor(wide / 130)))) {
    const x = left + t * scale;
    picture.append(svg('line', {x1: x, x2: x, y1: top - 4, y2: high, class: 'axis'}));
    if (x + 60 < wide) picture.append(svg('text', {x: x + 3, y: 12, class: 'soft'}, time(t)));
  }
  run.lanes.forEach((name, i) => picture.append(svg('text', {x: 0, y: top + i * row + 20}, name)));
  const open = run.lanes.map(() => []);
  for (const s of spans) {
    const stack = open[s.lane];
    while (stack.length && stack[stack.length - 1] <= s.begin) stack.pop();
    const inset = Math.min(stack.length, 3) * 6;
    stack.push(s.begin + s.length);
    const bar = svg('rect', {
      x: left + (s.begin - from) * scale,
      y: top + s.lane * row + inset,
      width: Math.max(s.length * scale, 0.75),
      height: row - 8 - inset,
      fill: colour(tintOf(s.phase)),
      class: 'span',
      tabindex: 0,
      'data-phase': s.phase
    });
    const text = s.name + ' · ' + run.lanes[s.lane] +
        (s.replica >= 0 ? ' · replica ' + s.replica : '') + ' · step ' + s.step + ' · ' +
        time(s.length) + (s.bytes ? ' · ' + bytes(s.bytes) : '') +
        (s.cached ? ' · cached ' + bytes(s.cached) : '') + (s.call ? ' · call ' + s.call : '');
    bar.append(svg('title', {}, text));
    for (const event of ['click', 'focus']) bar.addEventListener(event, () => show(text));
    picture.append(bar);
  }
  return picture;
}

// Rows of stacked bars: [{name, parts: [{value, tint, title}], mark, text}].
function bars(rows, width, label) {
  const left = 64, row = 44,
        most = Math.max(
            1e-300,
            ...rows.map(
                (r) => Math.max(r.mark || 0, r.parts.reduce((sum, p) => sum + p.value, 0))));
  const scale = (width - left - 8) / most;
  const picture = svg('svg', {width, height: row * rows.length, role: 'img', 'aria-label': label});
  rows.forEach((r, i) => {
    let x = left;
    picture.append(svg('text', {x: 0, y: i * row + 19}, r.name));
    for (const p of r.parts) {
      const length = p.value * scale;
      if (length > 0)
        picture.append(
            svg('rect', {x, y: i * row + 4, width: length, height: 20, fill: colour(p.tint)},
                svg('title', {}, p.title)));
      x += length;
    }
    const at = left + r.mark * scale;
    if (r.mark)
      picture.append(svg('line', {
        x1: at,
        x2: at,
        y1: i * row + 1,
        y2: i * row + 28,
        stroke: colour('text'),
        'stroke-width': 2
      }));
    picture.append(svg('text', {x: left, y: i * row + 38, class: 'soft'}, r.text));
  });
  return picture;
}

// Lines over the number of devices: [{name, tint, dashed, points: [[n, value]]}].
function curve(series, width) {
  const left = 44, bottom = 34, top = 10, high = 240;
  const all = series.flatMap((s) => s.points);
  const most = Math.max(1.05, ...all.map((p) => p[1] * 1.05)),
        devices = Math.max(2, ...all.map((p) => p[0]));
  const x = (n) => left + (n - 1) / (devices - 1) * (width - left - 20),
        y = (v) => top + (1 - v / most) * (high - top - bottom);
  const picture = svg(
      'svg',
      {width, height: high, role: 'img', 'aria-label': 'Efficiency over the number of devices'});
  for (const t of ticks(most, 5)) {
    picture.append(
        svg('line', {x1: left, x2: width - 8, y1: y(t), y2: y(t), class: 'axis'}),
        svg('text', {x: 0, y: y(t) + 4, class: 'soft'}, number(100 * t, 0) + ' %'));
  }
  for (let n = 1; n <= devices; ++n)
    picture.append(
        svg('text', {x: x(n), y: high - 14, 'text-anchor': 'middle', class: 'soft'}, String(n)));
  picture.append(
      svg('text', {x: width - 8, y: high - 1, 'text-anchor': 'end', class: 'soft'}, 'devices'));
  for (const s of series) {
    const path = s.points.map((p, i) => (i ? 'L' : 'M') + x(p[0]) + ' ' + y(p[1])).join('');
    const dashes = s.dashed ? {'stroke-dasharray': '5 4'} : {};
    picture.append(svg(
        'path',
        Object.assign({d: path, fill: 'none', stroke: colour(s.tint), 'stroke-width': 2}, dashes)));
    for (const p of s.dashed ? [] : s.points) {
      const text = s.name + ', ' + several(p[0], 'device') + ': ' + percent(p[1]);
      picture.append(
          svg('circle', {cx: x(p[0]), cy: y(p[1]), r: 4, fill: colour(s.tint)},
              svg('title', {}, text)));
    }
    const last = s.points[s.points.length - 1];
    if (!s.dashed &&
        series.some(
            (o) =>
                o !== s && !o.dashed && o.tint === s.tint))  // of one colour: the name says which
      picture.append(svg(
          'text', {x: x(last[0]), y: y(last[1]) - 7, 'text-anchor': 'end', class: 'soft'}, s.name));
  }
  return picture;
}

// The page's sections, from the data of the report.
const main = document.querySelector('main');
function section(title, ...children) {
  const s = html('section', {}, html('h2', {}, title), ...children);
  main.append(s);
  return s;
}
// A place whose content is drawn to its width, now and whenever that changes.
const drawn = [];
function place(draw) {
  const box = html('div', {class: 'scroll'});
  drawn.push(() => {
    const width = box.clientWidth;
    if (width > 0) box.replaceChildren(draw(width));
  });
  return box;
}
function redraw() {
  for (const draw of drawn) draw();
}

const runs = data.runs, stepped = runs.filter((r) => r.steps > 0);
main.append(html('h1', {}, data.title));
if (data.simulated)
  main.append(html(
      'p', {class: 'note'},
      'simulated: true. Logical devices share a processor or a GPU: ' +
          'how they scale says nothing about separate ones.'));

const largest = stepped.reduce((a, b) => (!a || b.devices >= a.devices ? b : a), null);
if (largest) {
  const found =
      data.efficiencies.filter((e) => e.devices === largest.devices && e.batch === largest.batch);
  const tile = (name, value) =>
      html('div', {class: 'tile'}, html('span', {class: 'soft'}, name), html('b', {}, value));
  section(
      runName(largest),
      html(
          'div', {class: 'tiles'}, tile('measured', rate(largest.samples_per_s)),
          tile('predicted', rate(largest.predicted)), tile('a step', time(largest.seconds)),
          ...found.map(
              (e) => tile(
                  e.scaling + ' efficiency',
                  percent(e.efficiency) + (e.ceiling === null ? '' : ' of ' + percent(e.ceiling)))),
          tile('most time', largest.dominating_term),
          tile('most cost of splitting', largest.dominating_cost),
          largest.devices > 1 ?
              tile(
                  'splitting pays from',
                  largest.break_even_batch === null ? 'never' :
                                                      'batch ' + largest.break_even_batch) :
              null));
}

// The timeline of a run, and what its replicas did.
if (stepped.length) {
  let run = largest, zoom = 1;
  const detail = html('p', {id: 'detail', class: 'soft'}, 'Tap a span for its length and bytes.');
  const choice = html(
      'select', {'aria-label': 'run'},
      ...stepped.map((r, i) => html('option', {value: i}, runName(r))));
  choice.value = String(stepped.indexOf(run));
  const zoomBy = (factor) => () => {
    zoom = Math.min(64, Math.max(1, zoom * factor));
    redraw();
  };
  const buttons = [['−', 'zoom out', 0.5], ['+', 'zoom in', 2]].map(([text, label, factor]) => {
    const b = html('button', {type: 'button', 'aria-label': label}, text);
    b.addEventListener('click', zoomBy(factor));
    return b;
  });
  const tables = html('div', {});
  const describe = () => {
    const head = ['step', 'replica', ...PHASES.map((p) => p + ', ms'), 'sent', 'cached'];
    const rows = run.replicas.filter((r) => run.shown.includes(r.step))
                     .map(
                         (r) =>
                             [r.step, r.replica + ' ' + r.device,
                              ...PHASES.map((p) => number(r.seconds[p] * 1e3, 3)),
                              bytes(r.replicate_bytes), bytes(r.cached_bytes)]);
    tables.replaceChildren(
        table(head, rows),
        html(
            'p', {class: 'soft'},
            several(run.steps, 'step') + ' recorded by ' +
                (run.clock === 'device' ? 'the devices\' clocks' : 'the host\'s clock') + ', ' +
                several(run.shown.length, 'step') + ' shown; ' +
                'sent and cached are copies of the weights; the recorder takes ' +
                number(run.overhead * 100, 2) + ' % of a step' +
                (run.dropped_spans ? '; ' + several(run.dropped_spans, 'span') + ' lost' : '') +
                '.'));
    if (!run.ranks) return;
    tables.append(
        table(
            [
              'rank', 'devices', 'clock off, µs', 'uncertain by, µs', 'spans', 'lost',
              'collectives', 'bytes', 'ms in them', 'ms waited'
            ],
            run.ranks.map(
                (r) =>
                    [r.rank, r.devices.join(', '), number(r.clock_offset_ns / 1e3, 1),
                     number(r.clock_uncertainty_ns / 1e3, 1), r.spans, r.dropped_spans,
                     r.collectives, bytes(r.collective_bytes),
                     number(r.collective_seconds * 1e3, 3), number(r.waited_seconds * 1e3, 3)])),
        html(
            'p', {class: 'soft'},
            'The spans of all ranks are on the clock of rank 0, each off by at most its ' +
                'uncertainty when it was measured, at the end. The other tables are of rank 0.'));
  };
  choice.addEventListener('change', () => {
    run = stepped[Number(choice.value)];
    zoom = 1;
    describe();
    redraw();
  });
  section(
      'Timeline', html('div', {class: 'controls'}, choice, ...buttons),
      place(
          (width) => timeline(
              run, width, zoom,
              (text) => {
                detail.textContent = text;
              })),
      legend((runs.some((r) => r.ranks) ? RANK_PHASES : PHASES).map((p) => [p, p])), detail,
      tables);
  describe();
}

if (data.efficiencies.length) {
  const series = [];
  for (const scaling of ['strong', 'weak']) {
    const weak = scaling === 'weak',
          size = (e) => (weak ? e.batch / e.devices : e.batch);  // what is equal on a line
    const found = data.efficiencies.filter((e) => e.scaling === scaling)
                      .sort((a, b) => a.devices - b.devices);
    for (const rows of [...new Set(found.map(size))].sort((a, b) => a - b)) {
      const list = found.filter((e) => size(e) === rows),
            name = (what) => what + ', batch ' + rows + (weak ? ' a device' : '');
      series.push({
        name: name(scaling),
        tint: scaling,
        points: [[1, 1], ...list.map((e) => [e.devices, e.efficiency])]
      });
      const most = list.filter((e) => e.ceiling !== null);
      if (most.length)
        series.push({
          name: name(scaling + ' ceiling'),
          tint: scaling,
          dashed: true,
          points: [[1, 1], ...most.map((e) => [e.devices, e.ceiling])]
        });
    }
  }
  section(
      'Efficiency', place((width) => curve(series, width)),
      legend(series.map((s) => [s.name + (s.dashed ? ' (dashed)' : ''), s.tint])),
      table(
          ['scaling', 'devices', 'batch', 'efficiency', 'ceiling'],
          data.efficiencies.map(
              (e) =>
                  [e.scaling, e.devices, e.batch, percent(e.efficiency),
                   e.ceiling === null ? 'not measured' : percent(e.ceiling)])),
      html(
          'p', {class: 'soft'},
          'strong: T(1) / (n T(n)) at an equal batch in all. ' +
              'weak: T(1) / T(n) at an equal batch a device. ' +
              'The ceiling is that of n runs at once that know nothing of each other.'));
}

if (stepped.length) {
  section(
      'Predicted and measured',
      table(
          [
            'run', 'measured', 'predicted', 'off', 'by the other runs', 'most time', 'most cost',
            'pays from'
          ],
          stepped.map(
              (r) =>
                  [runName(r), rate(r.samples_per_s), rate(r.predicted),
                   percent(r.predicted / r.samples_per_s - 1),
                   r.predicted_apart === null ? '–' : rate(r.predicted_apart), r.dominating_term,
                   r.dominating_cost,
                   r.devices === 1                 ? '–' :
                       r.break_even_batch === null ? 'never' :
                                                     'batch ' + r.break_even_batch])),
      place(
          (width) => bars(
              stepped.flatMap(
                  (r) => [['critical_seconds', 'measured'], ['predicted_seconds', 'predicted']].map(
                      ([field, name]) => {
                        const seconds = (p) => r[field][p === 'idle' ? 'other' : p];
                        return {
                          name: r.devices + ' dev.',
                          parts: PHASES.map(
                              (p) => (
                                  {value: seconds(p), tint: p, title: p + ' ' + time(seconds(p))})),
                          text: name + ', batch ' + r.batch + ': ' +
                              time(PHASES.reduce((sum, p) => sum + seconds(p), 0))
                        };
                      })),
              width, 'Terms of a step, measured and predicted')),
      legend(PHASES.map((p) => [p === 'idle' ? 'other' : p, p])));
}

const counted = runs.filter((r) => r.memory.length);
if (counted.length) {
  const box = section('Memory');
  for (const r of counted) {
    box.append(
        html('p', {}, runName(r)),
        place(
            (width) => bars(
                r.memory.map(
                    (m) => ({
                      name: m.device,
                      mark: m.peak,
                      parts: KINDS.map(
                          ([field, name, tint]) =>
                              ({value: m[field], tint, title: name + ' ' + bytes(m[field])})),
                      text: 'peak ' + bytes(m.peak)
                    })),
                width, 'Memory of each device by kind, ' + runName(r))));
  }
  box.append(
      legend(KINDS.map(([, name, tint]) => [name, tint])),
      table(
          ['run', 'device', ...KINDS.map(([, name]) => name), 'peak'],
          counted.flatMap(
              (r) => r.memory.map(
                  (m) =>
                      [runName(r), m.device, ...KINDS.map(([field]) => bytes(m[field])),
                       bytes(m.peak)]))),
      html(
          'p', {class: 'soft'},
          'The line is the peak that the allocator measured. ' +
              'Activations: what a forward leaves until backward, the most over the steps.'));
}

redraw();
window.addEventListener('resize', redraw);
document.documentElement.dataset.drawn = 'yes';

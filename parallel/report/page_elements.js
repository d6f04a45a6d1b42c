// The page's elements: text, numbers with units, legends, tables, ticks of an axis.
'use strict';
window.addEventListener('error', (e) => {
  const p = document.createElement('p');
  p.id = 'script-error';
  p.className = 'note';
  p.textContent = 'This page could not be drawn: ' + e.message;
  document.querySelector('main').prepend(p);
});

const data = JSON.parse(document.getElementById('data').textContent);
data.runs.forEach((run, i) => {
  run.timeline = data.timelines[i].spans;
  run.shown = data.timelines[i].shown;
  run.lanes = data.timelines[i].lanes || run.names;  // of ranks: theirs
});
const PHASES = ['scatter', 'replicate', 'compute', 'gather', 'reduce', 'optimizer', 'idle'];
const RANK_PHASES = [...PHASES, 'collective', 'wait'];
const KINDS = [
  ['parameters', 'parameters', 'parameters'], ['gradients', 'gradients', 'gradients'],
  ['optimizer', 'optimizer state', 'state'], ['activations', 'activations', 'activations'],
  ['replica_cache', 'replica cache', 'cache'], ['outputs', 'outputs', 'outputs']
];

// Elements are made one by one and text is set as text: nothing is ever parsed as markup.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  for (const child of children)
    if (child !== null && child !== undefined) node.append(child);
  return node;
}
function html(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}
function svg(name, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}
const colour = (name) => 'var(--' + name + ')';
// Phases come from other ranks, too: only the page's own become part of a style.
const tintOf = (phase) => RANK_PHASES.includes(phase) ? phase : 'idle';

function number(x, digits) {
  return x.toLocaleString('en', {maximumFractionDigits: digits, minimumFractionDigits: digits});
}
function time(s) {
  return s >= 1 ? number(s, 2) + ' s' :
      s >= 1e-3 ? number(s * 1e3, 2) + ' ms' :
                  number(s * 1e6, 1) + ' µs';
}
function bytes(b) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let u = 0;
  while (b >= 1024 && u + 1 < units.length) {
    b /= 1024;
    ++u;
  }
  return number(b, u ? 1 : 0) + ' ' + units[u];
}
function rate(x) { return number(x, x < 10 ? 2 : 0) + ' samples/s'; }
function percent(x) { return number(100 * x, 1) + ' %'; }
function several(n, what) { return n + ' ' + what + (n === 1 ? '' : 's'); }
function runName(run) { return several(run.devices, 'device') + ', batch ' + run.batch; }

function legend(entries) {
  return html(
      'ul', {class: 'legend'},
      ...entries.map(
          ([name, tint]) =>
              html('li', {}, html('i', {style: 'background:' + colour(tint)}), name)));
}
function table(head, rows) {
  return html(
      'div', {class: 'scroll'},
      html(
          'table', {},
          html('thead', {}, html('tr', {}, ...head.map((h) => html('th', {scope: 'col'}, h)))),
          html(
              'tbody', {},
              ...rows.map(
                  (row) => html('tr', {}, ...row.map((cell) => html('td', {}, String(cell))))))));
}
// Steps of 1, 2 or 5 times a power of ten, about `count` of them up to `most`.
function ticks(most, count) {
  if (!(most > 0)) return [0];
  const raw = most / count, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  const list = [];
  for (let i = 0; i * step <= most * 1.0001; ++i) list.push(i * step);
  return list;
}

#!/usr/bin/env bash
# tests/parallel/report_page.sh BINARY FOLDER: braid_tests_parallel writes the report's pages into
# FOLDER. Headless Chromium opens them, light and dark, wide and as narrow as a phone. Fails on a
# script error, on missing text, and on content wider than the screen. Keeps the screenshots in
# FOLDER. Skips (77) without Chromium, unless BRAID_REQUIRE_CHROMIUM=1.
set -uo pipefail
binary=$1 folder=$2

browser=""
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && browser=$name && break
done
if [[ -z $browser ]]; then
  echo "SKIP(no chromium)"
  [[ ${BRAID_REQUIRE_CHROMIUM:-} == 1 ]] && exit 1
  exit 77
fi
rm -rf "$folder"
mkdir -p "$folder"
folder=$(readlink -f "$folder")
BRAID_REPORT_DIR=$folder "$binary" '[.report_page]' >"$folder/write.log" 2>&1 ||
  { cat "$folder/write.log" && exit 1; }

failed=0
fail() {
  echo "FAIL: $*"
  failed=1
}

# browse PAGE NAME ARGUMENTS...: writes the page after its scripts have run to NAME.dom, and the
# browser's log, with every console line, to NAME.log.
browse() {
  local page=$1 name=$2
  shift 2
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --no-first-run --disable-background-networking --user-data-dir="$folder/profile" \
    --enable-logging=stderr --log-level=0 --hide-scrollbars --virtual-time-budget=3000 \
    "$@" "file://$page" >"$folder/$name.dom" 2>"$folder/$name.log" </dev/null ||
    fail "$name: the browser ended with status $?"
}

# Adds the test's own script to the end of a page. It clicks through the page and records the
# results.
probe() {
  local page=$1 probed=$2
  cat >"$folder/probe.html" <<'SCRIPT'
<script>
const probe = document.documentElement.dataset;
const run = document.querySelector('select');
if (run) {
  for (const option of run.options) {
    run.value = option.value;
    run.dispatchEvent(new Event('change'));
  }
  for (const button of document.querySelectorAll('button')) button.click();
  document.querySelectorAll('button')[0].click();
  document.querySelector('.span')?.dispatchEvent(new Event('click'));
  probe.detail = document.getElementById('detail').textContent;
}
window.dispatchEvent(new Event('resize'));
probe.wide = document.documentElement.scrollWidth > window.innerWidth ? 'yes' : 'no';
probe.width = window.innerWidth;
probe.back = getComputedStyle(document.body).backgroundColor;
probe.spans = document.querySelectorAll('.span').length;
probe.rects = document.querySelectorAll('svg rect').length;
probe.failed = document.getElementById('script-error') ? 'yes' : 'no';
probe.stolen = String(window.stolen);
probe.fetched = performance.getEntriesByType('resource').length;
for (const p of ['scatter', 'replicate', 'compute', 'gather', 'reduce', 'optimizer'])
  probe['phase' + p] = document.querySelectorAll('.span[data-phase=' + p + ']').length;
if (parent !== window) parent.postMessage(Object.assign({}, probe), '*');
</script>
SCRIPT
  sed -e '/<\/body>/e cat '"$folder/probe.html" "$page" >"$probed"
}

attribute() { grep -o "data-$2=\"[^\"]*\"" "$folder/$1.dom" | head -n 1 | cut -d'"' -f2; }
expect() { # NAME ATTRIBUTE VALUE
  local got
  got=$(attribute "$1" "$2")
  [[ $got == "$3" ]] || fail "$1: expected data-$2=$3, got '$got'"
}
quiet() { # no script error, no console message, drawn completely
  local lines
  lines=$(grep 'CONSOLE' "$folder/$1.log") && fail "$1: the console says:"$'\n'"$lines"
  expect "$1" failed no  # set by the probe, which sees into a frame
  expect "$1" drawn yes
  expect "$1" wide no
  expect "$1" stolen undefined
  expect "$1" fetched 0
}
contains() {
  local name=$1 text
  shift
  # Only the drawn content: not the scripts, the data, or the tables for browsers without scripts.
  tr '\n' ' ' <"$folder/$name.dom" | grep -o '<main>.*</main>' >"$folder/$name.main"
  for text in "$@"; do
    grep -qF -- "$text" "$folder/$name.main" || fail "$name: no '$text' in the page"
  done
}

for page in split-report hostile empty no-spans ranks; do
  probe "$folder/$page.html" "$folder/$page.probed.html"
  browse "$folder/$page.probed.html" "$page" --window-size=1200,900 --dump-dom
  quiet "$page"
done
contains split-report '<h1>bench_split: MLP 16-64-4</h1>' 'simulated: true' '<h2>Timeline</h2>' \
  '<h2>Efficiency</h2>' '<h2>Predicted and measured</h2>' '<h2>Memory</h2>' '>cpu:0</text>' \
  '>cpu:1</text>' 'strong efficiency' 'strong ceiling' 'replica cache' 'optimizer state' \
  'splitting pays from' 'strong, batch 128' 'strong ceiling, batch 128' \
  'aria-label="Memory of each device by kind, 2 devices, batch 128"' \
  'aria-label="Efficiency over the number of devices"' 'samples/s'
for phase in scatter replicate compute gather reduce optimizer; do
  count=$(attribute split-report "phase$phase")
  ((${count:-0} > 0)) || fail "split-report: no span of $phase is drawn"
done
detail=$(attribute split-report detail)
[[ $detail == *"step "*"ms"* || $detail == *"step "*"µs"* ]] ||
  fail "split-report: a tap on a span shows '$detail'"
contains hostile '&lt;/script&gt;&lt;script&gt;window.stolen = 1&lt;/script&gt;&lt;img src=x'
contains no-spans '<h2>Timeline</h2>' '>no spans</p>'
contains ranks '>rank 0 · cpu:0</text>' '>rank 1 · cpu:0</text>' '>rank 2 · collectives</text>' \
  'all_reduce(bucket 3, 28 bytes)' 'call 118' 'wait for the other ranks' 'uncertain by'
grep -q 'var(--[^)]*elsewhere' "$folder/ranks.dom" && fail "ranks: a phase becomes part of a style"
contains empty '<h1>Nothing was measured</h1>'

# Dark mode, and a phone.
browse "$folder/split-report.probed.html" dark --window-size=1200,900 \
  --blink-settings=preferredColorScheme=0 --dump-dom
quiet dark
light=$(attribute split-report back) dark=$(attribute dark back)
[[ -n $light && $light != "$dark" ]] ||
  fail "the page is as light in the dark: '$light' and '$dark'"
cat >"$folder/phone.html" <<'FRAME'
<!DOCTYPE html><script>
addEventListener('message', (e) => Object.assign(document.documentElement.dataset, e.data))
</script>
<iframe src="split-report.probed.html" style="width:360px;height:740px;border:0"></iframe>
FRAME
# the browser's own window cannot be as narrow as a phone
browse "$folder/phone.html" phone --window-size=600,860 --dump-dom
quiet phone
expect phone width 360

# Screenshots, for people.
shot() {
  local name=$1
  shift
  browse "$folder/split-report.html" "$name" --screenshot="$folder/$name.png" "$@"
  [[ -s $folder/$name.png ]] || fail "no screenshot $name.png"
}
shot screenshot-light --window-size=1200,2600 --blink-settings=preferredColorScheme=1
shot screenshot-dark --window-size=1200,2600 --blink-settings=preferredColorScheme=0
shot screenshot-phone --window-size=400,3600

# Checks that this test can fail: injects an error into a page.
sed 's/const runs = data.runs/undefinedFunction(); &/' "$folder/split-report.probed.html" \
  >"$folder/planted.html"
browse "$folder/planted.html" planted --window-size=1200,900 --dump-dom
grep -q 'CONSOLE.*Uncaught ReferenceError: undefinedFunction' "$folder/planted.log" ||
  fail "a planted error of a script does not show in the console's lines"
[[ $(attribute planted failed) == yes ]] ||
  fail "a planted error of a script does not show in the page"

rm -rf "$folder/profile"
version=$("$browser" --version 2>/dev/null | head -n 1)
((failed == 0)) && echo "NOTE: the report's page in $version: light, dark, phone;" \
  "screenshots in ${folder#"$PWD"/}"
exit "$failed"

#!/usr/bin/env bash
# bench/split/check_report.sh PROGRAM FOLDER: runs bench_split with its fastest net on two devices
# for one round. Then the four files of the report must be in the folder of the JSON file, and the
# rows and the output must contain what docs/notes/report.md promises. Times are not checked, only
# that every figure is present. Skips (77) without python3.
set -uo pipefail
program=$1 folder=$2
command -v python3 >/dev/null || { echo "SKIP(no python3)" && exit 77; }
rm -rf "$folder"
mkdir -p "$folder"
"$program" --models cnn --devices 2 --update broadcast --rounds 1 --no-peers --trace \
  --json "$folder/split.json" >"$folder/output.txt" 2>&1 || {
  cat "$folder/output.txt"
  echo "FAIL: bench_split ended with an error"
  exit 1
}
cat "$folder/output.txt"

failed=0
fail() {
  echo "FAIL: $*"
  failed=1
}
for file in split.json split-report.{html,txt,json,trace.json}; do
  [[ -s $folder/$file ]] || fail "expected $file in $folder, with something in it"
done
step='the recorder of the report makes a step over 2 devices, update broadcast'
for line in "$step, -?[0-9.]+ % longer" \
  'while nothing is recorded: computed [0-9.]+ % of a step' \
  'predicted [0-9]+ samples/s by ' 'report: .*split-report\.html'; do
  grep -qE "$line" "$folder/output.txt" || fail "expected a line '$line'"
done
python3 - "$folder" <<'PYTHON' || fail "the JSON is not what it should be"
import json
import sys

folder = sys.argv[1]
bad = []


def expect(ok, what):
    if not ok:
        bad.append(what)


def read(name):
    with open(f"{folder}/{name}", encoding="utf-8") as file:
        return json.load(file)


for name in ("split-report.json", "split-report.trace.json"):
    expect(read(name), f"{name}: expected something in it")
rows = read("split.json")["rows"]
runs = [row for row in rows if row["mode"] != "trace"]
kinds = [(row["mode"], row["devices"]) for row in runs]
expected = [("strong", 1), ("strong", 2), ("weak", 1), ("weak", 2)]
expect(kinds == expected, "expected one row a mode and number of devices")
expect(len(rows) == len(runs) + 1, "expected one row of mode trace")
VERDICTS = ("met", "missed", "noisy", "unjudged")
for row in rows:
    name = f"{row['mode']}, {row['devices']} devices"
    bars = ("efficiency", "ddp", "threads", "prediction")
    for bar in ("overhead",) if row["mode"] == "trace" else bars:
        verdict = row.get(f"verdict_{bar}")
        what = f"verdict_{bar}: expected one of {VERDICTS}, got {verdict!r}"
        expect(verdict in VERDICTS, f"{name}: {what}")
    if row["mode"] == "trace":
        expect(row["spans"] > 0, f"{name}: expected spans")
        expect(isinstance(row["trace_overhead"], (int, float)), f"{name}: expected trace_overhead")
    elif row["devices"] == 2:
        predicted, by = row["predicted"], row["predicted_by"]
        what = f"predicted: expected a number above 0, got {predicted!r}"
        expect((predicted or 0) > 0, f"{name}: {what}")
        what = f"predicted_by: expected 'the other runs', got {by!r}"
        expect(by == "the other runs", f"{name}: {what}")
        there = (row["efficiency"] or 0) > 0 and (row["ceiling"] or 0) > 0
        expect(there, f"{name}: expected an efficiency and a ceiling")
        # No peer was requested.
        peers = {row.get("verdict_ddp"), row.get("verdict_threads")}
        expect(peers == {"unjudged"}, f"{name}: expected the peers' bars unjudged")
        if not row["shares_cores"]:
            others = (row.get("verdict_efficiency"), row.get("verdict_prediction"))
            expect("unjudged" not in others, f"{name}: expected a verdict of the others")
for what in bad:
    print("split.json:", what)
sys.exit(bool(bad))
PYTHON
exit $failed

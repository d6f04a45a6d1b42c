#!/usr/bin/env bash
# Measures with gcov which lines of the library the modules' suites execute, and prints a line for
# each module. build/check/coverage.json lists them by file. Only in --all, because it needs a
# separate build.
set -euo pipefail
. tests/lib.sh
need "${build_tools[@]}" "${engine_packages[@]}" catch2 gcovr
mkdir -p build/check
configure coverage -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -fno-inline" \
  -DBRAID_COVERAGE=ON -DBRAID_GENERIC=ON -DBRAID_TEST_ISAS=generic -DBRAID_TEST_OPTIONS=-O0 \
  -DBRAID_TEST_TIMEOUT=1500 -DBRAID_BUILD_DOCS=OFF -DBRAID_BUILD_BENCH=OFF
modules=(${*:-core kernels nn data parallel})
build coverage "${modules[@]/#/braid_tests_}"
find build/coverage -name '*.gcda' -delete
export BRAID_TEST_SEEDS=2
names=$(IFS='|' && echo "${modules[*]}")
run_ctest coverage -R "^($names)\.((every|members)\.)?(generic|devices[38])\$"
gcovr --root . --object-directory build/coverage --gcov-ignore-parse-errors \
  --filter '(core|kernels/cpu|kernels/include|nn|data|parallel)/' --exclude-unreachable-branches \
  --json-summary build/check/coverage.json >/dev/null
python3 - <<'PYTHON'
import collections, json
lines = collections.defaultdict(lambda: [0, 0])
for file in json.load(open("build/check/coverage.json"))["files"]:
    name = file["filename"]
    module = "kernels/cpu" if name.startswith("kernels/") else name.split("/")[0]
    for key in (module, "all"):
        lines[key][0] += file["line_covered"]
        lines[key][1] += file["line_total"]
for module, (covered, total) in sorted(lines.items()):
    print(f"NOTE: {module}: {covered} of {total} lines, {100 * covered / total:.2f} %")
PYTHON

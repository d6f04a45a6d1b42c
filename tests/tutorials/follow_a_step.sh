#!/usr/bin/env bash
# follow_a_step.sh PROGRAM COMPILER, from the top folder: gdb runs the commands of
# docs/guides/follow_a_step.md, and must print what the guide shows. With BRAID_TRANSCRIPT_UPDATE=1
# its output is written into the guide instead. Skips (77) without gdb, where gdb may not trace a
# program or call its functions, and with other versions of gdb and of the compiler, which word some
# lines differently.
set -uo pipefail
skip() {
  echo "SKIP(follow_a_step: $*)"
  exit 77
}
command -v gdb >/dev/null || skip "no gdb"
version=$(gdb --version | sed -n '1s/.* \([0-9]*\)\..*/\1/p')
[[ $version == 13 && ${2%%.*} == 12 ]] ||
  skip "expected gdb 13 and g++ 12, got gdb ${version:-unknown} and g++ $2"
gdb=(gdb -nx -q -batch)
unset DEBUGINFOD_URLS
"${gdb[@]}" -ex 'python print("has Python")' 2>&1 | grep -q 'has Python' ||
  skip "gdb without Python"
# they print vectors and spans; on Debian libstdc++6 has them
find /usr/share/gdb/auto-load -name 'libstdc++.so*-gdb.py' 2>/dev/null | grep -q . ||
  skip "gdb without the printers of libstdc++"
started=$("${gdb[@]}" -ex starti -ex kill --args true 2>&1)
grep -q 'Program stopped' <<<"$started" ||
  skip "gdb cannot trace: $(grep -m 1 -i trace <<<"$started" || tail -n 1 <<<"$started")"
# gdb 13 has no room for the registers of some processors, and then it can call no function
called=$("${gdb[@]}" -ex 'break main' -ex run -ex 'print ((int (*)())getpid)()' -ex kill "$1" 2>&1)
! grep -q "Couldn't write extended state" <<<"$called" ||
  skip "gdb cannot call functions: $(grep -m 1 "Couldn't write" <<<"$called")"
unset BRAID_THREADS BRAID_ISA BRAID_CPU_DEVICES BRAID_PIN
export BRAID_DEVICE=cpu LC_ALL=C
exec "${gdb[@]}" -x tests/tutorials/follow_a_step.py "$1"

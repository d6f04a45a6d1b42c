#!/usr/bin/env bash
# isa_symbols.sh NM ISA OBJECTS...: checks that an object compiled for one instruction set defines
# nothing that the linker shares with other objects. The linker keeps a single copy of a weak symbol
# (an inline function or a template) for all processors. It could be the AVX-512 copy, which crashes
# older processors. So weak and unique definitions are not allowed, and every global definition must
# be in namespace braid::cpu::ISA.
set -u
nm=$1
isa=$2
shift 2
if (($# == 0)); then
  echo "FAIL: expected object files"
  exit 1
fi
symbols=$("$nm" -C "$@") || exit 1
if ! grep -Eq " T braid::cpu::${isa}::binary\(" <<<"$symbols"; then
  echo "FAIL: expected the kernels of $isa in these objects, got none:" \
    "the check would pass on anything"
  exit 1
fi
# The reference to the personality routine is data. Sanitizer symbols occur in sanitizer builds
# only.
allowed='DW\.ref\.__g(xx|cc)_personality_v0|__odr_asan|__asan_|__ubsan_|__tsan_|asan\.|tsan\.'
bad=$(grep -E '^[0-9a-f]+ [WVuwv] ' <<<"$symbols" | grep -Ev "$allowed")
foreign=$(grep -E '^[0-9a-f]+ [TDRBSGC] ' <<<"$symbols" |
  grep -Ev " braid::cpu::${isa}::" | grep -Ev "$allowed")
if [[ -n $bad || -n $foreign ]]; then
  echo "FAIL: symbols that the linker may share between instruction sets:"
  echo "$bad"
  echo "FAIL: global symbols outside braid::cpu::${isa}:"
  echo "$foreign"
  exit 1
fi

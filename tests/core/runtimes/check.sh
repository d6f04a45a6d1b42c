#!/usr/bin/env bash
# check.sh PROGRAM HIDDEN SHARING: a plugin with a second Braid must be detected, once. A plugin
# that uses the program's Braid must not be.
set -euo pipefail
output=$("$1" "$2" "$2" && "$1" "$3")
echo "$output"
mapfile -t lines <<<"$output"
said="1 unseen a second copy of Braid is in this process, in $2 beside the one in the program: "
[[ ${lines[0]} == "$said"*BUILD_SHARED_LIBS=ON* ]]
[[ ${lines[1]} == "0 unseen "* ]]
[[ ${lines[2]} == "0 seen "* ]]

#!/usr/bin/env bash
# test.sh READ_DIGIT FOLDER: the program reads the ten digits that train_reader wrote into the
# folder, and refuses files that are no model or no digit.
set -euo pipefail
program=$1
cd "$2"
diff <(printf 'digit_%d.png: %d\n' 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9) \
  <("$program" net.safetensors digit_?.png | sed 's/ (.*//')

# refused TEXT ARGUMENTS: the program ends with status 1 and this text.
refused() {
  local text=$1 status=0 output
  shift
  output=$("$program" "$@" 2>&1) || status=$?
  [[ $status == 1 && $output == "read_digit: digit reader: "*"$text"* ]] || {
    echo "FAIL: $*: expected status 1 and '$text', got status $status and '$output'"
    exit 1
  }
}
head -c 5000 net.safetensors >cut.safetensors
sed 's/digit reader 1/digit reader 2/' net.safetensors >other.safetensors
sed 's/fc2.bias/fc2.bier/' net.safetensors >renamed.safetensors
refused 'No such file' missing.safetensors digit_1.png
refused 'fc1.weight' cut.safetensors digit_1.png
refused "expected the format 'digit reader 1'" other.safetensors digit_1.png
refused 'fc2.bias' renamed.safetensors digit_1.png
refused 'expected 28 x 28 grey pixels' net.safetensors digits.png

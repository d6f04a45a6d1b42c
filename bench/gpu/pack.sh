#!/usr/bin/env bash
# bench/gpu/pack.sh [package...]: downloads Debian packages that ./dev gpu needs on a machine
# without network, and unpacks them into build/debs (or BRAID_DEBS). The default is catch2 for the
# tests and ninja for the build. Run it on a machine with network and the same Debian release.
# Nothing is installed.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
packages=("$@")
((${#packages[@]} > 0)) || packages=(catch2 ninja-build)
folder=${BRAID_DEBS:-build/debs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
folder=$(readlink -f "$folder")
(cd "$work" && apt-get download "${packages[@]}")
for file in "$work"/*.deb; do
  dpkg-deb -x "$file" "$folder"
done
rm -rf "$folder/usr/share/doc" "$folder/usr/share/man"
du -sh "$folder" | sed 's/\t/  /'

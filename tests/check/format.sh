#!/usr/bin/env bash
# Every C++ file is as clang-format 14 writes it; ../format.sh names those that are not.
exec tests/format.sh --check

#!/usr/bin/env bash
# Every C++ file is as clang-format 14 writes it.
exec tests/format.sh --check

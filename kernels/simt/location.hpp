#pragma once
#include "simt/mode.hpp"

namespace braid::simt {

/// A source location. As a default argument, `Location where = Location::current()` is the location
/// of the caller. std::source_location is missing in clang 14 with libstdc++, and in nvcc's device
/// code.
struct Location {
  const char* file = nullptr;
  int line = 0;
  static constexpr Location current(const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
    return {f, l};
  }
};

}  // namespace braid::simt

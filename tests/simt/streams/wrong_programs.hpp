#pragma once
#include <vector>

#include "simt/runtime/control.hpp"

namespace braid::streams_test {

/// Lines of the calls at fault, which the report must name.
struct Fault {
  int line, other = 0;
};

/// A program of streams with one mistake, or, where `fixed`, without.
struct Program {
  const char* name;
  simt::ReportKind kind;
  const char* file;
  Fault (*run)(bool fixed);
};

[[nodiscard]] std::vector<Program> ordering_programs();
[[nodiscard]] std::vector<Program> memory_programs();

}  // namespace braid::streams_test

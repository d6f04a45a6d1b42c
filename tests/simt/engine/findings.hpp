#pragma once
#include <string>

#include <braid/core/error.hpp>

#include "simt/runtime/control.hpp"

namespace braid::test {

/// What the checker has found since it was asked last: nothing, or each text behind "; ".
inline std::string findings() {
  std::string text;
  for (const simt::Report& report : simt::take_reports()) text += str("; ", report.text);
  return text;
}

}  // namespace braid::test

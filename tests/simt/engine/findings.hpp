#pragma once
#include <string>

#include <braid/core/error.hpp>

#include "simt/runtime/control.hpp"

namespace braid::test {

/// Returns the findings since the last call: each text preceded by "; ", or an empty string.
inline std::string findings() {
  std::string text;
  for (const simt::Report& report : simt::take_reports()) text += str("; ", report.text);
  return text;
}

}  // namespace braid::test

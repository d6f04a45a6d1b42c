#pragma once
// The emulation's counts of the accesses of one line of a kernel, found by the words in it.
#include <fstream>
#include <string>

#include "simt/profiler.hpp"
#include "support/check.hpp"
#include "support/tests_dir.hpp"

namespace kernel_test {

using braid::simt::Profile;
using braid::simt::ProfileLine;

/// Returns the number of the line that contains the words, in a file of kernels/cuda/device.
inline int line_of(const std::string& file, const std::string& words) {
  std::ifstream in(braid::test::tests_dir() + "/../kernels/cuda/device/" + file);
  std::string text;
  for (int line = 1; std::getline(in, text); ++line)
    if (text.find(words) != std::string::npos) return line;
  return 0;
}

inline ProfileLine at(const Profile& profile, const std::string& file, const std::string& words,
                      bool shared) {
  const int line = line_of(file, words);
  REQUIRE(line > 0);
  return profile.at(file, line, shared);
}

}  // namespace kernel_test

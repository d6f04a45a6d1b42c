#pragma once
// Runs cases of this test binary in a separate process, for tests of state that a whole process
// shares.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

namespace braid::test {

struct ChildResult {
  int status;          ///< exit status, 128 + n for signal n
  std::string output;  ///< stdout and stderr
};

/// `environment` uses shell syntax: "A=1 B=2". `filter` selects hidden cases, for example
/// "[.child][devices]".
inline ChildResult run_child(const std::string& environment, const std::string& filter) {
  const std::string command =
      "env " + environment + " /proc/" + std::to_string(getpid()) + "/exe '" + filter + "' 2>&1";
  ChildResult result{-1, ""};
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace braid::test

/// Checks that the hidden cases pass in a separate process.
#define CHECK_CHILD(environment, filter)                                                    \
  do {                                                                                      \
    const ::braid::test::ChildResult child = ::braid::test::run_child(environment, filter); \
    INFO(child.output);                                                                     \
    CHECK(child.status == 0);                                                               \
    CHECK(child.output.find("All tests passed") != std::string::npos);                      \
  } while (false)

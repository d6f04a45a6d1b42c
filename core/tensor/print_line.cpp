#include <cstdio>
#include <mutex>

#include <braid/core/print.hpp>

namespace braid::detail {

void print_line(std::string line) {
  // Never destroyed: threads may still print while the program ends.
  static std::mutex& one_at_a_time = *new std::mutex;
  const std::lock_guard lock(one_at_a_time);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace braid::detail

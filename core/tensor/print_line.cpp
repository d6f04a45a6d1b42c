#include <cstdio>
#include <mutex>
#include <utility>

#include <braid/core/print.hpp>
#include <braid/core/print_capture.hpp>

namespace braid {
namespace { thread_local std::string* captured = nullptr; }  // namespace

PrintCapture::PrintCapture(std::string& text) noexcept : outer_(std::exchange(captured, &text)) {}
PrintCapture::~PrintCapture() { captured = outer_; }

void detail::print_line(std::string line) {
  if (captured) {
    *captured += line;
    return;
  }
  // Never destroyed, because threads may still print while the program exits.
  static std::mutex& one_at_a_time = *new std::mutex;
  const std::lock_guard lock(one_at_a_time);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace braid

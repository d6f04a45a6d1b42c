#include "support/on_device.hpp"

#include <cstdlib>
#include <stdexcept>

namespace braid::test {

bool emulated() {
#if defined(BRAID_CUDA_SIMT)
  return !on_cpu();
#else
  return false;
#endif
}

namespace {
/// The parsed value of BRAID_TEST_PART=index/count.
struct Part {
  std::size_t index = 0, count = 1;
};
Part part() {
  Part p;
  const char* text = std::getenv("BRAID_TEST_PART");
  if (text == nullptr) return p;
  char* slash = nullptr;
  p.index = std::strtoul(text, &slash, 10);
  if (*slash == '/') p.count = std::strtoul(slash + 1, nullptr, 10);
  if (p.index >= p.count) throw std::runtime_error("BRAID_TEST_PART: expected i/n with i < n");
  return p;
}
}  // namespace

bool in_part(std::size_t number) {
  static const Part chosen = part();
  return number % chosen.count == chosen.index;
}

bool mine(std::size_t number) {
  if (!emulated()) return in_part(number);
  const std::size_t count = devices().size();
  return number % count == static_cast<std::size_t>(here().index()) && in_part(number / count);
}
bool mine_of_table(std::size_t number) {
  static const bool divided = std::getenv("BRAID_TEST_DIVIDE") != nullptr;
  return divided ? mine(number) : in_part(number);
}

}  // namespace braid::test

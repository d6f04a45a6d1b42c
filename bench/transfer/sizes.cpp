#include "transfer/sizes.hpp"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "transfer/fit.hpp"

namespace bench::transfer {
namespace {

  constexpr std::size_t kLeast = std::size_t{4} << 10, kMost = std::size_t{1} << 30; }  // namespace

std::vector<std::size_t> sizes_up_to(std::size_t most) {
  std::vector<std::size_t> list;
  for (std::size_t bytes = kLeast; bytes <= most; bytes *= 4) list.push_back(bytes);
  return list;
}

std::size_t bytes_of(const std::string& text) {
  std::size_t value = 0;
  const char* const last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, value);
  int shift = 0;
  if (end != last && error == std::errc()) {
    shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift > 0) ++end;
  }
  if (error != std::errc() || end != last || value > (kMost >> shift) || (value << shift) < kLeast)
    throw std::invalid_argument("expected bytes from 4K to 1G, as 64M, got '" + text + "'");
  return value << shift;
}

double available_memory() {
  std::ifstream in("/proc/meminfo");
  for (std::string word; in >> word;) {
    double kilobytes = 0;
    if (word == "MemAvailable:" && in >> kilobytes) return kilobytes * 1024;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

std::string does_not_fit(std::size_t bytes, int tensors) {
  const double available = available_memory(), needed = static_cast<double>(bytes) * tensors;
  if (available <= 0 || needed <= 0.75 * available) return {};
  return std::to_string(tensors) + " tensors of " + text_of_bytes(static_cast<double>(bytes)) +
         " need more than three quarters of the " + text_of_bytes(available) +
         " of memory that are available";
}

}  // namespace bench::transfer

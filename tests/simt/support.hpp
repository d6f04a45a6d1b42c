#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "simt/config.hpp"
#include "simt/device_memory.hpp"
#include "simt/error.hpp"
#include "support/check.hpp"
#include "support/tests_dir.hpp"

namespace braid::simt_tests {

/// Device memory for a test, without the runtime: registered with the checker.
template <class T> class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, int device = 0) : count_(count) {
    const std::size_t bytes = std::max<std::size_t>(count * sizeof(T), 1);
    void* p = nullptr;
    // the exact size: AddressSanitizer's red zone starts directly after it
    if (posix_memalign(&p, 256, bytes) != 0) throw std::bad_alloc();
    std::memset(p, 0xff, bytes);
    data_ = static_cast<T*>(p);
    simt::register_memory(data_, count * sizeof(T), simt::MemoryKind::device, device);
  }
  explicit DeviceArray(const std::vector<T>& values, int device = 0)
      : DeviceArray(values.size(), device) {
    set(values);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    simt::unregister_memory(data_);
    std::free(data_);
  }
  void set(const std::vector<T>& values) {
    simt::check_range(data_, values.size() * sizeof(T), true);
    if (!values.empty())
      std::memcpy(static_cast<void*>(data_), values.data(), values.size() * sizeof(T));
  }
  [[nodiscard]] std::vector<T> get() const {
    std::vector<T> values(count_);
    simt::check_range(data_, count_ * sizeof(T), false);
    if (count_ != 0) std::memcpy(static_cast<void*>(values.data()), data_, count_ * sizeof(T));
    return values;
  }
  [[nodiscard]] T* data() const noexcept { return data_; }
  operator T*() const noexcept { return data_; }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

/// Restores the configuration at the end of a test.
class KeepConfig {
 public:
  KeepConfig() : before_(simt::config()) {}
  ~KeepConfig() { simt::set_config(before_); }
  KeepConfig(const KeepConfig&) = delete;
  KeepConfig& operator=(const KeepConfig&) = delete;

 private:
  simt::Config before_;
};

/// Returns the details of the error that f throws.
template <class F> simt::Error::Details details_of(F&& f) {
  try {
    f();
  } catch (const simt::Error& e) {
    return e.details;
  }
  FAIL("no error");
  return {};
}

/// Runs `body` in forward, reverse and two random orders of threads.
template <class Body> void in_all_orders(Body body) {
  const KeepConfig keep;
  const std::tuple<const char*, simt::Order, std::uint64_t> orders[] = {
      {"forward", simt::Order::forward, 1},
      {"reverse", simt::Order::reverse, 1},
      {"random:7", simt::Order::random, 7},
      {"random:20261", simt::Order::random, 20261}};
  for (const auto& [name, order, seed] : orders) {
    INFO("order " << name);
    simt::set_order(order, seed);
    body();
  }
}

/// Returns normally distributed numbers, the same in every run.
inline std::vector<float> normal(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float& v : values) v = distribution(generator);
  return values;
}

/// Returns the lines of a file of tests/simt that end in `// here: <name>`.
inline std::vector<int> marked_lines(const std::string& file, const std::string& name) {
  std::ifstream in(braid::test::tests_dir() + "/simt/" + file);
  std::vector<int> lines;
  std::string text;
  const std::string mark = "// here: " + name;
  for (int line = 1; std::getline(in, text); ++line)
    if (text.size() >= mark.size() &&
        text.compare(text.size() - mark.size(), mark.size(), mark) == 0)
      lines.push_back(line);
  return lines;
}

}  // namespace braid::simt_tests

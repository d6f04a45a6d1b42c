// Sets up eight logical CPU devices for this binary, unless BRAID_CPU_DEVICES sets the number;
// collects all warnings; and defines what group.hpp declares.
#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "group.hpp"

namespace braid::test {

namespace {

std::mutex mutex;
std::vector<std::string>& texts() {
  static auto& list = *new std::vector<std::string>;
  return list;
}

const bool ready = [] {
  if (std::getenv("BRAID_CPU_DEVICES") == nullptr) set_cpu_device_count(8);
  set_warning_handler([](std::string_view text) {
    const std::lock_guard lock(mutex);
    texts().emplace_back(text);
  });
  return true;
}();

}  // namespace

int warnings_with(std::string_view text) {
  const std::lock_guard lock(mutex);
  return static_cast<int>(std::count(texts().begin(), texts().end(), text));
}

std::vector<Device> group(int n) {
  std::vector<Device> list = devices();
  list.resize(static_cast<std::size_t>(n));
  return list;
}
Device device(int i) { return devices().at(static_cast<std::size_t>(i)); }

std::vector<std::vector<Device>> orders() {
  std::vector<std::vector<Device>> list{group(1)};
  if (device_count() < 2) return list;
  list.push_back(group(2));
  list.push_back({device(1), device(0)});
  if (device_count() > 2) list.push_back(devices());
  return list;
}

std::optional<Device> third() {
  if (!on_cpu()) return host();
  if (device_count() > 2) return device(2);
  return {};
}

std::vector<std::size_t> in_use() {
  std::vector<std::size_t> bytes;
  for (const Device d : devices()) bytes.push_back(memory_stats(d).in_use);
  return bytes;
}

std::vector<Mode> modes(int n) {
  return {{"without a cache", {.cache = false}},
          {"cache", {}},
          {"replicated optimizer", {}, true, 0, true},
          {"buckets", {.bucket_bytes = 1}},
          {"virtual replicas", {}, true, 2 * n},
          {"replicas", {}, false},
          {"merged buffers", {.merge_buffers = parallel::MergeBuffers::mean}}};
}

std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> list;
  for (const Tensor& t : tensors) list.push_back(t.detach().clone());
  return list;
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> list;
  for (const Tensor& t : tensors) list.push_back(t.grad());
  return list;
}

void check_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < want.size(); ++k) CHECK_SAME_BITS(got[k], want[k]);
}

void check_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want, Tolerance t) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < want.size(); ++k) CHECK_CLOSE(got[k], want[k], t);
}

void check_same_over_counts(const std::function<std::vector<Tensor>(int)>& f) {
  const std::vector<Tensor> first = copies_of(f(1));
  for (int n = 2; n <= device_count(); ++n) {
    INFO(n << " devices");
    check_same(f(n), first);
  }
}

}  // namespace braid::test

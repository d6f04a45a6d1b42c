// Freeing memory that a stream may still use: the allocator waits for the stream, even if it cannot
// record an event on it.
#include <cstdlib>

#include <braid/braid.hpp>

#include "child.hpp"
#include "findings.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"

using namespace braid;

namespace {

const Device kDevice("cuda:0");

/// Queues work on memory that no tensor owns afterwards.
void use_and_drop() {
  Tensor x = ones({1000}, {.device = kDevice});
  for (int i = 0; i < 3; ++i) x = x * 2;
}

/// Returns the number of the device's allocations that are not freed.
int held() {
  int count = 0;
  for (const simt::LiveObject& object : simt::live_objects())
    count += object.what == "device memory";
  return count;
}

std::string findings() {
  synchronize(kDevice);
  return test::findings();
}

}  // namespace

TEST_CASE("settled memory: without events the cache is given back behind its work", "[allocator]") {
  const std::string text = test::in_child(1, [] {
    setenv("BRAID_CUDA_CACHE", "1", 1);
    use_and_drop();
    empty_cache(kDevice);
    const int before = held();
    use_and_drop();
    const int cached = held() - before;
    simt::fail_call(1, cudaErrorInvalidValue, true, "cudaEventRecord");
    empty_cache(kDevice);
    const bool failed = simt::failed_call();
    simt::fail_call(0, cudaSuccess);
    const int after = held() - before;
    const Tensor y = ones({10}, {.device = kDevice}) + 1;  // and the device still works
    return str(cached, " cached, ", failed ? "no event, " : "an event, ", after, " kept, ",
               sum(y).item<float>(), findings());
  });
  CHECK(text == "1 cached, no event, 0 kept, 20");
}

TEST_CASE("settled memory: without a cache a block is freed behind its work", "[allocator]") {
  const std::string text = test::in_child(1, [] {
    setenv("BRAID_CUDA_CACHE", "0", 1);
    use_and_drop();
    const int before = held();
    use_and_drop();
    return str(held() - before, " kept", findings());
  });
  CHECK(text == "0 kept");
}

// Memory that is to be given back while the event that says when cannot be recorded: the allocator waits for the stream instead and keeps nothing back.
#include <cstdlib>

#include <braid/braid.hpp>

#include "child.hpp"
#include "simt/runtime/control.hpp"
#include "support/catch.hpp"

using namespace braid;

TEST_CASE("settled memory: without events the cache is given back all the same", "[engine][allocator]") {
  const std::string text = test::in_child([] {
    setenv("BRAID_SIMT_DEVICES", "1", 1);
    unsetenv("BRAID_DEVICE");
    const Device device("cuda:0");
    Tensor x = randn({1000, 1000}, {.device = device});
    x = x * 2;
    synchronize(device);
    x = {};
    const std::size_t before = memory_stats(device).reserved;
    simt::fail_call(1, cudaErrorInvalidValue, true, "cudaEventRecord");
    empty_cache(device);
    const bool failed = simt::failed_call();
    simt::fail_call(0, cudaSuccess);
    const std::size_t after = memory_stats(device).reserved;
    const Tensor y = ones({10}, {.device = device}) + 1;  // and the device still works
    return str(before > 0 ? "cached, " : "nothing cached, ", failed ? "no event, " : "an event, ", after, " bytes kept, ", sum(y).item<float>());
  });
  CHECK(text == "cached, no event, 0 bytes kept, 20");
}

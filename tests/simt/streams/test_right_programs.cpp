// Programs that are right, though they look like the mistakes of the other files: nothing is reported, and the values are those of a GPU.
#include <vector>

#include "rig.hpp"

using namespace braid;
using namespace braid::streams_test;

namespace {

// Runs a program in every order of the executor.
template <class F>
void check_right(const char* name, F&& program) {
  for (const OrderOf& order : kOrders) {
    INFO(name << ", order " << static_cast<int>(order.order) << " seed " << order.seed);
    const Fresh fresh;
    simt::set_stream_order(order.order, order.seed);
    program();
    const std::vector<simt::Report> found = simt::take_reports();
    INFO("reports:\n" << all_texts(found));
    CHECK(found.empty());
    CHECK(simt::live_objects().empty());
    CHECK(cudaGetLastError() == cudaSuccess);
  }
}

}  // namespace

TEST_CASE("right: a kernel reads pinned memory that a later copy fills") {
  check_right("kernel before a copy to the host", [] {
    Rig r;
    std::vector<float> there(kCount);
    ok(simt::launch(copy_values, 1, kCount, 0, r.a, r.y, r.pinned, kCount));
    ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, cudaMemcpyDeviceToHost, r.a));
    ok(cudaMemcpyAsync(there.data(), r.y, kBytes, cudaMemcpyDeviceToHost, r.a));
    CHECK(there[5] == 5.0f);
    CHECK(r.pinned[5] == 0.0f);
  });
}

TEST_CASE("right: a kernel writes pinned memory that a later copy reads") {
  check_right("kernel before a copy to the device", [] {
    Rig r;
    ok(simt::launch(fill, 1, kCount, 0, r.a, r.pinned, kCount, 3.0f));
    ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, cudaMemcpyHostToDevice, r.a));
    ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, cudaMemcpyDeviceToHost, r.a));
    ok(cudaStreamSynchronize(r.a));
    CHECK(r.pinned[7] == 3.0f);
  });
}

TEST_CASE("right: a kernel writes pinned memory that an earlier copy read") {
  check_right("kernel after a copy to the device", [] {
    Rig r;
    ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, cudaMemcpyHostToDevice, r.a));
    ok(simt::launch(fill, 1, kCount, 0, r.a, r.pinned, kCount, 3.0f));
    ok(cudaStreamSynchronize(r.a));
    CHECK(r.pinned[7] == 3.0f);
    ok(cudaMemcpy(r.pinned, r.x, kBytes, cudaMemcpyDeviceToHost));
    CHECK(r.pinned[7] == 7.0f);
  });
}

TEST_CASE("right: a copy within the host is done when its call returns") {
  check_right("pinned to pinned", [] {
    Rig r;
    float* target = nullptr;
    ok(cudaMallocHost(&target, kBytes));
    ok(cudaMemcpyAsync(target, r.pinned, kBytes, cudaMemcpyHostToHost, r.a));
    CHECK(target[9] == 9.0f);
    r.pinned[9] = -1.0f;
    ok(cudaMemcpyAsync(target, r.pinned, kBytes, cudaMemcpyDefault, r.a));
    CHECK(target[9] == -1.0f);
    ok(cudaFreeHost(target));
  });
}

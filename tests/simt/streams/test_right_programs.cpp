// Correct programs that look like the mistakes in the other files: nothing is reported, and the
// values are those of a GPU.
#include <atomic>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace braid;
using namespace braid::streams_test;

TEST_CASE("right: nothing is reported, in every order") {
  check_right("a kernel reads pinned memory that a later copy fills", [](Rig& r) {
    std::vector<float> there(kCount);
    ok(simt::launch(copy_values, 1, kCount, 0, r.a, r.y, r.pinned, kCount));
    ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, kDeviceToHost, r.a));
    ok(cudaMemcpyAsync(there.data(), r.y, kBytes, kDeviceToHost, r.a));
    CHECK(there[5] == 5.0f);
    CHECK(r.pinned[5] == 0.0f);
  });
  check_right("a kernel writes pinned memory that a later copy reads", [](Rig& r) {
    ok(simt::launch(fill, 1, kCount, 0, r.a, r.pinned, kCount, 3.0f));
    ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, kDeviceToHost, r.a));
    ok(cudaStreamSynchronize(r.a));
    CHECK(r.pinned[7] == 3.0f);
  });
  check_right("a kernel writes pinned memory that an earlier copy read", [](Rig& r) {
    ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    ok(simt::launch(fill, 1, kCount, 0, r.a, r.pinned, kCount, 3.0f));
    ok(cudaStreamSynchronize(r.a));
    CHECK(r.pinned[7] == 3.0f);
    ok(cudaMemcpy(r.pinned, r.x, kBytes, kDeviceToHost));
    CHECK(r.pinned[7] == 7.0f);
  });
  check_right("a copy within the host is done when its call returns", [](Rig& r) {
    float* target = nullptr;
    ok(cudaMallocHost(&target, kBytes));
    ok(cudaMemcpyAsync(target, r.pinned, kBytes, cudaMemcpyHostToHost, r.a));
    CHECK(target[9] == 9.0f);
    r.pinned[9] = -1.0f;
    ok(cudaMemcpyAsync(target, r.pinned, kBytes, cudaMemcpyDefault, r.a));
    CHECK(target[9] == -1.0f);
    ok(cudaFreeHost(target));
  });
  check_right("what a host function says orders the host with all before it", [](Rig& r) {
    std::atomic<bool> flag{false};
    ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    ok(cudaLaunchHostFunc(
        r.a, [](void* data) { *static_cast<std::atomic<bool>*>(data) = true; }, &flag));
    while (!flag) std::this_thread::yield();
    r.pinned[5] = -1.0f;
    ok(cudaMemsetAsync(r.x, 0, kBytes, r.b));
    ok(cudaStreamSynchronize(r.a));
    ok(cudaStreamSynchronize(r.b));
  });
  check_right("a host function may change pinned memory in its turn", [](Rig& r) {
    ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    ok(cudaLaunchHostFunc(r.a, [](void* data) { *static_cast<float*>(data) = 42.0f; }, r.pinned));
    ok(cudaMemcpyAsync(r.y, r.pinned, kBytes, kHostToDevice, r.a));
    ok(cudaStreamSynchronize(r.a));
    float first = 0.0f;
    ok(cudaMemcpy(&first, r.y, sizeof first, kDeviceToHost));
    CHECK(first == 42.0f);
  });
  check_right("a host function waits for the thread that launched it", [](Rig& r) {
    std::atomic<bool> go{false};
    const auto hold = [](void* data) {
      while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::yield();
    };
    ok(cudaLaunchHostFunc(r.a, hold, &go));
    ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 1.0f));
    CHECK(cudaStreamQuery(r.a) == cudaErrorNotReady);
    CHECK(cudaGetLastError() == cudaErrorNotReady);
    ok(simt::launch(fill, 1, kCount, 0, r.b, r.y, kCount, 2.0f));  // another stream continues
    ok(cudaStreamSynchronize(r.b));
    CHECK(cudaStreamQuery(r.a) == cudaErrorNotReady);
    CHECK(cudaGetLastError() == cudaErrorNotReady);
    go = true;
    ok(cudaStreamSynchronize(r.a));
    ok(cudaMemcpy(r.pinned, r.x, kBytes, kDeviceToHost));
    CHECK(r.pinned[3] == 1.0f);
  });
  check_right("rows that lie between one another's do not overlap", [](Rig& r) {
    constexpr std::size_t kPitch = 64, kWidth = 32;
    ok(cudaMemcpy2DAsync(r.x + kWidth / sizeof(float), kPitch, r.x, kPitch, kWidth, kBytes / kPitch,
                         kDeviceToDevice, r.a));
    ok(cudaStreamSynchronize(r.a));
  });
}

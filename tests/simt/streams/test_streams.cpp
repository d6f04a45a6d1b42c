#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace braid;
using namespace braid::streams_test;

TEST_CASE("twin: nothing runs until something needs it") {
  const Fresh fresh;
  Rig r;
  ok(cudaMemsetAsync(r.x, 0, kBytes, r.a));
  ok(cudaStreamSynchronize(r.a));
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 2.0f));
  CHECK(r.x[0] == 0.0f);
  // nothing was queued on b, and the query runs nothing of a
  CHECK(cudaStreamQuery(r.b) == cudaSuccess);
  CHECK(r.x[0] == 0.0f);
  ok(cudaEventRecord(r.event, r.a));
  CHECK(cudaEventQuery(r.event) == cudaErrorNotReady);  // one operation ran: the kernel
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  CHECK(r.x[0] == 2.0f);
  CHECK(cudaEventQuery(r.event) == cudaSuccess);
  check_no_reports();
}

TEST_CASE("twin: a queue has a limit") {
  const Fresh fresh;
  Rig r;
  simt::set_queue_limit(0);
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 2.0f));
  CHECK(r.x[0] == 2.0f);
  simt::set_queue_limit(8);
  for (int i = 0; i < 100; ++i)
    ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, static_cast<float>(i)));
  CHECK(r.x[0] >= 91.0f - 8.0f);
  ok(cudaStreamSynchronize(r.a));
  CHECK(r.x[0] == 99.0f);
  simt::set_queue_limit(1024);
}

namespace {
std::vector<int> order_of_streams(const std::string& order) {
  simt::set_stream_order(order);
  Rig r;
  cudaStream_t streams[4]{};
  float* blocks[4]{};
  for (int i = 0; i < 4; ++i) {
    ok(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    ok(cudaMalloc(&blocks[i], kBytes));
  }
  // Each query runs one operation. The stream whose block is filled first ran first.
  std::vector<int> list;
  for (int i = 0; i < 4; ++i)
    ok(simt::launch(fill, 1, kCount, 0, streams[i], blocks[i], kCount, 1.0f));
  for (int step = 0; step < 4; ++step) {
    (void)cudaStreamQuery(streams[0]);
    for (int i = 0; i < 4; ++i)
      if (blocks[i][0] == 1.0f && std::find(list.begin(), list.end(), i) == list.end())
        list.push_back(i);
    if (static_cast<int>(list.size()) == 4) break;
  }
  for (int i = 0; i < 4; ++i) {
    ok(cudaFree(blocks[i]));
    ok(cudaStreamDestroy(streams[i]));
  }
  return list;
}
}  // namespace

TEST_CASE("twin: the executor's order is fifo, reverse, or random by seed") {
  const Fresh fresh;
  CHECK(order_of_streams("fifo") == std::vector<int>{0, 1, 2, 3});
  CHECK(order_of_streams("reverse") == std::vector<int>{3, 2, 1, 0});
  const auto one = order_of_streams("random:1");
  CHECK(one == order_of_streams("random:1"));
  bool differs = false;
  for (int seed = 2; seed < 8; ++seed)
    differs |= order_of_streams("random:" + std::to_string(seed)) != one;
  CHECK(differs);
}

TEST_CASE("twin: streams have flags, priorities and devices") {
  const Fresh fresh;
  cudaStream_t stream{};
  unsigned flags = 9;
  int priority = 9, device = 9, least = 9, greatest = 9;
  ok(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(least == 0);
  CHECK(greatest < 0);
  ok(cudaSetDevice(1));
  ok(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  ok(cudaSetDevice(0));
  ok(cudaStreamGetFlags(stream, &flags));
  CHECK(flags == cudaStreamNonBlocking);
  ok(cudaStreamGetPriority(stream, &priority));
  CHECK(priority == greatest);
  ok(cudaStreamGetDevice(stream, &device));
  CHECK(device == 1);
  CHECK(simt::live_objects().size() == 1);
  ok(cudaStreamDestroy(stream));
  CHECK(simt::live_objects().empty());
  CHECK(cudaStreamDestroy(nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamCreateWithFlags(&stream, 77) == cudaErrorInvalidValue);
  CHECK(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(0x7777)) ==
        cudaErrorInvalidResourceHandle);
  CHECK(simt::take_reports().size() == 1);
}

TEST_CASE("twin: a destroyed stream finishes its work") {
  const Fresh fresh;
  Rig r;
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 5.0f));
  ok(cudaStreamDestroy(std::exchange(r.a, nullptr)));
  ok(cudaDeviceSynchronize());
  CHECK(r.x[9] == 5.0f);
  check_no_reports();
}

TEST_CASE("twin: the legacy default stream waits for blocking streams and they for it") {
  in_every_order([] {
    Rig r;
    cudaStream_t one{}, two{};
    ok(cudaStreamCreate(&one));
    ok(cudaStreamCreate(&two));
    ok(simt::launch(fill, 1, kCount, 0, one, r.x, kCount, 1.0f));
    ok(simt::launch(copy_values, 1, kCount, 0, nullptr, r.y, r.x, kCount));  // after one
    // after the default stream
    ok(simt::launch(fill, 1, kCount, 0, two, r.x, kCount, 2.0f));
    ok(simt::launch(copy_values, 1, kCount, 0, cudaStreamLegacy, r.x, r.y, kCount));
    ok(cudaStreamSynchronize(nullptr));
    CHECK(r.x[3] == 1.0f);
    ok(simt::launch(fill, 1, kCount, 0, cudaStreamPerThread, r.x, kCount, 4.0f));
    ok(cudaMemcpy(r.y, r.x, kBytes, kDeviceToDevice));
    ok(cudaStreamSynchronize(nullptr));
    CHECK(r.y[3] == 4.0f);
    ok(cudaStreamDestroy(one));
    ok(cudaStreamDestroy(two));
    check_no_reports();
  });
}

TEST_CASE("twin: events") {
  const Fresh fresh;
  Rig r;
  cudaEvent_t start{}, end{};
  ok(cudaEventCreate(&start));
  ok(cudaEventCreate(&end));
  float ms = -1.0f;
  ok(cudaEventQuery(start));  // never recorded: complete
  ok(cudaEventSynchronize(start));
  ok(cudaStreamWaitEvent(r.a, start));
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorInvalidResourceHandle);
  ok(cudaEventRecord(start, r.a));
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 1.0f));
  ok(cudaEventRecord(end, r.a));
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorNotReady);
  ok(cudaEventSynchronize(end));
  ok(cudaEventElapsedTime(&ms, start, end));
  CHECK(ms > 0.0f);
  CHECK(cudaEventElapsedTime(&ms, start, r.event) == cudaErrorInvalidResourceHandle);
  ok(cudaEventRecord(r.event, r.a));
  ok(cudaEventSynchronize(r.event));
  // an event without timing
  CHECK(cudaEventElapsedTime(&ms, start, r.event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventCreateWithFlags(&start, 64) == cudaErrorInvalidValue);
  ok(cudaEventDestroy(start));
  ok(cudaEventDestroy(end));
  check_no_reports();
}

TEST_CASE("twin: a wait keeps the record it saw") {
  in_every_order([] {
    Rig r;
    ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 1.0f));
    r.b_waits_for_a();
    ok(cudaEventRecord(r.event, r.b));  // a new record of the event does not change the wait above
    ok(simt::launch(copy_values, 1, kCount, 0, r.b, r.y, r.x, kCount));
    ok(cudaStreamSynchronize(r.b));
    CHECK(r.y[0] == 1.0f);
    check_no_reports();
  });
}

TEST_CASE("twin: host functions run in their place and may not call the runtime") {
  const Fresh fresh;
  Rig r;
  struct Data {
    float* x;
    float seen = 0.0f;
    cudaError_t inside = cudaSuccess;
  } data{r.x};
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 6.0f));
  ok(cudaLaunchHostFunc(
      r.a,
      [](void* p) {
        auto& d = *static_cast<Data*>(p);
        d.seen = d.x[1];
        int count = 0;
        d.inside = cudaGetDeviceCount(&count);
      },
      &data));
  CHECK(data.seen == 6.0f);
  CHECK(data.inside == cudaErrorNotPermitted);
  CHECK(cudaLaunchHostFunc(r.a, nullptr, nullptr) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

TEST_CASE("twin: host threads use their own streams at once") {
  const Fresh fresh;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      const auto fine = [&wrong](cudaError_t e) { wrong += e != cudaSuccess; };
      cudaStream_t stream{};
      float *device = nullptr, *pinned = nullptr;
      fine(cudaSetDevice(t % 2));
      fine(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      fine(cudaMallocAsync(&device, kBytes, stream));
      fine(cudaMallocHost(&pinned, kBytes));
      for (int i = 0; i < 25; ++i) {
        fine(simt::launch(fill, 1, kCount, 0, stream, device, kCount,
                          static_cast<float>(t * 100 + i)));
        fine(cudaMemcpyAsync(pinned, device, kBytes, kDeviceToHost, stream));
        fine(cudaStreamSynchronize(stream));
        wrong += pinned[kCount - 1] != static_cast<float>(t * 100 + i);
      }
      fine(cudaFreeAsync(device, stream));
      fine(cudaStreamSynchronize(stream));
      fine(cudaFreeHost(pinned));
      fine(cudaStreamDestroy(stream));
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  check_no_reports();
  CHECK(simt::live_objects().empty());
}

// Stream capture and graphs of the emulation.
#include <algorithm>
#include <thread>

#include "rig.hpp"

using namespace braid;
using namespace braid::streams_test;

namespace {

constexpr auto kGlobal = cudaStreamCaptureModeGlobal, kLocal = cudaStreamCaptureModeThreadLocal,
               kRelaxed = cudaStreamCaptureModeRelaxed;

void launch_fill(cudaStream_t stream, float* to, float value) {
  ok(simt::launch(fill, 1, kCount, 0, stream, to, kCount, value));
}
void launch_copy(cudaStream_t stream, float* to, const float* from) {
  ok(simt::launch(copy_values, 1, kCount, 0, stream, to, from, kCount));
}

/// Captures what `work` does on the stream, as a graph that can be launched.
struct Captured {
  cudaGraphExec_t instance{};
  template <class F> Captured(cudaStream_t stream, F&& work) {
    ok(cudaStreamBeginCapture(stream, kLocal));
    work();
    cudaGraph_t graph{};
    ok(cudaStreamEndCapture(stream, &graph));
    ok(cudaGraphInstantiate(&instance, graph));
    ok(cudaGraphDestroy(graph));
  }
  ~Captured() { (void)cudaGraphExecDestroy(instance); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  void launch(cudaStream_t stream) const { ok(cudaGraphLaunch(instance, stream)); }
};

float first_of(Rig& r, const float* memory) {
  ok(cudaMemcpyAsync(r.pinned, memory, kBytes, kDeviceToHost, r.a));
  ok(cudaStreamSynchronize(r.a));
  return r.pinned[0];
}

}  // namespace

TEST_CASE("capture: nothing runs until the graph is launched, each time with present values") {
  check_right("kernels, copies and memsets", [](Rig& r) {
    float* z = nullptr;
    ok(cudaMalloc(&z, kBytes));
    ok(cudaMemset(z, 0, kBytes));
    ok(cudaDeviceSynchronize());
    launch_fill(r.a, r.x, 1.0f);
    {
      const Captured graph(r.a, [&] {
        ok(cudaMemsetAsync(r.y, 0, kBytes, r.a));
        launch_copy(r.a, r.y, r.x);
        ok(cudaMemcpyAsync(z, r.y, kBytes, kDeviceToDevice, r.a));
      });
      CHECK(first_of(r, z) == 0.0f);
      graph.launch(r.a);
      CHECK(first_of(r, z) == 1.0f);
      launch_fill(r.a, r.x, 2.0f);
      graph.launch(r.a);
      graph.launch(r.a);
      CHECK(first_of(r, z) == 2.0f);
      r.a_waits_for_b();
      graph.launch(r.a);
      r.b_waits_for_a();
      graph.launch(r.b);  // ordered after the launch on the other stream in any case
      ok(cudaStreamSynchronize(r.b));
    }
    ok(cudaFree(z));
  });
  check_right("a copy reads pinned memory at every launch", [](Rig& r) {
    const Captured graph(r.a,
                         [&] { ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a)); });
    for (const float value : {3.0f, 4.0f}) {
      r.pinned[0] = value;
      graph.launch(r.a);
      ok(cudaStreamSynchronize(r.a));
      float first = 0;
      ok(cudaMemcpy(&first, r.x, sizeof first, kDeviceToHost));
      CHECK(first == value);
    }
  });
  check_right("streams that fork and join", [](Rig& r) {
    launch_fill(r.a, r.x, 5.0f);
    const Captured graph(r.a, [&] {
      r.b_waits_for_a();
      launch_copy(r.b, r.y, r.x);
      r.a_waits_for_b();
      launch_fill(r.a, r.x, 6.0f);
    });
    graph.launch(r.a);
    CHECK(first_of(r, r.y) == 5.0f);
    graph.launch(r.a);
    CHECK(first_of(r, r.y) == 6.0f);
  });
  check_right("an allocation of another thread's, and one in the relaxed mode", [](Rig& r) {
    const Captured graph(r.a, [&] {
      float* block = nullptr;
      std::thread([&] { ok(cudaMalloc(&block, kBytes)); }).join();
      cudaStreamCaptureMode mode = kRelaxed;
      ok(cudaThreadExchangeStreamCaptureMode(&mode));
      CHECK(mode == kGlobal);
      ok(cudaFree(block));
      ok(cudaThreadExchangeStreamCaptureMode(&mode));
      CHECK(mode == kRelaxed);
      launch_fill(r.a, r.x, 1.0f);
    });
    graph.launch(r.a);
    ok(cudaStreamSynchronize(r.a));
  });
}

TEST_CASE("capture: a graph without a dependency that it needs is reported") {
  in_every_order([] {
    Rig r;
    const Captured graph(r.a, [&] {
      r.b_waits_for_a();
      launch_fill(r.b, r.x, 1.0f);
      launch_fill(r.a, r.x, 2.0f);  // not ordered with the other
      r.a_waits_for_b();
    });
    graph.launch(r.a);
    const auto reports = simt::take_reports();
    REQUIRE(!reports.empty());
    CHECK(reports[0].kind == simt::ReportKind::race);
  });
  in_every_order([] {
    Rig r;
    const Captured graph(r.a, [&] { launch_fill(r.a, r.x, 1.0f); });
    graph.launch(r.a);
    launch_fill(r.b, r.x, 2.0f);  // not ordered with the graph
    const auto reports = simt::take_reports();
    REQUIRE(!reports.empty());
    CHECK(reports[0].kind == simt::ReportKind::race);
  });
}

TEST_CASE("capture: what CUDA forbids is refused and invalidates the capture") {
  struct Row {
    const char* name;
    cudaError_t code;
    cudaError_t (*call)(Rig& r);
  };
  const Row rows[] = {
      {"cudaStreamSynchronize", cudaErrorStreamCaptureUnsupported,
       [](Rig& r) { return cudaStreamSynchronize(r.a); }},
      {"cudaStreamQuery", cudaErrorStreamCaptureUnsupported,
       [](Rig& r) { return cudaStreamQuery(r.a); }},
      {"cudaDeviceSynchronize", cudaErrorStreamCaptureUnsupported,
       [](Rig&) { return cudaDeviceSynchronize(); }},
      {"cudaMalloc", cudaErrorStreamCaptureUnsupported,
       [](Rig&) {
         void* p = nullptr;
         return cudaMalloc(&p, kBytes);
       }},
      {"cudaFree", cudaErrorStreamCaptureUnsupported, [](Rig& r) { return cudaFree(r.x); }},
      {"cudaHostAlloc", cudaErrorStreamCaptureUnsupported,
       [](Rig&) {
         void* p = nullptr;
         return cudaHostAlloc(&p, kBytes, 0);
       }},
      {"cudaFreeHost", cudaErrorStreamCaptureUnsupported,
       [](Rig& r) { return cudaFreeHost(r.pinned); }},
      {"cudaMemcpy", cudaErrorStreamCaptureUnsupported,
       [](Rig& r) { return cudaMemcpy(r.y, r.x, kBytes, kDeviceToDevice); }},
      {"cudaEventQuery", cudaErrorCapturedEvent,
       [](Rig& r) {
         ok(cudaEventRecord(r.event, r.a));
         return cudaEventQuery(r.event);
       }},
      {"cudaEventSynchronize", cudaErrorCapturedEvent,
       [](Rig& r) {
         ok(cudaEventRecord(r.event, r.a));
         return cudaEventSynchronize(r.event);
       }},
      {"a wait for work that is not captured", cudaErrorStreamCaptureIsolation,
       [](Rig& r) {
         ok(cudaEventRecord(r.event, r.b));
         return cudaStreamWaitEvent(r.a, r.event);
       }},
      {"cudaLaunchHostFunc", cudaErrorStreamCaptureUnsupported,
       [](Rig& r) { return cudaLaunchHostFunc(r.a, [](void*) {}, nullptr); }},
      {"cudaMallocAsync", cudaErrorStreamCaptureUnsupported,
       [](Rig& r) {
         void* p = nullptr;
         return cudaMallocAsync(&p, kBytes, r.a);
       }},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const Fresh fresh;
    {
      Rig r;
      ok(cudaStreamBeginCapture(r.a, kLocal));
      CHECK(row.call(r) == row.code);
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      ok(cudaStreamIsCapturing(r.a, &status));
      CHECK(status == cudaStreamCaptureStatusInvalidated);
      cudaGraph_t graph{};
      CHECK(cudaStreamEndCapture(r.a, &graph) == cudaErrorStreamCaptureInvalidated);
      CHECK(graph == nullptr);
      (void)cudaGetLastError();
      launch_fill(r.a, r.x, 1.0f);  // the stream queues work again
      ok(cudaStreamSynchronize(r.a));
    }
    check_clean();
  }
}

TEST_CASE("capture: the rules of beginning, joining and ending") {
  const Fresh fresh;
  {
    Rig r;
    cudaGraph_t graph{};
    cudaStreamCaptureStatus status{};
    CHECK(cudaStreamEndCapture(r.a, &graph) == cudaErrorIllegalState);
    CHECK(cudaStreamBeginCapture(cudaStreamLegacy, kLocal) == cudaErrorStreamCaptureUnsupported);
    ok(cudaStreamBeginCapture(r.a, kLocal));
    CHECK(cudaStreamBeginCapture(r.a, kLocal) == cudaErrorIllegalState);
    r.b_waits_for_a();
    ok(cudaStreamIsCapturing(r.b, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    launch_fill(r.b, r.x, 1.0f);
    CHECK(cudaStreamEndCapture(r.a, &graph) == cudaErrorStreamCaptureUnjoined);
    ok(cudaStreamIsCapturing(r.b, &status));
    CHECK(status == cudaStreamCaptureStatusNone);

    ok(cudaStreamBeginCapture(r.a, kLocal));
    r.b_waits_for_a();
    CHECK(cudaStreamEndCapture(r.b, &graph) == cudaErrorStreamCaptureUnmatched);
    CHECK(cudaStreamEndCapture(r.a, &graph) == cudaErrorStreamCaptureInvalidated);

    ok(cudaStreamBeginCapture(r.a, kLocal));
    std::thread([&] {
      cudaGraph_t none{};
      CHECK(cudaStreamEndCapture(r.a, &none) == cudaErrorStreamCaptureWrongThread);
    }).join();
    CHECK(cudaStreamEndCapture(r.a, &graph) == cudaErrorStreamCaptureInvalidated);

    ok(cudaStreamBeginCapture(r.a, kGlobal));
    std::thread([&] {
      void* p = nullptr;
      CHECK(cudaMalloc(&p, kBytes) == cudaErrorStreamCaptureUnsupported);
    }).join();
    CHECK(cudaStreamEndCapture(r.a, &graph) == cudaErrorStreamCaptureInvalidated);

    ok(cudaStreamBeginCapture(r.a, kLocal));
    ok(cudaStreamBeginCapture(r.b, kLocal));
    ok(cudaEventRecord(r.event, r.b));
    CHECK(cudaStreamWaitEvent(r.a, r.event) == cudaErrorStreamCaptureMerge);
    CHECK(cudaStreamEndCapture(r.a, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(r.b, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamWaitEvent(r.a, r.event) == cudaErrorCapturedEvent);

    cudaStream_t blocking{};
    ok(cudaStreamCreate(&blocking));
    ok(cudaStreamBeginCapture(blocking, kRelaxed));
    CHECK(cudaMemsetAsync(r.x, 0, kBytes, nullptr) == cudaErrorStreamCaptureImplicit);
    CHECK(cudaStreamEndCapture(blocking, &graph) == cudaErrorStreamCaptureInvalidated);
    ok(cudaStreamDestroy(blocking));
    (void)cudaGetLastError();

    ok(cudaStreamBeginCapture(r.a, kLocal));
    launch_fill(r.a, r.x, 1.0f);
    ok(cudaStreamEndCapture(r.a, &graph));
    const auto live = simt::live_objects();
    CHECK(std::count_if(live.begin(), live.end(),
                        [](const auto& object) { return object.what == "graph"; }) == 1);
    ok(cudaGraphDestroy(graph));
  }
  check_no_reports();
  CHECK(simt::live_objects().empty());
}

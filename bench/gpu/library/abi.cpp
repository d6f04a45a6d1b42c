#include "library/abi.hpp"

#include <chrono>
#include <cstring>
#include <span>

#include <braid/kernels/cuda.hpp>

#include "library/replicas.hpp"
#include "simt/cuda_runtime.hpp"

namespace bench::gpu {
namespace {

using braid::Tensor;
using Clock = std::chrono::steady_clock;

braid::DType type_of(const std::string& name) {
  for (const braid::DType type :
       {braid::DType::float16, braid::DType::bfloat16, braid::DType::float32, braid::DType::float64,
        braid::DType::int64})
    if (braid::str(type) == name) return type;
  throw braid::ArgumentError(
      "bb_tensor: expected float16, bfloat16, float32, float64 or int64, got " + name);
}

Tensor* keep(Tensor t) { return new Tensor(std::move(t)); }
double micros(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}
void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess)
    throw braid::Error(std::string(call) + ": " + cudaGetErrorString(error));
}

/// A CUDA event with timing.
struct Mark {
  cudaEvent_t event{};
  Mark() { check(cudaEventCreate(&event), "cudaEventCreate"); }
  ~Mark() { (void)cudaEventDestroy(event); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
};

/// Returns the time of one run in us by the host's clock; `whole` includes the wait for the last
/// run.
double host_us(void* work, int count, bool whole) {
  return guarded(kFailed, [&] {
    Work& w = *static_cast<Work*>(work);
    braid::synchronize(device());
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) w.run();
    const double queued = micros(start);
    braid::synchronize(device());
    return (whole ? micros(start) : queued) / count;
  });
}

}  // namespace

std::string& last_error() {
  static std::string text;
  return text;
}

BRAID_BENCH_API const char* bb_error() { return last_error().c_str(); }

BRAID_BENCH_API int bb_emulated() { return braid::cuda::is_emulated() ? 1 : 0; }

/// Returns the number of CUDA devices; 0, with the reason in bb_error(), if there is none.
BRAID_BENCH_API int bb_devices() {
  last_error() = braid::cuda::unavailable_reason();
  return braid::device_count(braid::DeviceType::cuda);
}

/// Returns a description of the device.
BRAID_BENCH_API const char* bb_description() {
  static std::string text;
  return guarded<const char*>(nullptr, [] {
    text = braid::device_context(device()).backend->description();
    return text.c_str();
  });
}

/// Returns the number of multiprocessors of the first GPU; -1 on failure.
BRAID_BENCH_API int bb_processors() {
  return guarded(-1, [] {
    int count = 0;
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0),
          "cudaDeviceGetAttribute");
    return count;
  });
}

BRAID_BENCH_API const char* bb_version() {
  static const std::string text(braid::version());
  return text.c_str();
}

/// Returns normally distributed numbers times `scale`, on the device.
BRAID_BENCH_API void* bb_tensor(const char* type, int rank, const std::int64_t* sizes, double scale,
                                std::uint64_t seed) {
  return guarded<Tensor*>(nullptr, [&] {
    braid::manual_seed(seed);
    const braid::NoGrad guard;
    const Tensor numbers =
        braid::randn(braid::Shape(std::span(sizes, static_cast<std::size_t>(rank))),
                     {.device = device(), .dtype = braid::DType::float32});
    const Tensor typed = (numbers * scale).to(device(), type_of(type));
    braid::synchronize(device());  // PyTorch reads it on another stream
    return keep(typed);
  });
}

/// Returns `count` classes in [0, classes), int64, on the device.
BRAID_BENCH_API void* bb_labels(std::int64_t count, std::int64_t classes, std::uint64_t seed) {
  return guarded<Tensor*>(nullptr, [&] {
    braid::manual_seed(seed);
    const Tensor labels = braid::randint(0, classes, {count}, {.device = device()});
    braid::synchronize(device());
    return keep(labels);
  });
}

BRAID_BENCH_API void* bb_data(const void* tensor) {
  return guarded<void*>(nullptr, [&] { return static_cast<const Tensor*>(tensor)->id()->data(); });
}
BRAID_BENCH_API std::int64_t bb_numel(const void* tensor) {
  return static_cast<const Tensor*>(tensor)->numel();
}
BRAID_BENCH_API int bb_rank(const void* tensor) {
  return static_cast<int>(static_cast<const Tensor*>(tensor)->dim());
}
BRAID_BENCH_API std::int64_t bb_size(const void* tensor, int dim) {
  return static_cast<const Tensor*>(tensor)->size(dim);
}
BRAID_BENCH_API int bb_copy_out(const void* tensor, void* host, std::int64_t bytes) {
  return guarded(-1, [&] {
    const Tensor here =
        static_cast<const Tensor*>(tensor)->detach().to(braid::Device()).contiguous();
    const auto size = static_cast<std::size_t>(here.numel()) * braid::size_of(here.dtype());
    if (static_cast<std::size_t>(bytes) != size)
      throw braid::ArgumentError(braid::str("bb_copy_out: expected ", size, " bytes, got ", bytes));
    std::memcpy(host, here.id()->data(), size);
    return 0;
  });
}
BRAID_BENCH_API void bb_free(void* tensor) { delete static_cast<Tensor*>(tensor); }

/// Returns ‖got − want‖ / ‖want‖, computed in float64 on the device. NaN and infinities make the
/// result NaN, so that it passes no comparison.
BRAID_BENCH_API double bb_error_of(const void* got, const void* want) {
  return guarded(kFailed, [&] {
    const braid::NoGrad guard;
    const Tensor w = static_cast<const Tensor*>(want)->to(device(), braid::DType::float64);
    const Tensor d =
        static_cast<const Tensor*>(got)->to(device(), braid::DType::float64).reshape(w.shape()) - w;
    return std::sqrt((d * d).sum().item<double>() / (w * w).sum().item<double>());
  });
}

/// Selects the engine of matrix products: `automatic`, `braid` or `cublas`.
BRAID_BENCH_API int bb_engine(const char* name) {
  return guarded(-1, [&] {
    const std::string engine = name;
    using braid::cuda::GemmEngine;
    if (engine != "automatic" && engine != "braid" && engine != "cublas")
      throw braid::ArgumentError("bb_engine: expected automatic, braid or cublas, got " + engine);
    braid::cuda::set_gemm_engine(engine == "cublas"  ? GemmEngine::cublas
                                 : engine == "braid" ? GemmEngine::braid
                                                     : GemmEngine::automatic);
    return 0;
  });
}

/// Sets the precision of float32 on tensor cores: `exact`, `tf32x3` or `tf32`.
BRAID_BENCH_API int bb_precision(const char* name) {
  return guarded(-1, [&] {
    using braid::Float32Precision;
    const std::string precision = name;
    if (precision != "exact" && precision != "tf32x3" && precision != "tf32")
      throw braid::ArgumentError("bb_precision: expected exact, tf32x3 or tf32, got " + precision);
    braid::set_float32_precision(precision == "exact"    ? Float32Precision::exact
                                 : precision == "tf32x3" ? Float32Precision::tf32x3
                                                         : Float32Precision::tf32);
    return 0;
  });
}

BRAID_BENCH_API int bb_synchronize() {
  return guarded(-1, [] {
    braid::synchronize(device());
    return 0;
  });
}
BRAID_BENCH_API int bb_empty_cache() {
  return guarded(-1, [] {
    braid::empty_cache(device());
    return 0;
  });
}

/// Returns the bytes that tensors on the device have, or with `peak` the most since bb_reset_peak;
/// -1 on failure.
BRAID_BENCH_API std::int64_t bb_memory(int peak) {
  return guarded(std::int64_t{-1}, [&] {
    const braid::MemoryStats stats = braid::memory_stats(device());
    return static_cast<std::int64_t>(peak != 0 ? stats.peak : stats.in_use);
  });
}
BRAID_BENCH_API int bb_reset_peak() {
  return guarded(-1, [] {
    braid::reset_peak_memory(device());
    return 0;
  });
}

/// Creates work on `sets` sets of `operands` tensors each, which it uses in turn: tensors[set *
/// operands + i]. See make_work for the names.
BRAID_BENCH_API void* bb_work(const char* kind, int sets, int operands, void* const* tensors) {
  return guarded<Work*>(nullptr, [&] {
    std::vector<std::vector<Tensor>> all(static_cast<std::size_t>(sets));
    for (std::size_t s = 0; s < all.size(); ++s)
      for (int i = 0; i < operands; ++i)
        all[s].push_back(*static_cast<const Tensor*>(tensors[static_cast<int>(s) * operands + i]));
    Work work = make_work(kind, all);
    work.sets = all.size();
    return new Work(std::move(work));
  });
}
BRAID_BENCH_API void bb_free_work(void* work) { delete static_cast<Work*>(work); }

/// Runs the work once with the first operands and returns its result as a new tensor.
BRAID_BENCH_API void* bb_result(void* work) {
  return guarded<Tensor*>(nullptr, [&] {
    Work& w = *static_cast<Work*>(work);
    w.next = 0;
    // The allocator's cache gives the second run the memory of the first. It is filled with NaN, so
    // that elements the kernel does not write are detected.
    if (w.fresh) {
      w.run();
      w.result.fill_(std::numeric_limits<double>::quiet_NaN());
      w.result = Tensor();
      w.next = 0;
    }
    w.run();
    braid::synchronize(device());
    return keep(w.result.detach());
  });
}

/// Returns the time of one run in us, by CUDA events around `count` runs.
BRAID_BENCH_API double bb_events_us(void* work, int count) {
  return guarded(kFailed, [&] {
    Work& w = *static_cast<Work*>(work);
    const Mark start, end;
    auto* const stream = static_cast<cudaStream_t>(braid::current_stream(device()).native());
    check(cudaEventRecord(start.event, stream), "cudaEventRecord");
    for (int i = 0; i < count; ++i) w.run();
    check(cudaEventRecord(end.event, stream), "cudaEventRecord");
    braid::synchronize(device());
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start.event, end.event), "cudaEventElapsedTime");
    return static_cast<double>(ms) * 1e3 / count;
  });
}
/// Returns the time of one run in us by the host's clock, including the wait for the last run.
BRAID_BENCH_API double bb_wall_us(void* work, int count) { return host_us(work, count, true); }
/// Returns the time in us that the host needs to queue one run; the wait for the queued work is not
/// included.
BRAID_BENCH_API double bb_enqueue_us(void* work, int count) { return host_us(work, count, false); }

/// Returns the JSON text of predicted_steps, or null. Needs as many logical devices.
BRAID_BENCH_API const char* bb_predicted_steps(int devices, std::int64_t width, std::int64_t rows,
                                               int rounds, int steps) {
  static std::string text;
  return guarded<const char*>(nullptr, [&] {
    text = predicted_steps(devices, width, rows, rounds, steps);
    return text.c_str();
  });
}

BRAID_BENCH_API double bb_call_us(const char* what, std::int64_t bytes, int count) {
  return guarded(kFailed, [&] { return time_call(what, static_cast<std::size_t>(bytes), count); });
}

}  // namespace bench::gpu

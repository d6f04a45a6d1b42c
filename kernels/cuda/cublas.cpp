#include "cuda/cublas.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/environment.hpp>
#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/internal/kernel_args/gemm.hpp>
#include <braid/kernels/cuda.hpp>

#include "cuda/cublas_api.hpp"
#include "cuda/gemm_plan.hpp"
#include "cuda/kernels.hpp"
#include "cuda/launch.hpp"
#include "gemm_epilogue.hpp"
#include "gemm_sums.hpp"

namespace braid::cuda {
namespace {

using cublas::Functions;
using cublas::Handle;
using cublas::Status;

const char* name_of(Status status) {
  switch (status) {
    case 1: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3: return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7: return "CUBLAS_STATUS_INVALID_VALUE";
    case 8: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case 11: return "CUBLAS_STATUS_MAPPING_ERROR";
    case 13: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case 16: return "CUBLAS_STATUS_LICENSE_ERROR";
    default: return "a status of no known name";
  }
}

void check(Status status, const char* function, Device device, const LaunchScope& scope) {
  if (status == cublas::kSuccess) return;
  scope.check(cudaPeekAtLastError());  // a device error is more informative
  if (status == cublas::kAllocFailed)
    throw OutOfMemoryError(device, 0, 0, 0, 0, str(function, ": ", name_of(status)));
  throw CudaError(str("matmul: ", function, ": expected success on ", device, ", got ",
                      name_of(status), " (", status, ")"),
                  device, status, name_of(status));
}

const Functions& library() {
  // after a failure, the next call retries
  static const Functions functions = cublas::library_functions();
  return functions;
}

constexpr int kUnset = -1;
std::atomic<int> chosen{kUnset};

GemmEngine from_environment() {
  return static_cast<GemmEngine>(
      choice_from_environment("BRAID_GEMM", {"automatic", "braid", "cublas"}));
}

/// A device's handle. It holds the stream and the workspace between calls, so it has one user at a
/// time.
struct Context {
  std::mutex mutex;
  std::atomic<Handle> handle = nullptr;
  std::atomic<bool> useless = false;  // the engine `automatic` has tried to make a handle in vain
};

Context& context_of(Device device) {
  // one for each possible device; never destroyed, like the devices
  static Context* const contexts = new Context[64];
  return contexts[device.index()];
}

/// Makes a handle for the current device.
Status make_handle(Handle& handle, Device device) {
  const Functions& f = library();
  Status status = f.create(&handle);
  if (status == cublas::kAllocFailed || status == cublas::kNotInitialized) {
    // Braid's cache may hold the memory that it needs
    device_context(device).backend->empty_cache();
    status = f.create(&handle);
  }
  if (status != cublas::kSuccess) return status;
  status = f.set_math_mode(handle, cublas::kMathDefault | cublas::kMathFullReductions);
  if (status != cublas::kSuccess) (void)f.destroy(handle);
  return status;
}

/// Makes the device's handle, if it has none. If cuBLAS cannot, this is an error, but with the
/// engine `automatic` a warning: Braid's own kernels compute the products from then on. Returns
/// whether there is a handle.
bool has_handle(Context& own, GemmEngine engine, Stream& stream) {
  if (own.handle.load(std::memory_order_acquire) != nullptr) return true;
  const bool automatic = engine == GemmEngine::automatic;
  if (automatic && own.useless.load(std::memory_order_relaxed)) return false;
  const LaunchScope scope("matmul", stream);
  const Device device = stream.device();
  Status status = cublas::kSuccess;
  {
    const std::lock_guard lock(own.mutex);
    if (own.handle.load(std::memory_order_relaxed) != nullptr) return true;
    Handle handle = nullptr;
    status = make_handle(handle, device);
    if (status == cublas::kSuccess) {
      own.handle.store(handle, std::memory_order_release);
      return true;
    }
  }
  if (!automatic) check(status, "cublasCreate", device, scope);
  (void)cudaGetLastError();  // an error of the device itself stays, and the next launch reports it
  if (!own.useless.exchange(true))
    warn(str("matmul: cuBLAS does not work on ", device, " (cublasCreate: ", name_of(status),
             "): Braid's own kernels compute its products"));
  return false;
}

/// One operand in cuBLAS's column-major view, where it appears transposed; ld is the distance
/// between columns.
struct Matrix {
  const void* data;
  std::int64_t rows, columns, ld, batch;  // column-major
  bool turned;
};

/// cuBLAS does not read the leading dim of one column but checks it, so here it is made large
/// enough.
bool fits(Matrix& m) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (m.columns <= 1) m.ld = std::max(m.ld, m.rows);
  return m.rows <= kMost && m.columns <= kMost && m.ld <= kMost &&
         m.ld >= std::max<std::int64_t>(1, m.rows);
}

/// True if cuBLAS adds the product to C: to its old elements, or to what begin() writes there.
bool adds(const GemmArgs& args) {
  return args.accumulate || args.bias != nullptr || args.epilogue == Epilogue::add;
}

/// True if the epilogue is part of the product, so that its results are rounded once less.
bool includes_epilogue(const GemmArgs& args) {
  return args.epilogue == Epilogue::add && !args.accumulate && size_of(args.dtype) == 2;
}

/// Writes to C what the product is added to: the bias in every row, and the matrix of the epilogue
/// `add`.
void begin(const GemmArgs& args, Stream& stream) {
  const DType type = args.dtype;
  const Loop of_bias = loop_over_result(args, 0, 0, 1);
  const bool adds_other = args.epilogue == Epilogue::add;
  if (adds_other && args.bias != nullptr)
    cuda::binary({BinaryOp::add, type, args.c, args.bias, args.other, 0, 1, of_bias}, stream);
  else if (adds_other)
    cuda::copy({type, type, args.c, args.other, loop_over_result(args, args.batch_c, args.ldc, 1)},
               stream);
  else if (args.bias != nullptr) cuda::copy({type, type, args.c, args.bias, of_bias}, stream);
}

/// The kernels of an epilogue's pass.
struct Kernels {
  Stream& stream;
  void unary(const UnaryArgs& args) const { cuda::unary(args, stream); }
  void binary(const BinaryArgs& args) const { cuda::binary(args, stream); }
  void copy(const CopyArgs& args) const { cuda::copy(args, stream); }
  void activation(const ActivationArgs& args) const { cuda::activation(args, stream); }
};

}  // namespace

GemmEngine gemm_engine() {
  int engine = chosen.load(std::memory_order_relaxed);
  if (engine == kUnset) {
    chosen.compare_exchange_strong(engine, static_cast<int>(from_environment()));
    engine = chosen.load(std::memory_order_relaxed);
  }
  return static_cast<GemmEngine>(engine);
}

bool cublas_computes(GemmEngine engine, DType dtype, Float32Precision precision, bool adds,
                     bool (*opens)()) {
  const bool single = dtype == DType::float32;
  const bool tensor_cores = size_of(dtype) == 2 || (single && precision == Float32Precision::tf32);
  switch (engine) {
    case GemmEngine::automatic: return tensor_cores && !(adds && size_of(dtype) == 2) && opens();
    case GemmEngine::cublas:
      return tensor_cores || dtype == DType::float64 ||
             (single && precision == Float32Precision::exact);
    case GemmEngine::braid: return false;
  }
  return false;
}

void set_gemm_engine(GemmEngine engine) {
  if (engine == GemmEngine::cublas) (void)library();
  chosen.store(static_cast<int>(engine), std::memory_order_relaxed);
}

namespace {

/// C = op(A) op(B) (+ bias, + C, + the matrix of the epilogue `add`) by cuBLAS. Returns false if
/// cuBLAS cannot compute it, or, with the engine `automatic`, should not: it rounds a product of 16
/// bits before it adds it to C, and the error of a sum that is rounded twice is 1.41 times as
/// large.
bool multiply(const GemmArgs& args, Stream& stream) {
  const GemmEngine engine = gemm_engine();
  const Float32Precision precision = precision_for(args.k, float32_precision());
  if (!cublas_computes(engine, args.dtype, precision, adds(args), &cublas::is_installed) ||
      args.k == 0 || args.batch > std::numeric_limits<int>::max() ||
      (engine == GemmEngine::automatic && is_tiny(args)))
    return false;
  if (args.batch > 1 && args.batch_c == 0 && adds(args) && !args.accumulate) return false;
  // A row-major [rows, columns] matrix is a column-major [columns, rows] one. So the first operand
  // is B, and the transposed C that cuBLAS writes is row-major C.
  Matrix first{args.b, args.tb ? args.k : args.n, args.tb ? args.n : args.k, args.ldb, args.batch_b,
               args.tb};
  Matrix second{
      args.a, args.ta ? args.m : args.k, args.ta ? args.k : args.m, args.lda, args.batch_a,
      args.ta};
  Matrix result{args.c, args.n, args.m, args.ldc, args.batch_c, false};
  if (!fits(first) || !fits(second) || !fits(result)) return false;

  const Device device = stream.device();
  Context& own = context_of(device);
  if (!has_handle(own, engine, stream)) return false;
  const Functions& f = library();
  begin(args, stream);
  const Scratch workspace(f.workspace_bytes, stream);
  const LaunchScope scope("matmul", stream);
  const std::lock_guard lock(own.mutex);
  const Handle handle = own.handle.load(std::memory_order_relaxed);
  // set_stream resets the workspace, so it comes first
  check(f.set_stream(handle, scope.stream()), "cublasSetStream", device, scope);
  check(f.set_workspace(handle, workspace.data(), f.workspace_bytes), "cublasSetWorkspace", device,
        scope);
  const auto operation = [](const Matrix& m) {
    return m.turned ? cublas::kTranspose : cublas::kNoTranspose;
  };
  const auto small = [](std::int64_t v) { return static_cast<int>(v); };
  const int m = small(args.n), n = small(args.m), k = small(args.k), batch = small(args.batch);
  const auto typed = [&]<class T>(cublas::GemmStridedBatched<T>* function, const char* name) {
    const T alpha = 1, beta = adds(args) ? T{1} : T{0};
    check(function(handle, operation(first), operation(second), m, n, k, &alpha,
                   static_cast<const T*>(first.data), small(first.ld), first.batch,
                   static_cast<const T*>(second.data), small(second.ld), second.batch, &beta,
                   static_cast<T*>(args.c), small(result.ld), result.batch, batch),
          name, device, scope);
  };
  const bool tf32 = args.dtype == DType::float32 && precision == Float32Precision::tf32;
  if (args.dtype == DType::float32 && !tf32) {
    typed(f.sgemm, "cublasSgemmStridedBatched");
  } else if (args.dtype == DType::float64) {
    typed(f.dgemm, "cublasDgemmStridedBatched");
  } else {
    const int type = tf32                           ? cublas::kFloat32
                     : args.dtype == DType::float16 ? cublas::kFloat16
                                                    : cublas::kBfloat16;
    const float alpha = 1, beta = adds(args) ? 1.0f : 0.0f;
    check(
        f.gemm_ex(handle, operation(first), operation(second), m, n, k, &alpha, first.data, type,
                  small(first.ld), first.batch, second.data, type, small(second.ld), second.batch,
                  &beta, args.c, type, small(result.ld), result.batch, batch,
                  tf32 ? cublas::kComputeTf32 : cublas::kComputeFloat32, cublas::kDefaultAlgorithm),
        "cublasGemmStridedBatchedEx", device, scope);
  }
  return true;
}

}  // namespace

void prepare_cublas(Stream& stream) {
  const GemmEngine engine = gemm_engine();
  if (engine == GemmEngine::cublas || (engine == GemmEngine::automatic && cublas::is_installed()))
    (void)has_handle(context_of(stream.device()), engine, stream);
}

bool cublas_gemm(const GemmArgs& args, Stream& stream) {
  const bool whole = includes_epilogue(args);
  if (!multiply(whole ? args : without_epilogue(args), stream)) return false;
  if (args.sum_a != nullptr) cuda::reduce(row_sums_of_a(args), stream);
  if (!whole) run_epilogue(args, Kernels{stream});
  return true;
}

}  // namespace braid::cuda

#include "cpu/gemm_library.hpp"

#if defined(BRAID_WITH_ONEDNN)

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include <braid/core/error.hpp>

#include "cpu/onednn.hpp"
#include "cpu/runtime/isa.hpp"
#include "cpu/runtime/scratch.hpp"

namespace braid::cpu {

namespace {

using onednn::engine, onednn::OneThread, onednn::Visit;

constexpr std::size_t kPrimitives = 64;  // kept per thread

std::atomic<bool> library_on{true};

constinit thread_local bool t_closed = false;  // this thread's primitives were destroyed

[[noreturn]] void refuse(const char* call, int status) {
  throw InternalError(str("matmul: expected oneDNN's ", call, " to succeed, got status ", status));
}

// The key of a matmul primitive: A [m, k] and B [n, k] (transposed) give a contiguous C [m, n].
struct Key {
  std::int64_t m, n, k, lda, ldb;
  bool operator==(const Key&) const = default;
};

struct Matmul {
  Key key{};
  dnnl::matmul primitive;
  dnnl::memory a, b, c;
};

// A thread's primitives, found by shape; a new one replaces the oldest.
struct Primitives {
  dnnl::stream stream{engine()};
  // not in the object: a library that is opened late has little room for thread-local memory
  std::vector<std::unique_ptr<Matmul>> kept = std::vector<std::unique_ptr<Matmul>>(kPrimitives);
  std::size_t used = 0, next = 0;
  Matmul* last = nullptr;
  ~Primitives() { t_closed = true; }

  Matmul& find(const Key& key) {
    if (last != nullptr && last->key == key) return *last;
    for (std::size_t i = 0; i < used; ++i)
      if (kept[i]->key == key) return *(last = kept[i].get());
    auto made = make(key);
    last = made.get();
    kept[next] = std::move(made);
    next = (next + 1) % kPrimitives;
    used = used < kPrimitives ? used + 1 : used;
    return *last;
  }

  static std::unique_ptr<Matmul> make(const Key& key) {
    using Memory = dnnl::memory;
    const auto matrix = [](std::int64_t rows, std::int64_t columns, std::int64_t row,
                           std::int64_t column) {
      return Memory::desc({rows, columns}, Memory::data_type::f32, Memory::dims{row, column});
    };
    const Memory::desc a = matrix(key.m, key.k, key.lda, 1), b = matrix(key.k, key.n, 1, key.ldb),
                       c = matrix(key.m, key.n, key.n, 1);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine(), a, b, c);
#else
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine());
#endif
    auto made = std::make_unique<Matmul>();
    made->key = key;
    made->primitive = dnnl::matmul(description);
    made->a = Memory(a, engine(), nullptr);
    made->b = Memory(b, engine(), nullptr);
    made->c = Memory(c, engine(), nullptr);
    return made;
  }
};

// For B [n, k] and few rows, where sgemm spends its time transposing B. The primitive is fast only
// if C is contiguous, so a tile of a wider C, or one with a bias or accumulation, is computed in
// scratch memory and then copied.
void run_matmul(const LibraryProduct& p) {
  thread_local Primitives primitives;
  const bool aside = p.ldc != p.n || p.accumulate || p.bias != nullptr;
  float* const c =
      aside ? static_cast<float*>(scratch(static_cast<std::size_t>(p.m * p.n) * sizeof(float)))
            : p.c;
  Matmul& matmul = primitives.find({p.m, p.n, p.k, p.lda, p.ldb});
  matmul.a.set_data_handle(const_cast<float*>(p.a));
  matmul.b.set_data_handle(const_cast<float*>(p.b));
  matmul.c.set_data_handle(c);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, matmul.a.get()},
                                       {DNNL_ARG_WEIGHTS, matmul.b.get()},
                                       {DNNL_ARG_DST, matmul.c.get()}};
  // The C function, because the C++ one takes a hash map.
  const dnnl_status_t status =
      dnnl_primitive_execute(matmul.primitive.get(), primitives.stream.get(), 3, arguments);
  if (status != dnnl_success) refuse("primitive_execute", status);
  if (!aside) return;
  for (std::int64_t i = 0; i < p.m; ++i) {
    const float* from = c + i * p.n;
    float* to = p.c + i * p.ldc;
    if (p.accumulate) {
      for (std::int64_t j = 0; j < p.n; ++j) to[j] += from[j];
    } else if (p.bias != nullptr) {
      for (std::int64_t j = 0; j < p.n; ++j) to[j] = from[j] + p.bias[j];
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(p.n) * sizeof(float));
    }
  }
}

void run_sgemm(const LibraryProduct& p) {
  if (p.bias != nullptr)
    for (std::int64_t i = 0; i < p.m; ++i)
      std::memcpy(p.c + i * p.ldc, p.bias, static_cast<std::size_t>(p.n) * sizeof(float));
  const float beta = p.accumulate || p.bias != nullptr ? 1.0f : 0.0f;
  const dnnl_status_t status = dnnl_sgemm(p.ta ? 'T' : 'N', p.tb ? 'T' : 'N', p.m, p.n, p.k, 1.0f,
                                          p.a, p.lda, p.b, p.ldb, beta, p.c, p.ldc);
  if (status != dnnl_success) refuse("sgemm", status);
}

// Applies a forced instruction set to the library too. This has no effect if the program itself
// used oneDNN before; then the program's choice holds.
bool limit_isa() noexcept {
  try {
    const std::string_view name = current_isa().name;
    if (name == "sse") dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    if (name == "avx2") dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

bool library_gemm_available() noexcept {
  static const bool works = limit_isa();
  return works && library_on.load(std::memory_order_relaxed);
}

bool use_library_gemm(bool on) noexcept { return library_on.exchange(on); }

bool library_gemm(const LibraryProduct& p) {
  Visit visit;
  if (!visit.open()) return false;
  const OneThread one_thread;
  const bool matmul = p.tb && !p.ta && !t_closed;  // by shape alone: same bits on every thread
  try {
    if (matmul) {
      run_matmul(p);
    } else {
      run_sgemm(p);
    }
  } catch (const dnnl::error& error) {
    throw InternalError(str("matmul: expected oneDNN to succeed, got: ", error.what()));
  }
  visit.saw((matmul ? 8u : 0u) + (p.ta ? 4u : 0u) + (p.tb ? 2u : 0u) +
            (p.accumulate || p.bias != nullptr ? 1u : 0u));
  return true;
}

}  // namespace braid::cpu

#else  // without oneDNN

namespace braid::cpu {

bool library_gemm_available() noexcept { return false; }
bool use_library_gemm(bool) noexcept { return false; }
bool library_gemm(const LibraryProduct&) { return false; }

}  // namespace braid::cpu

#endif

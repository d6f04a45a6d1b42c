#pragma once
#include "cpu/simd/map.hpp"

// Runs kernels of float for 16-bit types: a chunk is widened, computed and rounded, so that a
// rarely used function is compiled once and not three times.
namespace braid::cpu::BRAID_ISA {
namespace {

struct ThroughFloat {
  MapKernel kernel;
  const void* parameters;
  int inputs;
};

template <class E>
void through_float_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  const ThroughFloat inner = *static_cast<const ThroughFloat*>(parameters);
  alignas(64) float x[2][kChunk], y[kChunk];
  auto* to = static_cast<typename E::T*>(out);
  for (std::int64_t start = 0; start < n; start += kChunk) {
    const std::int64_t count = n - start < kChunk ? n - start : kChunk;
    Inputs wide;
    for (int i = 0; i < inner.inputs; ++i) {
      auto* from = static_cast<const typename E::T*>(in.p[i]);
      wide.p[i] = x[i];
      wide.step[i] = in.step[i];
      if (in.step[i] == 0) {
        F32::store(x[i], E::load(from));
        continue;
      }
      Inputs one;
      one.p[0] = from + start;
      one.step[0] = 1;
      map_one<F32, E>(x[i], one, count, [](VF v) { return v; });
    }
    inner.kernel(y, wide, count, inner.parameters);
    Inputs one;
    one.p[0] = y;
    one.step[0] = 1;
    map_one<E, F32>(to + start, one, count, [](VF v) { return v; });
  }
}

/// Runs a map on any floating-point dtype, with a kernel for float and another for float64.
BRAID_INLINE void run_floating(Map map, DType dtype, MapKernel of_float, MapKernel of_double,
                               Stream& stream) {
  const ThroughFloat inner{of_float, map.parameters, map.inputs};
  if (dtype == DType::float16 || dtype == DType::bfloat16) {
    map.kernel = dtype == DType::float16 ? &through_float_kernel<F16> : &through_float_kernel<BF16>;
    map.parameters = &inner;
    return run_map(map, stream);
  }
  map.kernel = dtype == DType::float64 ? of_double : of_float;
  run_map(map, stream);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA

#include <braid/core/kernel_args/elementwise.hpp>

#include "cpu/simd/map.hpp"

// out = condition ? a : b, as bits: works for any dtype by the size of its elements.
namespace braid::cpu::BRAID_ISA {
namespace {

template <class T> void where_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  constexpr int lanes = kVectorBytes / static_cast<int>(sizeof(T));
  using V = Vec<T, lanes>;
  using C = Vec<std::uint8_t, lanes>;
  T* to = static_cast<T*>(out);
  auto* condition = static_cast<const std::uint8_t*>(in.p[0]);
  auto* a = static_cast<const T*>(in.p[1]);
  auto* b = static_cast<const T*>(in.p[2]);
  const std::int64_t step_c = in.step[0] * lanes, step_a = in.step[1] * lanes,
                     step_b = in.step[2] * lanes;
  const auto choose = [](C c, V x, V y) {
    if constexpr (sizeof(T) == 1) return c != C{} ? x : y;
    else return __builtin_convertvector(c, V) != V{} ? x : y;
  };
  for (; n >= lanes; n -= lanes, to += lanes, condition += step_c, a += step_a, b += step_b)
    store(to, choose(load<C>(condition), load<V>(a), load<V>(b)));
  if (n > 0) {
    const int k = static_cast<int>(n);
    store_first(to, choose(load_first<C>(condition, k), load_first<V>(a, k), load_first<V>(b, k)),
                k);
  }
}

}  // namespace

void where(const WhereArgs& args, Stream& stream) {
  const int bytes = element_bytes(args.dtype);
  const MapKernel kernel = bytes == 1   ? &where_kernel<std::uint8_t>
                           : bytes == 2 ? &where_kernel<std::uint16_t>
                           : bytes == 4 ? &where_kernel<std::uint32_t>
                                        : &where_kernel<std::uint64_t>;
  run_map(Map{.kernel = kernel,
              .parameters = nullptr,
              .loop = args.loop,
              .out = args.out,
              .out_bytes = bytes,
              .inputs = 3,
              .in = {args.condition, args.a, args.b},
              .in_bytes = {1, bytes, bytes},
              .scalar = {}},
          stream);
}

}  // namespace braid::cpu::BRAID_ISA

#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "cpu/simd/copy.hpp"

// out = value, as bits.
namespace braid::cpu::BRAID_ISA {

void fill(const FillArgs& args, Stream& stream) {
  std::uint64_t value = 0;
  if (args.dtype == DType::int64) {
    store(&value, args.integer);
  } else {
    with_element(args.dtype, [&]<class E>() {
      store(&value, E::from_double(args.value));
      return true;
    });
  }
  const int bytes = element_bytes(args.dtype);
  run_map(Map{.kernel = find_same_kernel(bytes),
              .parameters = nullptr,
              .loop = args.loop,
              .out = args.out,
              .out_bytes = bytes,
              .inputs = 1,
              .in = {&value},
              .in_bytes = {bytes},
              .scalar = {true}},
          stream);
}

}  // namespace braid::cpu::BRAID_ISA

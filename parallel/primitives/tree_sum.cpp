#include "primitives/tree_sum.hpp"

#include <braid/core/internal/backend.hpp>

namespace braid::parallel {

void compute_on(Device device, BinaryOp op, void* out, const void* a, const void* b,
                std::int64_t count, DType dtype, double scalar) {
  BinaryArgs args{op, dtype, out, a, b, scalar, 1, {}};
  args.loop.rank = 1;
  args.loop.n = count;
  args.loop.size[0] = count;
  for (auto& stride : args.loop.stride) stride[0] = 1;
  args.loop.dense = true;
  launch("reduce", device, &KernelTable::binary, args);
}

}  // namespace braid::parallel

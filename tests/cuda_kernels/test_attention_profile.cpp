// Checks the memory accesses of attention on tensor cores, as the emulation counts them.
#if defined(BRAID_CUDA_SIMT) && defined(BRAID_SIMT_CHECK)
#include <braid/core/internal/kernel_args/attention.hpp>

#include "kernels/kernel_support.hpp"
#include "profile_lines.hpp"

using namespace kernel_test;

namespace {

/// Attention of two query heads of 64 queries and a head of 128 keys, and its backward.
void attend(std::int64_t width) {
  constexpr std::int64_t heads = 2, queries = 64, keys = 128;
  const DType t = DType::bfloat16;
  constexpr std::int64_t rows = heads * queries;
  Buffer q(t, rows * width), k(t, keys * width), v(t, keys * width), out(t, rows * width),
      lse(DType::float32, rows), dout(t, rows * width), dq(t, rows * width), dk(t, keys * width),
      dv(t, keys * width);
  for (Buffer* b : {&q, &k, &v, &dout}) b->pattern(1);
  const auto operand = [&](Buffer& b, std::int64_t n) {
    return braid::AttentionOperand{b.data(), heads * n * width, n * width, width};
  };
  braid::AttentionArgs args{};
  args.dtype = t, args.scale = 0.125, args.drop_scale = 1;
  args.q = operand(q, queries), args.k = operand(k, keys), args.v = operand(v, keys);
  args.out = operand(out, queries), args.lse = lse.data();
  args.batch = 1, args.heads = args.group = heads, args.queries = queries, args.keys = keys;
  args.width = args.value_width = width;
  kernels().attention(args, stream());
  kernels().attention_backward(
      {args, operand(dout, queries), operand(dq, queries), operand(dk, keys), operand(dv, keys)},
      stream());
  stream().synchronize();
}

}  // namespace

TEST_CASE("cuda attention: tensor cores without bank conflicts, and whole sectors",
          "[cuda_kernels][attention][profile]") {
  NEEDS_DEVICE;
  for (const std::int64_t width : {64, 128, 256}) {
    INFO("width " << width);
    const Profile profile;
    attend(width);
    INFO(profile.table());
    for (const char* words : {"ldmatrix_x4(", "ldmatrix_x4_trans("}) {
      const ProfileLine reads = at(profile, "mma_side.cuh", words, true);
      CHECK(reads.accesses > 0);
      CHECK(reads.cost == 4 * reads.accesses);
    }
    const ProfileLine copies = at(profile, "mma_side.cuh", "cp_async16(to", true),
                      copied = at(profile, "mma_side.cuh", "cp_async16(to", false);
    CHECK(copied.accesses > 0);
    CHECK(copied.cost == copied.ideal);
    CHECK(copies.cost == copies.ideal);
    const ProfileLine pairs = at(profile, "attention_mma.cuh", "simt::store_vector(line", true),
                      results = at(profile, "element.cuh", "simt::store_vector(p", false);
    CHECK(pairs.cost == pairs.ideal);
    CHECK(results.cost == results.ideal);
  }
}
#endif

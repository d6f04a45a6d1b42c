// Checks the shared and global memory accesses of the largest tiles, as the emulation counts them.
#if defined(BRAID_CUDA_SIMT) && defined(BRAID_SIMT_CHECK)
#include "cuda/gemm_kinds.hpp"
#include "kernels/gemm_cases.hpp"
#include "profile_lines.hpp"

using namespace kernel_test;

namespace {

constexpr std::int64_t kSize = 128, kDeep = 32;

void multiply(DType t, braid::cuda::GemmTileKind tile, int layout, std::int64_t shift = 0) {
  Product s = product({kSize, kSize, kDeep}, layout);
  s.shift = shift;
  s.by = [tile](const braid::GemmArgs& args) {
    braid::cuda::gemm_as_planned(args, {tile, 1, kDeep}, stream());
  };
  Operands(t, s).run();
  stream().synchronize();
}

}  // namespace

TEST_CASE("cuda gemm: the 128x128 tile has no bank conflicts, and copies whole sectors",
          "[cuda_kernels][gemm][profile]") {
  NEEDS_DEVICE;
  // accesses of 16 bytes per warp that load one operand
  constexpr std::uint64_t fours = kSize * kDeep / 4 / 32;
  for (int layout = 0; layout < 4; ++layout)
    for (const std::int64_t shift : {0, 1}) {
      INFO("layout " << layout << ", shift " << shift);
      const Profile profile;
      multiply(DType::float32, braid::cuda::GemmTileKind::square128, layout, shift);
      INFO(profile.table());
      // For each k, each of 4 warps reads four vectors of four of A and two of B.
      const ProfileLine reads = at(profile, "element.cuh", "return simt::load_vector<", true);
      CHECK(reads.accesses == 4 * 6 * kDeep);
      CHECK(reads.cost == reads.ideal);
      const ProfileLine copies = at(profile, "gemm_side.cuh", "simt::cp_async16(to", true),
                        copied = at(profile, "gemm_side.cuh", "simt::cp_async16(to", false);
      CHECK(copied.accesses == (shift == 0 ? 2 * fours : 0));
      CHECK(copied.cost == copied.ideal);
      CHECK(copies.cost == copies.ideal);
      // Operands that are not aligned are copied element by element, side by side.
      const ProfileLine stores = at(profile, "gemm_side.cuh", "simt::cp_async4(to", true);
      CHECK(stores.accesses == (shift == 0 ? 0 : 2 * 4 * fours));
      CHECK(stores.cost == stores.accesses);
    }
}

TEST_CASE("cuda gemm: the tensor cores' tiles have no bank conflicts, and copy whole sectors",
          "[cuda_kernels][gemm][profile]") {
  NEEDS_DEVICE;
  using braid::cuda::GemmTileKind;
  struct Row {
    DType dtype;
    GemmTileKind tile;
    std::uint64_t blocks, fragments;  // fragments of A and B that a warp reads at a time
  };
  for (const Row& row : {Row{DType::bfloat16, GemmTileKind::mma128, 1, 8},
                         {DType::float32, GemmTileKind::tf32_128, 1, 8},
                         {DType::float32, GemmTileKind::tf32x3_128x64, 2, 6}})
    for (int layout = 0; layout < 3; ++layout) {
      INFO(row.dtype << ", tile " << static_cast<int>(row.tile) << ", layout " << layout);
      const Profile profile;
      multiply(row.dtype, row.tile, layout);
      INFO(profile.table());
      const std::uint64_t bytes = size_of(row.dtype);
      // Each of 4 warps reads fragments of 16 by 32 bytes along k: 512 bytes, by one ldmatrix or by
      // four loads of 4 bytes.
      const ProfileLine direct = at(profile, "mma_side.cuh", "ldmatrix_x4(", true),
                        turned = at(profile, "mma_side.cuh", "ldmatrix_x4_trans(", true),
                        plain = at(profile, "mma_side.cuh", "__float_as_uint(at[", true);
      CHECK(4 * (direct.accesses + turned.accesses) + plain.accesses ==
            4 * row.blocks * 4 * row.fragments * kDeep * bytes / 32);
      CHECK(direct.cost + turned.cost == 4 * (direct.accesses + turned.accesses));
      CHECK(plain.cost == plain.accesses);
      CHECK((plain.accesses > 0) == (row.dtype == DType::float32 && layout != 1));
      const ProfileLine copies = at(profile, "mma_side.cuh", "cp_async16(to", true),
                        copied = at(profile, "mma_side.cuh", "cp_async16(to", false);
      CHECK(copied.accesses == (row.blocks * kSize + kSize) * kDeep * bytes / 16 / 32);
      CHECK(copied.cost == copied.ideal);
      CHECK(copies.cost == copies.ideal);
      const ProfileLine reads = at(profile, "element.cuh", "return simt::load_vector<", true),
                        writes = at(profile, "element.cuh", "simt::store_vector(p", true),
                        results = at(profile, "element.cuh", "simt::store_vector(p", false);
      CHECK(reads.accesses == kSize * kSize / 4 / 32);
      CHECK(reads.cost == reads.ideal);
      CHECK(writes.cost == writes.ideal);
      CHECK(results.cost == kSize * kSize * bytes / 32);
    }
}
#endif

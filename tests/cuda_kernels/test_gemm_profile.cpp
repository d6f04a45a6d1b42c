// Checks the shared and global memory accesses of the largest float32 tile, as the emulation counts
// them.
#if defined(BRAID_CUDA_SIMT) && defined(BRAID_SIMT_CHECK)
#include "cuda/gemm_kinds.hpp"
#include "kernels/gemm_cases.hpp"
#include "profile_lines.hpp"

using namespace kernel_test;

namespace {

constexpr std::int64_t kSize = 128, kDeep = 32;

void multiply(DType t, braid::cuda::GemmTileKind tile, int layout) {
  Product s = product({kSize, kSize, kDeep}, layout);
  s.by = [tile](const braid::GemmArgs& args) {
    braid::cuda::gemm_as_planned(args, {tile, 1, kDeep}, stream());
  };
  Operands(t, s).run();
  stream().synchronize();
}

}  // namespace

TEST_CASE("cuda gemm: the 128x128 tile has no bank conflicts and reads 16 bytes at a time",
          "[cuda_kernels][gemm][profile]") {
  NEEDS_DEVICE;
  // accesses per warp that load one operand
  constexpr std::uint64_t fours = kSize * kDeep / 4 / 32;
  for (int layout = 0; layout < 4; ++layout) {
    INFO("layout " << layout);
    const bool turned_a = layout < 2, turned_b = layout % 2 == 1;
    const Profile profile;
    multiply(DType::float32, braid::cuda::GemmTileKind::square128, layout);
    INFO(profile.table());
    const std::uint64_t turned = turned_a + turned_b, direct = 2 - turned;
    // For each k, each of 4 warps reads four vectors of four of A and two of B.
    const ProfileLine reads = at(profile, "element.cuh", "return simt::load_vector<", true);
    CHECK(reads.accesses == 4 * 6 * kDeep);
    CHECK(reads.cost == reads.ideal);
    const ProfileLine global = at(profile, "element.cuh", "return simt::load_vector<", false);
    CHECK(global.accesses == turned * fours);
    CHECK(global.cost == global.ideal);
    const ProfileLine stores = at(profile, "gemm_side.cuh", "next_[e][i];", true);
    CHECK(stores.accesses == turned * fours * 4);
    CHECK(stores.cost == stores.ideal);
    const ProfileLine copies = at(profile, "gemm_side.cuh", "simt::cp_async16(to", true),
                      copied = at(profile, "gemm_side.cuh", "simt::cp_async16(to", false);
    CHECK(copied.accesses == direct * fours);
    CHECK(copied.cost == copied.ideal);
    CHECK(copies.cost == copies.ideal);
  }
}

TEST_CASE("cuda gemm: the tensor cores' tile has no bank conflicts, and copies whole sectors",
          "[cuda_kernels][gemm][profile]") {
  NEEDS_DEVICE;
  for (int layout = 0; layout < 3; ++layout) {
    INFO("layout " << layout);
    const Profile profile;
    multiply(DType::bfloat16, braid::cuda::GemmTileKind::mma128, layout);
    INFO(profile.table());
    // For each 16 of k, each of 4 warps reads four fragments of A and four of B, of 512 bytes.
    const ProfileLine direct = at(profile, "mma_side.cuh", "ldmatrix_x4(", true),
                      turned = at(profile, "mma_side.cuh", "ldmatrix_x4_trans(", true);
    CHECK(direct.accesses + turned.accesses == 4 * 8 * kDeep / 16);
    CHECK(direct.cost + turned.cost == 4 * (direct.accesses + turned.accesses));
    const ProfileLine copies = at(profile, "mma_side.cuh", "cp_async16(to", true),
                      copied = at(profile, "mma_side.cuh", "cp_async16(to", false);
    CHECK(copied.accesses == 2 * kSize * kDeep / 8 / 32);
    CHECK(copied.cost == copied.ideal);
    CHECK(copies.cost == copies.ideal);
    const ProfileLine reads = at(profile, "element.cuh", "return simt::load_vector<", true),
                      writes = at(profile, "element.cuh", "simt::store_vector(p", true),
                      results = at(profile, "element.cuh", "simt::store_vector(p", false);
    CHECK(reads.accesses == kSize * kSize / 4 / 32);
    CHECK(reads.cost == reads.ideal);
    CHECK(writes.cost == writes.ideal);
    CHECK(results.cost == kSize * kSize * 2 / 32);
  }
}
#endif

// Tests the tiles of Braid's own CUDA products: each tile by an explicit plan, and the planner's
// choice for a shape.
#include <optional>

#include "cuda/gemm_kinds.hpp"
#include "kernels/gemm_cases.hpp"
#include "support/on_device.hpp"

#if defined(BRAID_CUDA_SIMT)
#include "simt/runtime/control.hpp"
#endif

using namespace kernel_test;
using braid::Epilogue;
using braid::Float32Precision;
using braid::GemmArgs;
using braid::cuda::GemmTileUse;

namespace {

std::function<void(const GemmArgs&)> planned(const braid::cuda::GemmPlan& plan) {
  return [plan](const GemmArgs& args) { braid::cuda::gemm_as_planned(args, plan, stream()); };
}
/// The precision of float32 for which a tile is.
Float32Precision precision_of(GemmTileUse use) {
  return use == GemmTileUse::tf32     ? Float32Precision::tf32
         : use == GemmTileUse::tf32x3 ? Float32Precision::tf32x3
                                      : Float32Precision::exact;
}

}  // namespace

TEST_CASE("cuda gemm: every tile, every layout, sizes one beside the tile's",
          "[cuda_kernels][gemm]") {
  NEEDS_DEVICE;
  unsigned turn = 0;
  for (const braid::cuda::GemmTileShape& tile : braid::cuda::kGemmTiles)
    for (int layout = 0; layout < 4; ++layout)
      for (int beside = -1; beside <= 1; ++beside, ++turn) {
        const std::int64_t k = std::array<std::int64_t, 4>{33, 16, 7, 40}[turn % 4];
        Product s = product({tile.rows + beside, tile.columns - beside, k}, layout);
        s.by = planned({tile.kind, 1, k});
        s.sums = true;
        s.epilogue = turn % 2 == 0 ? Epilogue::relu : Epilogue::none;
        s.bias = turn % 3 == 0;
        s.accumulate = turn % 3 == 1;
        s.pad = beside == 0 ? 0 : turn % 2 == 0 ? 4 - s.m % 4 : 1;
        s.shift = turn % 5 == 4 ? 1 : 0;
        s.rounded = product_error(precision_of(tile.use));
        for (const DType t : kFloats)
          if (has_tile(t, tile.use, precision_of(tile.use)) && (t == DType::float32 || beside != 0))
            check(t, s);
      }
}

TEST_CASE("cuda gemm: tensor cores, with operands that are aligned to 16 bytes and not",
          "[cuda_kernels][gemm]") {
  NEEDS_DEVICE;
  struct Case {
    std::int64_t beside, k, pad, batch;  // pad makes every leading dim a multiple of eight, but
    std::int64_t shift;                  // shift moves the operands off an aligned address
  };
  unsigned turn = 0;
  for (const braid::cuda::GemmTileShape& tile : braid::cuda::kGemmTiles) {
    const bool tf32 = tile.use == GemmTileUse::tf32 || tile.use == GemmTileUse::tf32x3;
    if (!tf32 && tile.use != GemmTileUse::narrow) continue;
    for (int layout = 0; layout < 4; ++layout)
      for (const auto& [beside, k, pad, batch, shift] :
           {Case{-1, 39, 1, 1, 0}, {1, 161, 7, 1, 0}, {0, 96, 0, 2, 0}, {1, 33, 7, 1, 1}}) {
        const bool even = turn++ % 2 == 0;
        const DType t = tf32 ? DType::float32 : even ? DType::bfloat16 : DType::float16;
        Product s = product({tile.rows + beside, tile.columns + beside, k}, layout);
        s.by = planned({tile.kind, 1, k});
        s.pad = pad, s.batch = batch, s.shift = shift;
        s.sums = batch == 1;
        s.rounded = product_error(precision_of(tile.use));
        s.epilogue = turn % 2 == 0 ? Epilogue::relu : Epilogue::none, s.bias = turn % 3 == 0,
        s.accumulate = turn % 3 == 1;
        check(t, s);
      }
  }
}

TEST_CASE("cuda gemm: every tile with every epilogue", "[cuda_kernels][gemm][epilogue]") {
  NEEDS_DEVICE;
  unsigned turn = 0;
  for (const braid::cuda::GemmTileShape& tile : braid::cuda::kGemmTiles) {
    const Float32Precision precision = precision_of(tile.use);
    for (const DType t : kGemmTypes) {
      if (!has_tile(t, tile.use, precision)) continue;
      for (const Epilogue epilogue : epilogues_of(t)) {
        const std::int64_t beside = turn++ % 2 == 0 ? 0 : -1;
        Product s =
            product({tile.rows + beside, tile.columns + beside, 17}, static_cast<int>(turn % 4));
        s.by = planned({tile.kind, 1, 17});
        s.epilogue = epilogue, s.kept = is_gelu(epilogue) && turn % 4 != 0;
        s.bias = turn % 3 == 0, s.accumulate = turn % 3 == 1, s.other_shift = turn % 5 == 0;
        s.rounded = product_error(precision);
        check(t, s);
        check_apart(t, s);
      }
    }
  }
}

TEST_CASE("cuda gemm: several tiles each way, whole and ragged", "[cuda_kernels][gemm]") {
  NEEDS_DEVICE;
  for (const auto tile :
       {braid::cuda::GemmTileKind::square32, braid::cuda::GemmTileKind::columns128x16})
    for (int layout = 0; layout < 4; ++layout) {
      Product s = product({290, 100, 20}, layout);  // more than eight rows of tiles of 32
      s.by = planned({tile, 1, 20});
      s.sums = s.bias = layout % 2 == 0;
      check(DType::float32, s);
    }
}

TEST_CASE("cuda gemm: k in parts, the same bits again", "[cuda_kernels][gemm]") {
  NEEDS_DEVICE;
  unsigned turn = 0;
  std::size_t number = 0;
  for (const auto& [t, precision] : floats_by_precision()) {
    ++number;  // so that a part has another layout for each dtype
    for (int layout = 0; layout < 4; ++layout) {
      if (!braid::test::in_part(number++)) continue;
      const PrecisionGuard guard(precision);
      Product s = product({37, 21, 1200}, layout);
      GemmArgs shape{};
      shape.m = s.m, shape.n = s.n, shape.k = s.k, shape.batch = 1, shape.dtype = t;
      for (const int processors : {1, 4, 132}) {  // the number of parts depends only on the shape
        const auto plan = braid::cuda::plan_gemm(shape, processors, precision);
        CHECK(plan.splits == 4);
        CHECK(plan.depth == 320);
      }
      s.sums = layout != 1;
      s.epilogue = layout == 2 ? Epilogue::relu : Epilogue::none;
      s.bias = layout == 0, s.accumulate = layout == 3;
      s.pad = layout;
      s.rounded = product_error(precision);
      check(t, s);
      Operands once(t, s), again(t, s);
      once.run(), again.run();
      CHECK(once.c.bytes() == again.c.bytes());
      CHECK(once.sums.bytes() == again.sums.bytes());
      for (const Epilogue epilogue : epilogues_of(t)) {
        s.epilogue = epilogue, s.kept = is_gelu(epilogue) && layout != 1;
        s.other_shift = layout == 3;
        s.n = turn++ % 2 == 0 ? 21 : 24;  // the second pass takes elements one by one, or in fours
        if (layout % 2 == 0) check(t, s);
        check_apart(t, s);
      }
    }
  }
}

TEST_CASE("cuda gemm: a tile does not change a bit", "[cuda_kernels][gemm]") {
  NEEDS_DEVICE;
  const auto run = [](DType t, braid::cuda::GemmTileKind tile, int layout, std::int64_t shift) {
    Product s = product({56, 40, 55}, layout);
    s.by = planned({tile, 2, 32});
    s.sums = true, s.pad = s.ta || !s.tb ? 0 : 1, s.shift = shift;
    Operands x(t, s);
    for (std::int64_t i = 0; i < x.a.size(); ++i) x.a.put(i, 1.0 / static_cast<double>(i + 3));
    for (std::int64_t i = 0; i < x.b.size(); ++i) x.b.put(i, 1.0 / static_cast<double>(2 * i + 7));
    x.run();
    return std::pair(x.c.bytes(), x.sums.bytes());
  };
  for (const auto& [t, precision] : floats_by_precision())
    for (int layout = 0; layout < 4; ++layout) {
      std::optional<std::pair<std::vector<unsigned char>, std::vector<unsigned char>>> first;
      for (const braid::cuda::GemmTileShape& tile : braid::cuda::kGemmTiles)
        for (const std::int64_t shift : {0, 1}) {
          if (!has_tile(t, tile.use, precision)) continue;
          INFO(t << ", layout " << layout << ", tile " << tile.rows << ", shift " << shift);
          const auto result = run(t, tile.kind, layout, shift);
          if (!first) first = result;
          CHECK(result == *first);
        }
    }
}

TEST_CASE("cuda gemm: the plan", "[cuda_kernels][gemm]") {
  using braid::cuda::GemmTileKind;
  const auto plan = [](std::int64_t m, std::int64_t n, std::int64_t k, int processors,
                       DType t = DType::float32,
                       Float32Precision precision = Float32Precision::exact) {
    GemmArgs args{};
    args.dtype = t, args.m = m, args.n = n, args.k = k, args.batch = 1;
    return braid::cuda::plan_gemm(args, processors, precision);
  };
  CHECK(plan(30, 2, 5, 132).tile == GemmTileKind::tiny);  // y of 30×5→2
  CHECK(plan(30, 5, 2, 132).tile == GemmTileKind::tiny);  // dx
  CHECK(plan(2, 5, 30, 132).tile == GemmTileKind::tiny);  // dW and db
  CHECK(plan(4096, 4096, 4096, 132).tile == GemmTileKind::square128);
  CHECK(plan(4096, 4096, 4096, 132).splits == 1);
  CHECK(plan(4096, 4096, 64, 132, DType::float64).tile == GemmTileKind::square64);
  CHECK(plan(4096, 4096, 64, 132, DType::bfloat16).tile == GemmTileKind::mma128);
  CHECK(plan(512, 512, 64, 132, DType::float16).tile == GemmTileKind::mma64);
  CHECK(plan(4096, 4096, 64, 132, DType::float32, Float32Precision::tf32).tile ==
        GemmTileKind::tf32_128);
  CHECK(plan(512, 512, 64, 132, DType::float32, Float32Precision::tf32).tile ==
        GemmTileKind::tf32_64);
  CHECK(plan(4096, 4096, 64, 132, DType::float64, Float32Precision::tf32).tile ==
        GemmTileKind::square64);
  CHECK(plan(4096, 4096, 64, 132, DType::float32, Float32Precision::tf32x3).tile ==
        GemmTileKind::tf32x3_128x64);
  CHECK(plan(512, 512, 64, 132, DType::float32, Float32Precision::tf32x3).tile ==
        GemmTileKind::tf32x3_64);
  CHECK(plan(4096, 4096, 31, 132, DType::float32, Float32Precision::tf32x3).tile ==
        GemmTileKind::square128);  // tf32x3 would be less exact
  CHECK(plan(30, 2, 5, 132, DType::float32, Float32Precision::tf32).tile == GemmTileKind::tiny);
  CHECK(plan(100000, 10, 64, 132).tile == GemmTileKind::columns128x16);
  CHECK(plan(10, 100000, 64, 132).tile == GemmTileKind::rows16x128);
  CHECK(plan(64, 10, 8192, 132).splits == 32);  // dW of a small layer with many rows
  CHECK(plan(64, 10, 8192, 1).splits == 32);
  // uneven tiles of a large GPU: dW of GPT-2's layers. The parts do not depend on the GPU.
  for (const int processors : {16, 132}) {
    const auto parts = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      return plan(m, n, k, processors, DType::bfloat16).splits;
    };
    CHECK(parts(3072, 768, 8192) == 4);  // 144 tiles of 128×128 for 132 SMs
    CHECK(parts(768, 768, 4096) == 3);   // 36
    CHECK(parts(2304, 768, 4096) == 1);  // 108: adding the parts costs what they save
    CHECK(parts(2048, 2048, 2048) == 1);
    CHECK(parts(4096, 4096, 4096) == 1);
    CHECK(parts(3072, 768, 511) == 1);
  }
  CHECK(plan(3072, 768, 8192, 132, DType::bfloat16).tile == GemmTileKind::mma128);
  CHECK(plan(3072, 768, 8192, 132, DType::bfloat16).depth == 2048);
}

#if defined(BRAID_CUDA_SIMT)
TEST_CASE("cuda gemm: the kernels are named after what they are in a linear layer",
          "[cuda_kernels][gemm][names]") {
  NEEDS_DEVICE;
  const auto launched = [](bool ta, bool tb) {
    Operands x(DType::float32, {5, 6, 7, ta, tb});
    braid::simt::clear_launch_log();
    x.run();
    stream().synchronize();
    const auto log = braid::simt::launch_log();
    return log.empty() ? std::string() : log.front().kernel;
  };
  CHECK(launched(false, true).find("linear_forward") != std::string::npos);
  CHECK(launched(false, false).find("linear_backward_input") != std::string::npos);
  CHECK(launched(true, false).find("linear_backward_weight") != std::string::npos);
  CHECK(launched(true, true).find("matmul_both_transposed") != std::string::npos);
  braid::simt::clear_launch_log();
  Product s{2, 5, 30, true, false};  // dW and db of 30×5→2
  s.sums = true;
  Operands(DType::float32, s).run();
  stream().synchronize();
  CHECK(braid::simt::launch_log().size() == 1);
  braid::simt::clear_launch_log();
  Operands input(DType::float32, {30, 5, 2}), weight(DType::float32, s);
  kernels().gemm_pair({input.args, weight.args}, stream());
  stream().synchronize();
  REQUIRE(braid::simt::launch_log().size() == 1);  // dx, dW and db
  CHECK(braid::simt::launch_log().front().kernel.find("linear_backward_tiny") != std::string::npos);
}
#endif

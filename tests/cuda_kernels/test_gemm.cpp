#include <array>
#include <random>

#include <braid/core/kernel_args/gemm.hpp>

#include "cuda/gemm_kinds.hpp"
#include "cuda_kernels/cuda_kernel_support.hpp"

#if defined(BRAID_CUDA_SIMT)
#include "simt/runtime/control.hpp"
#endif

using namespace kernel_test;
using braid::bfloat16;
using braid::float16;
using braid::GemmArgs;

namespace {

struct Case {
  std::int64_t m, n, k;
  bool ta = false, tb = false;
  bool accumulate = false, bias = false;
  std::int64_t batch = 1;
  std::int64_t pad = 0;  // leading dims are larger than they must be
  std::int64_t shift = 0;
  bool repeat_a = false, repeat_b = false;
  bool relu = false, sums = false;
  const braid::cuda::GemmPlan* plan = nullptr;  // else the kernel's own choice
};

// Buffers as small as the contract allows, so that the checker sees every step outside.
struct Operands {
  Case s;
  Buffer a, b, c, bias, sums;
  GemmArgs args{};

  static std::int64_t extent(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    return rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols;
  }
  static std::int64_t leading(std::int64_t cols, std::int64_t pad) {
    return std::max<std::int64_t>(1, cols + pad);
  }
  static std::int64_t size_a(const Case& s) {
    return s.ta ? extent(s.k, s.m, leading(s.m, s.pad)) : extent(s.m, s.k, leading(s.k, s.pad));
  }
  static std::int64_t size_b(const Case& s) {
    return s.tb ? extent(s.n, s.k, leading(s.k, s.pad)) : extent(s.k, s.n, leading(s.n, s.pad));
  }
  static std::int64_t size_c(const Case& s) { return extent(s.m, s.n, leading(s.n, s.pad)); }

  Operands(DType t, const Case& what)
      : s(what),
        a(t, size_a(s) * (s.repeat_a ? 1 : s.batch)),
        b(t, size_b(s) * (s.repeat_b ? 1 : s.batch)),
        c(t, size_c(s) * s.batch),
        bias(t, s.bias ? s.n : 0),
        sums(t, s.sums ? s.m : 0) {
    a.pattern(1, 0.5), b.pattern(2, 0.5), c.pattern(3, 0.5), bias.pattern(4, 0.5),
        sums.pattern(5, 0.5);
    args.dtype = t;
    args.ta = s.ta, args.tb = s.tb, args.accumulate = s.accumulate;
    args.m = s.m, args.n = s.n, args.k = s.k, args.batch = s.batch;
    args.lda = leading(s.ta ? s.m : s.k, s.pad), args.ldb = leading(s.tb ? s.k : s.n, s.pad),
    args.ldc = leading(s.n, s.pad);
    args.activation = s.relu ? braid::Activation::relu : braid::Activation::none;
    args.batch_a = s.repeat_a ? 0 : size_a(s), args.batch_b = s.repeat_b ? 0 : size_b(s),
    args.batch_c = size_c(s);
  }
  void run() {
    Twin ga(a, s.shift), gb(b, s.shift), gc(c, s.shift), gbias(bias, s.shift), gsums(sums, s.shift);
    args.a = ga.data(), args.b = gb.data(), args.c = gc.data(),
    args.bias = s.bias ? gbias.data() : nullptr;
    args.sum_a = s.sums ? gsums.data() : nullptr;
    if (s.plan != nullptr) braid::cuda::gemm_as_planned(args, *s.plan, gpu_stream());
    else gpu().gemm(args, gpu_stream());
    gc.fetch();
    gsums.fetch();
  }
  [[nodiscard]] std::int64_t at_a(std::int64_t q, std::int64_t i, std::int64_t p) const {
    return q * args.batch_a + (s.ta ? p * args.lda + i : i * args.lda + p);
  }
  [[nodiscard]] std::int64_t at_b(std::int64_t q, std::int64_t p, std::int64_t j) const {
    return q * args.batch_b + (s.tb ? j * args.ldb + p : p * args.ldb + j);
  }
  [[nodiscard]] std::int64_t at_c(std::int64_t q, std::int64_t i, std::int64_t j) const {
    return q * args.batch_c + i * args.ldc + j;
  }
};

// Unit roundoff of the dtype itself.
double unit_of(DType t) {
  return t == DType::float16    ? 0x1p-11
         : t == DType::bfloat16 ? 0x1p-8
         : t == DType::float32  ? 0x1p-24
                                : 0x1p-53;
}

// A plain triple loop in double (exact for these integers), and the bound (k + 2) u Σ|a||b| of any
// order of summation.
void check(DType t, const Case& s) {
  INFO(braid::name_of(t) << " m " << s.m << " n " << s.n << " k " << s.k << (s.ta ? " T" : " N")
                         << (s.tb ? "T" : "N") << (s.accumulate ? " accumulate" : "")
                         << (s.bias ? " bias" : "") << " batch " << s.batch << " pad " << s.pad
                         << " shift " << s.shift << (s.relu ? " relu" : "")
                         << (s.sums ? " sums" : "") << " tile "
                         << (s.plan == nullptr ? -1 : static_cast<int>(s.plan->tile)));
  Operands x(t, s);
  Buffer before(t, x.c.size());
  before.pattern(3, 0.5);
  x.run();
  std::int64_t wrong = 0, changed = 0;
  std::vector<bool> inside(static_cast<std::size_t>(x.c.size()));
  for (std::int64_t q = 0; q < s.batch; ++q)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        const std::int64_t at = x.at_c(q, i, j);
        inside[static_cast<std::size_t>(at)] = true;
        double sum = s.accumulate ? before[at] : s.bias ? x.bias[j] : 0, size = std::fabs(sum);
        for (std::int64_t p = 0; p < s.k; ++p) {
          const double product = x.a[x.at_a(q, i, p)] * x.b[x.at_b(q, p, j)];
          sum += product, size += std::fabs(product);
        }
        const double bound = braid::is_floating(t)
                                 ? (static_cast<double>(s.k) + 2) * unit(t) * size +
                                       1.001 * unit_of(t) * std::fabs(sum) +
                                       (t == DType::float16 ? 0x1p-25 : 0)
                                 : 0;
        wrong += !(std::fabs(x.c[at] - (s.relu ? std::fmax(sum, 0.0) : sum)) <= bound);
      }
  for (std::int64_t i = 0; s.sums && i < s.m; ++i) {
    double sum = 0, size = 0;
    for (std::int64_t p = 0; p < s.k; ++p)
      sum += x.a[x.at_a(0, i, p)], size += std::fabs(x.a[x.at_a(0, i, p)]);
    const double bound =
        (std::ceil(std::log2(static_cast<double>(std::max<std::int64_t>(s.k, 1)))) + 2) * unit(t) *
            size +
        1.001 * unit_of(t) * std::fabs(sum);
    wrong += !(std::fabs(x.sums[i] - sum) <= bound);
  }
  for (std::int64_t at = 0; at < x.c.size(); ++at)
    changed += !inside[static_cast<std::size_t>(at)] && x.c[at] != before[at];
  CHECK(wrong == 0);
  CHECK(changed == 0);
}

const std::vector<DType> kGemmTypes{DType::float32,  DType::float64, DType::float16,
                                    DType::bfloat16, DType::int32,   DType::int64};

}  // namespace

TEST_CASE("cuda gemm: sizes that break tilings, all layouts", "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  unsigned turn = 0;
  for (const DType t : kGemmTypes)
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                  {2, 30, 5},
                                  {5, 7, 17},
                                  {64, 10, 33},
                                  {63, 65, 15},
                                  {65, 64, 16},
                                  {130, 3, 40},
                                  {4, 68, 32}})
      for (int layout = 0; layout < 4; ++layout, ++turn) {
        Case s{m, n, k, layout >= 2, layout % 2 == 1};
        s.pad = turn % 3 == 0 ? 3 : turn % 3 == 1 ? 4 : 0;
        s.accumulate = turn % 5 == 1;
        s.bias = turn % 5 == 3;
        s.shift = turn % 7 == 2 ? 1 : 0;
        check(t, s);
      }
}

TEST_CASE("cuda gemm: every tile, every layout, sizes one beside the tile's",
          "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  unsigned turn = 0;
  for (const braid::cuda::GemmTileShape& tile : braid::cuda::kGemmTiles)
    for (int layout = 0; layout < 4; ++layout)
      for (int beside = -1; beside <= 1; ++beside, ++turn) {
        const std::int64_t k = std::array<std::int64_t, 4>{33, 16, 7, 40}[turn % 4];
        const braid::cuda::GemmPlan plan{tile.kind, 1, k};
        Case s{tile.rows + beside, tile.columns - beside, k, layout >= 2, layout % 2 == 1};
        s.plan = &plan;
        s.sums = true;
        s.relu = turn % 2 == 0;
        s.bias = turn % 3 == 0;
        s.accumulate = turn % 3 == 1;
        s.pad = beside == 0 ? 0 : turn % 2 == 0 ? 4 - s.m % 4 : 1;
        s.shift = turn % 5 == 4 ? 1 : 0;
        check(DType::float32, s);
        if (!tile.wide_only && beside != 0)
          for (const DType t : {DType::float64, DType::float16, DType::bfloat16}) check(t, s);
      }
}

TEST_CASE("cuda gemm: several tiles each way, whole and ragged", "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  for (const auto tile :
       {braid::cuda::GemmTileKind::square32, braid::cuda::GemmTileKind::columns128x16})
    for (int layout = 0; layout < 4; ++layout) {
      const braid::cuda::GemmPlan plan{tile, 1, 20};
      Case s{290, 100, 20, layout >= 2, layout % 2 == 1};  // more than eight rows of tiles of 32
      s.plan = &plan;
      s.sums = s.bias = layout % 2 == 0;
      check(DType::float32, s);
    }
}

TEST_CASE("cuda gemm: k in parts, the same bits again", "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (int layout = 0; layout < 4; ++layout) {
      Case s{37, 21, 1200, layout >= 2, layout % 2 == 1};
      GemmArgs shape{};
      shape.m = s.m, shape.n = s.n, shape.k = s.k, shape.batch = 1, shape.dtype = t;
      for (const int processors : {1, 4, 132}) {  // the parts are the shape's
        const auto plan = braid::cuda::plan_gemm(shape, processors);
        CHECK(plan.splits == 4);
        CHECK(plan.depth == 320);
      }
      s.sums = layout != 1;
      s.relu = layout == 2;
      s.bias = layout == 0, s.accumulate = layout == 3;
      s.pad = layout;
      check(t, s);
      Operands once(t, s), again(t, s);
      once.run(), again.run();
      CHECK(once.c.bytes() == again.c.bytes());
      CHECK(once.sums.bytes() == again.sums.bytes());
    }
}

TEST_CASE("cuda gemm: a tile does not change a bit", "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  for (int layout = 0; layout < 4; ++layout) {
    std::vector<unsigned char> bits, sums;
    for (const braid::cuda::GemmTileShape& tile : braid::cuda::kGemmTiles) {
      const braid::cuda::GemmPlan plan{tile.kind, 2, 32};
      Case s{50, 40, 55, layout >= 2, layout % 2 == 1};
      s.plan = &plan;
      s.sums = true;
      Operands x(DType::float32, s);
      for (std::int64_t i = 0; i < x.a.size(); ++i) x.a.put(i, 1.0 / static_cast<double>(i + 3));
      for (std::int64_t i = 0; i < x.b.size(); ++i)
        x.b.put(i, 1.0 / static_cast<double>(2 * i + 7));
      x.run();
      if (bits.empty()) bits = x.c.bytes(), sums = x.sums.bytes();
      CHECK(x.c.bytes() == bits);
      CHECK(x.sums.bytes() == sums);
    }
  }
}

TEST_CASE("cuda gemm: sums of long rows of one sign, of infinities and of NaN",
          "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  for (const std::int64_t k : {std::int64_t{60}, std::int64_t{3000}}) {
    Case s{9, 5, k, true, false};
    s.sums = true;
    Operands x(DType::float32, s);
    for (std::int64_t i = 0; i < x.a.size(); ++i) x.a.put(i, 1.0 / static_cast<double>(i % 97 + 3));
    x.a.put(x.at_a(0, 1, k - 1), kInf);
    x.a.put(x.at_a(0, 2, 0), kNaN);
    x.run();
    for (std::int64_t i = 3; i < s.m; ++i) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += x.a[x.at_a(0, i, p)];
      CHECK(std::fabs(x.sums[i] - sum) <=
            (std::ceil(std::log2(static_cast<double>(k))) + 2) * 0x1p-24 * sum);
    }
    CHECK(x.sums[1] == kInf);
    CHECK(std::isnan(x.sums[2]));
  }
}

TEST_CASE("cuda gemm: relu keeps NaN, and is for integers too", "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  for (const DType t : kGemmTypes)
    for (const std::int64_t m : {std::int64_t{3}, std::int64_t{80}}) {
      Case s{m, 40, 12};
      s.relu = true;
      check(t, s);
      if (!braid::is_floating(t)) continue;
      Operands x(t, s);
      x.a.put(x.at_a(0, 1, 5), kNaN);
      x.run();
      CHECK(std::isnan(x.c[x.at_c(0, 1, 0)]));
    }
}

TEST_CASE("cuda gemm: the plan", "[cuda_kernels][gemm]") {
  using braid::cuda::GemmTileKind;
  const auto plan = [](std::int64_t m, std::int64_t n, std::int64_t k, int processors,
                       DType t = DType::float32) {
    GemmArgs args{};
    args.dtype = t, args.m = m, args.n = n, args.k = k, args.batch = 1;
    return braid::cuda::plan_gemm(args, processors);
  };
  CHECK(plan(30, 2, 5, 132).tile == GemmTileKind::tiny);  // y of 30×5→2
  CHECK(plan(30, 5, 2, 132).tile == GemmTileKind::tiny);  // dx
  CHECK(plan(2, 5, 30, 132).tile == GemmTileKind::tiny);  // dW and db
  CHECK(plan(4096, 4096, 4096, 132).tile == GemmTileKind::square128);
  CHECK(plan(4096, 4096, 4096, 132).splits == 1);
  CHECK(plan(4096, 4096, 64, 132, DType::float64).tile == GemmTileKind::square64);
  CHECK(plan(100000, 10, 64, 132).tile == GemmTileKind::columns128x16);
  CHECK(plan(10, 100000, 64, 132).tile == GemmTileKind::rows16x128);
  CHECK(plan(64, 10, 8192, 132).splits == 32);  // dW of a small layer, many rows
  CHECK(plan(64, 10, 8192, 1).splits == 32);
}

TEST_CASE("cuda gemm: batches, with repeated operands", "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  for (const DType t : kGemmTypes)
    for (int layout = 0; layout < 4; ++layout)
      for (int repeat = 0; repeat < 3; ++repeat) {
        Case s{17, 70, 23, layout >= 2, layout % 2 == 1};
        s.batch = 3;
        s.repeat_a = repeat == 1, s.repeat_b = repeat == 2, s.bias = repeat == 0;
        s.pad = repeat;
        check(t, s);
      }
}

TEST_CASE("cuda gemm: nothing along k, or nothing at all", "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  for (const DType t : kGemmTypes)
    for (int end = 0; end < 3; ++end) {
      Case s{7, 35, 0, false, end == 1};
      s.accumulate = end == 1, s.bias = end == 2, s.batch = 2;
      check(t, s);
    }
  check(DType::float32, {0, 5, 3});
  check(DType::float32, {5, 0, 3});
  Case none{4, 4, 4};
  none.batch = 0;
  check(DType::float32, none);
}

TEST_CASE("cuda gemm: NaN and infinity go where they belong, and what C held does not matter",
          "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (int layout = 0; layout < 4; ++layout)
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{7, 9, 5}, {70, 66, 40}})
        for (const double special : {kNaN, kInf, -kInf})
          for (const std::int64_t where : {std::int64_t{0}, k - 1}) {
            Operands x(t, {m, n, k, layout >= 2, layout % 2 == 1});
            for (std::int64_t i = 0; i < x.a.size(); ++i) x.a.put(i, std::fabs(x.a[i]) + 0.5);
            for (std::int64_t i = 0; i < x.b.size(); ++i) x.b.put(i, std::fabs(x.b[i]) + 0.5);
            for (std::int64_t i = 0; i < x.c.size(); ++i) x.c.put(i, kNaN);
            x.a.put(x.at_a(0, m - 1, where), special);
            x.run();
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < m; ++i)
              for (std::int64_t j = 0; j < n; ++j) {
                const double c = x.c[x.at_c(0, i, j)];
                wrong += i != m - 1            ? !std::isfinite(c)
                         : std::isnan(special) ? !std::isnan(c)
                                               : c != special;
              }
            INFO(braid::name_of(t) << " layout " << layout << " special " << special);
            CHECK(wrong == 0);
          }
}

TEST_CASE("cuda gemm: 16-bit products are summed in float, integers wrap", "[cuda_kernels][gemm]") {
  NEEDS_GPU;
  Operands x(DType::bfloat16, {1, 1, 4096});
  // a bfloat16 sum would stop growing at 2
  for (std::int64_t i = 0; i < 4096; ++i) x.a.put(i, 1), x.b.put(i, 0x1.8p-8);
  x.run();
  CHECK(x.c[0] == 24);
  Operands wrap(DType::int32, {1, 1, 1});
  wrap.a.put(0, std::numeric_limits<std::int32_t>::max()), wrap.b.put(0, 2);
  wrap.run();
  CHECK(wrap.c[0] == -2);
  for (const DType t : {DType::bool_, DType::uint8}) {
    GemmArgs args{};
    args.dtype = t;
    args.m = args.n = args.k = args.batch = 1;
    CHECK_THROWS_AS(gpu().gemm(args, gpu_stream()), braid::DTypeError);
    CHECK_THROWS_WITH(
        gpu().gemm(args, gpu_stream()),
        braid::str("matmul: expected float32, float64, float16, bfloat16, int32 or int64, got ",
                   t));
  }
}

TEST_CASE("cuda gemm_pair: the bits of two products", "[cuda_kernels][gemm][pair]") {
  NEEDS_GPU;
  struct Layer {
    std::int64_t rows, in, out;
  };
  for (const DType t : {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                        DType::int32, DType::int64})
    for (const Layer& l : std::vector<Layer>{{30, 5, 2},
                                             {1, 1, 1},
                                             {64, 16, 16},
                                             {65, 16, 16},
                                             {33, 70, 5},
                                             {200, 40, 48},
                                             {0, 4, 3},
                                             {4, 0, 3},
                                             {4, 3, 0}}) {
      INFO(braid::name_of(t) << " " << l.rows << " rows, " << l.in << " to " << l.out);
      Case dw{l.out, l.in, l.rows, true, false};
      dw.sums = braid::is_floating(t);
      Operands input(t, {l.rows, l.in, l.out}), weight(t, dw);
      input.run(), weight.run();
      Operands first(t, {l.rows, l.in, l.out}), second(t, dw);
      Twin a(first.a), b(first.b), c(first.c), d(second.a), e(second.b), f(second.c),
          g(second.sums);
      first.args.a = a.data(), first.args.b = b.data(), first.args.c = c.data();
      second.args.a = d.data(), second.args.b = e.data(), second.args.c = f.data(),
      second.args.sum_a = dw.sums ? g.data() : nullptr;
      gpu().gemm_pair({first.args, second.args}, gpu_stream());
      c.fetch(), f.fetch(), g.fetch();
      std::int64_t different = 0;
      for (std::int64_t i = 0; i < input.c.size(); ++i) different += input.c[i] != first.c[i];
      for (std::int64_t i = 0; i < weight.c.size(); ++i) different += weight.c[i] != second.c[i];
      for (std::int64_t i = 0; i < weight.sums.size(); ++i)
        different += weight.sums[i] != second.sums[i];
      CHECK(different == 0);
    }
}

#if defined(BRAID_CUDA_SIMT)
TEST_CASE("cuda gemm: the kernels are named after what they are in a linear layer",
          "[cuda_kernels][gemm][names]") {
  NEEDS_GPU;
  const auto launched = [](bool ta, bool tb) {
    Operands x(DType::float32, {5, 6, 7, ta, tb});
    braid::simt::clear_launch_log();
    x.run();
    const auto log = braid::simt::launch_log();
    return log.empty() ? std::string() : log.front().kernel;
  };
  CHECK(launched(false, true).find("linear_forward") != std::string::npos);
  CHECK(launched(false, false).find("linear_backward_input") != std::string::npos);
  CHECK(launched(true, false).find("linear_backward_weight") != std::string::npos);
  CHECK(launched(true, true).find("matmul_both_transposed") != std::string::npos);
  braid::simt::clear_launch_log();
  Case s{2, 5, 30, true, false};  // dW and db of 30×5→2
  s.sums = true;
  Operands(DType::float32, s).run();
  CHECK(braid::simt::launch_log().size() == 1);
  braid::simt::clear_launch_log();
  Operands input(DType::float32, {30, 5, 2}), weight(DType::float32, s);
  Twin a(input.a), b(input.b), c(input.c), d(weight.a), e(weight.b), f(weight.c), g(weight.sums);
  input.args.a = a.data(), input.args.b = b.data(), input.args.c = c.data();
  weight.args.a = d.data(), weight.args.b = e.data(), weight.args.c = f.data(),
  weight.args.sum_a = g.data();
  gpu().gemm_pair({input.args, weight.args}, gpu_stream());
  c.fetch();
  REQUIRE(braid::simt::launch_log().size() == 1);  // dx, dW and db
  CHECK(braid::simt::launch_log().front().kernel.find("linear_backward_tiny") != std::string::npos);
}
#endif

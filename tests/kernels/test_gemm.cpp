#include "cpu/gemm_library.hpp"
#include "kernels/gemm_cases.hpp"
#include "support/on_device.hpp"

using namespace kernel_test;

namespace {

/// Runs f. On a CPU with oneDNN, runs it a second time without oneDNN.
void with_and_without_library(const std::function<void()>& f) {
  f();
  if (on_cuda() || !braid::cpu::library_gemm_available()) return;
  struct Off {
    Off() { (void)braid::cpu::use_library_gemm(false); }
    ~Off() { (void)braid::cpu::use_library_gemm(true); }
  } off;
  f();
}
/// Returns all shapes on the CPU, and on CUDA those that the emulation computes quickly.
std::vector<Shape> fit(const std::vector<Shape>& shapes) {
  std::vector<Shape> list;
  for (const Shape& s : shapes)
    if (!on_cuda() || s[0] * s[1] * s[2] < 200000) list.push_back(s);
  return list;
}

}  // namespace

TEST_CASE("gemm: sizes that break tilings, all layouts", "[kernels][gemm]") {
  NEEDS_DEVICE;
  std::vector<Shape> shapes{{2, 30, 5},   {5, 7, 17},  {64, 10, 33}, {63, 65, 15}, {65, 64, 16},
                            {130, 3, 40}, {4, 68, 32}, {1, 1, 1},    {66, 37, 5},  {66, 37, 130}};
  if (!on_cuda())
    for (const std::int64_t m : {1, 2, 4, 5, 6, 7, 13, 37})
      for (const std::int64_t n : {1, 2, 3, 8, 15, 16, 17, 31, 33, 64, 65, 81, 130})
        for (const std::int64_t k : {1, 2, 5, 7, 16, 33, 64, 71, 129, 300})
          shapes.push_back({m, n, k});
  std::size_t number = 0;
  for (const DType t : kGemmTypes) {
    unsigned turn = 0;
    ++number;  // so that a part has another layout for each dtype and for each next shape
    for (const Shape& shape : shapes) {
      ++number;
      for (int layout = 0; layout < 4; ++layout, ++turn) {
        if (!braid::test::in_part(number++)) continue;
        Product s = product(shape, layout);
        s.pad = turn % 3 == 0 ? 3 : on_cuda() && turn % 3 == 1 ? 4 : 0;
        s.accumulate = turn % 5 == 1;
        s.bias = turn % 5 == 3;
        s.shift = turn % 7 == 2 ? 1 : 0;
        check(t, s);
      }
    }
  }
}

TEST_CASE("gemm: large enough to be cut", "[kernels][gemm]") {
  if (on_cuda()) return;
  with_and_without_library([] {
    std::size_t number = 0;
    for (int layout = 0; layout < 4; ++layout) {
      for (const DType t :
           {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int64})
        for (int end = 0; end < 3; ++end)
          for (const Shape& shape : {Shape{150, 170, 70},
                                     {64, 300, 200},
                                     {301, 129, 131},
                                     {3, 900, 150},
                                     {700, 9, 90},
                                     {400, 1, 300}}) {
            if (!braid::test::in_part(number++)) continue;
            Product s = product(shape, layout);
            s.accumulate = end == 1, s.bias = end == 2, s.pad = end;
            check(t, s);
          }
      Product grid = product({270, 530, 140}, layout);  // divided in both directions
      grid.bias = layout % 2 == 0;
      check(DType::float32, grid);
    }
    for (const bool tb : {false, true}) {
      Product s{130, 140, 150, false, tb};
      s.batch = 3;
      check(DType::float32, s);
    }
  });
}

TEST_CASE("gemm: batches, with repeated operands", "[kernels][gemm]") {
  NEEDS_DEVICE;
  for (const DType t : kGemmTypes)
    for (const std::int64_t batch : on_cuda() ? Sizes{3} : Sizes{2, 3, 33})
      for (int layout = 0; layout < 4; ++layout)
        for (const Shape& shape : on_cuda()
                                      ? std::vector<Shape>{{17, 70, 23}}
                                      : std::vector<Shape>{{3, 4, 5}, {17, 19, 23}, {40, 50, 60}})
          for (int repeat = 0; repeat < 3; ++repeat) {
            Product s = product(shape, layout);
            s.batch = batch;
            s.repeat_a = repeat == 1, s.repeat_b = repeat == 2, s.bias = repeat == 0;
            s.pad = repeat;
            check(t, s);
          }
}

TEST_CASE("gemm: nothing along k, or nothing at all", "[kernels][gemm]") {
  NEEDS_DEVICE;
  for (const DType t : kGemmTypes) {
    for (int layout = 0; layout < 4; ++layout)
      for (int end = 0; end < 3; ++end)
        for (const std::int64_t batch : {1, 2, 4}) {
          Product s = product({7, 35, 0}, layout);
          s.accumulate = end == 1, s.bias = end == 2, s.batch = batch;
          check(t, s);
        }
    for (const Shape& shape : {Shape{0, 5, 3}, {5, 0, 3}, {0, 0, 0}}) check(t, product(shape, 0));
    Product none{4, 4, 4};
    none.batch = 0;
    check(t, none);
  }
}

TEST_CASE("gemm: NaN and infinity go where they belong, and what C held does not matter",
          "[kernels][gemm]") {
  NEEDS_DEVICE;
  with_and_without_library([] {
    for (const DType t : kFloats)
      for (int layout = 0; layout < 4; ++layout)
        for (const auto& [m, n, k] : fit({{7, 9, 5},
                                          {70, 66, 40},
                                          {20, 70, 33},
                                          {3, 40, 100},
                                          {64, 10, 130},
                                          {150, 170, 70}}))
          for (const double special : {kNaN, kInf, -kInf})
            for (const std::int64_t where : {std::int64_t{0}, k / 2, k - 1}) {
              Operands x(t, product({m, n, k}, layout));
              INFO(describe(t, x.s) << " special " << special << " at " << where);
              for (Buffer* operand : {&x.a, &x.b})
                for (std::int64_t i = 0; i < operand->size(); ++i)
                  operand->put(i, std::fabs((*operand)[i]) + 0.5);
              x.c.fill(kNaN);
              x.a.put(x.s.at_a(0, m - 1, where), special);
              x.run();
              std::int64_t wrong = 0;
              for (std::int64_t i = 0; i < m; ++i)
                for (std::int64_t j = 0; j < n; ++j) {
                  const double c = x.c[x.s.at_c(0, i, j)];
                  wrong += i != m - 1            ? !std::isfinite(c)
                           : std::isnan(special) ? !std::isnan(c)
                                                 : c != special;
                }
              CHECK(wrong == 0);
            }
  });
}

TEST_CASE("gemm: what C held before does not matter unless it is added to", "[kernels][gemm]") {
  NEEDS_DEVICE;
  with_and_without_library([] {
    for (const DType t : kFloats)
      for (const Shape& shape : fit({{7, 9, 5}, {150, 170, 70}, {64, 10, 130}, {5, 6, 0}}))
        for (const bool tb : {false, true})
          for (const bool bias : {false, true}) {
            Product s = product(shape, tb ? 1 : 0);
            s.bias = bias;
            Operands x(t, s);
            x.c.fill(kNaN);
            x.run();
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < x.c.size(); ++i) wrong += std::isnan(x.c[i]);
            CHECK(wrong == 0);
          }
  });
}

TEST_CASE("gemm: the same bits for any number of threads, and again", "[kernels][gemm][threads]") {
  if (on_cuda()) return;
  const int before = braid::num_threads();
  with_and_without_library([] {
    std::vector<Product> cases;
    for (const Shape& shape : {Shape{64, 512, 784},
                               {512, 784, 64},
                               {64, 10, 512},
                               {10, 512, 64},
                               {64, 512, 10},
                               {2, 700, 300},
                               {333, 5, 400},
                               {270, 530, 140}})
      for (int layout = 0; layout < 3; ++layout) cases.push_back(product(shape, layout));
    cases.push_back({20, 20, 20});
    cases.back().batch = 100;
    std::size_t number = 0;
    for (const DType t : kFloats)
      for (Product s : cases) {
        if (!braid::test::in_part(number++)) continue;
        s.bias = true;
        INFO(describe(t, s));
        Operands x(t, s);
        std::vector<unsigned char> first;
        for (const int threads : {1, 2, 3, 5, 2}) {
          braid::set_num_threads(threads);
          std::memset(x.c.host(), 0, x.c.bytes().size());
          x.run();
          if (first.empty()) first = x.c.bytes();
          CHECK(x.c.bytes() == first);
        }
      }
  });
  braid::set_num_threads(before);
}

TEST_CASE("gemm: relu is the last thing done, and keeps NaN", "[kernels][gemm]") {
  NEEDS_DEVICE;
  with_and_without_library([] {
    for (const DType t : kGemmTypes)
      for (const Shape& shape :
           fit({{7, 9, 5}, {150, 170, 70}, {64, 10, 130}, {3, 40, 0}, {3, 40, 12}, {80, 40, 12}}))
        for (int layout = 0; layout < 4; ++layout) {
          Product s = product(shape, layout);
          s.accumulate = layout == 1, s.bias = layout == 2, s.pad = layout;
          s.batch = layout == 3 ? 3 : 1;
          INFO(describe(t, s));
          Operands plain(t, s);
          s.epilogue = braid::Epilogue::relu;
          check(t, s);
          Operands relu(t, s);
          if (braid::is_floating(t) && s.k > 0) plain.a.put(0, kNaN), relu.a.put(0, kNaN);
          plain.run(), relu.run();
          std::int64_t wrong = 0;
          for (std::int64_t at = 0; at < plain.c.size(); ++at) {
            const bool inside = at % plain.args.batch_c % plain.args.ldc < s.n;
            const double before = plain.c[at], after = relu.c[at];
            wrong += std::isnan(before) ? !std::isnan(after)
                                        : after != (inside && before < 0 ? 0 : before);
          }
          CHECK(wrong == 0);
        }
  });
}

TEST_CASE("gemm: every epilogue", "[kernels][gemm][epilogue]") {
  NEEDS_DEVICE;
  with_and_without_library([] {
    unsigned turn = 0;
    for (const DType t : kGemmTypes)
      for (const braid::Epilogue epilogue : epilogues_of(t))
        for (const Shape& shape : fit({{7, 9, 5},
                                       {1, 1, 1},
                                       {33, 64, 17},
                                       {150, 170, 70},
                                       {64, 10, 130},
                                       {3, 40, 0},
                                       {66, 72, 12}}))
          for (const bool kept : {false, true}) {
            if (kept && !is_gelu(epilogue)) continue;
            const unsigned now = turn++;
            Product s = product(shape, static_cast<int>(now % 4));
            s.epilogue = epilogue, s.kept = kept;
            s.accumulate = now % 5 == 1, s.bias = now % 5 == 2;
            s.pad = now % 3 == 0 ? 0 : now % 3 == 1 ? 4 - s.n % 4 : 1;
            s.batch = now % 7 == 3 ? 3 : 1;
            s.shift = now % 11 == 4, s.other_shift = now % 4 == 3;
            check(t, s);
            check_apart(t, s);
          }
  });
}

TEST_CASE("gemm: an epilogue of NaN and infinity", "[kernels][gemm][epilogue]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const braid::Epilogue epilogue : epilogues_of(t))
      for (const Shape& shape : {Shape{3, 5, 4}, {66, 72, 12}}) {
        Product s = product(shape, 1);
        s.epilogue = epilogue;
        const auto special = [&](Operands& x) {
          x.a.fill(0);
          unsigned turn = 0;
          for (const double z : {kNaN, kInf, -kInf, 0.0, -0.0, 1e-6, -30.0})
            for (const double o : {kNaN, kInf, -kInf, 0.0, -0.0, 2.0, -2.0}) {
              const std::int64_t i = turn / shape[1] % shape[0], j = turn % shape[1];
              ++turn;
              x.c.put(s.at_c(0, i, j), z), x.other.put(s.at_c(0, i, j), o);
            }
        };
        s.accumulate = true;
        check_apart(t, s, special);
      }
}

TEST_CASE("gemm: sums of op(A)'s rows beside the product", "[kernels][gemm]") {
  NEEDS_DEVICE;
  const int before = braid::num_threads();
  for (const DType t : kFloats)
    for (const Shape& shape :
         {Shape{2, 5, 30}, {33, 70, 1}, {130, 17, 300}, {10, 64, 3000}, {5, 4, 0}})
      for (const bool ta : {false, true})
        for (const std::int64_t pad : {0, 3}) {
          if (on_cuda() && (shape[2] > 30 || shape[2] == 0)) continue;
          Product s = product(shape, ta ? 2 : 0);
          s.pad = pad, s.accumulate = pad == 3;
          INFO(describe(t, s));
          Operands plain(t, s);
          plain.run();
          s.sums = true;
          check(t, s);
          if (on_cuda()) continue;
          std::vector<unsigned char> first;
          for (const int threads : {1, 3}) {
            braid::set_num_threads(threads);
            Operands with(t, s);
            with.run();
            if (first.empty()) first = with.sums.bytes();
            CHECK(with.sums.bytes() == first);
            CHECK(with.c.bytes() == plain.c.bytes());
          }
        }
  braid::set_num_threads(before);
}

TEST_CASE("gemm: sums of long rows of one sign, of infinities and of NaN", "[kernels][gemm]") {
  NEEDS_DEVICE;
  for (const std::int64_t k : {std::int64_t{60}, std::int64_t{3000}}) {
    Product s{9, 5, k, true, false};
    s.sums = true;
    Operands x(DType::float32, s);
    for (std::int64_t i = 0; i < x.a.size(); ++i) x.a.put(i, 1.0 / static_cast<double>(i % 97 + 3));
    x.a.put(x.s.at_a(0, 1, k - 1), kInf);
    x.a.put(x.s.at_a(0, 2, 0), kNaN);
    x.run();
    for (std::int64_t i = 3; i < s.m; ++i) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += x.a[x.s.at_a(0, i, p)];
      CHECK(std::fabs(x.sums[i] - sum) <= (log2_up(k) + 2) * 0x1p-24 * sum);
    }
    CHECK(x.sums[1] == kInf);
    CHECK(std::isnan(x.sums[2]));
  }
}

TEST_CASE("gemm_pair: the bits of two products", "[kernels][gemm][pair]") {
  NEEDS_DEVICE;
  for (const DType t : kGemmTypes)
    for (const auto& [rows, in, out] : {Shape{30, 5, 2},
                                        {1, 1, 1},
                                        {64, 16, 16},
                                        {65, 16, 16},
                                        {33, 70, 5},
                                        {200, 40, 48},
                                        {64, 130, 70},
                                        {0, 5, 2},
                                        {0, 4, 3},
                                        {4, 0, 3},
                                        {4, 3, 0}})
      for (const braid::Epilogue epilogue :
           {braid::Epilogue::none, braid::Epilogue::relu_backward}) {
        INFO(braid::name_of(t) << " " << rows << " rows, " << in << " to " << out);
        Product dx{rows, in, out}, dw{out, in, rows, true, false};
        dx.epilogue = epilogue;
        dw.sums = braid::is_floating(t);
        Operands input(t, dx), weight(t, dw), first(t, dx), second(t, dw);
        input.run(), weight.run();
        kernels().gemm_pair({first.args, second.args}, stream());
        CHECK((input.c.bytes() == first.c.bytes() && weight.c.bytes() == second.c.bytes() &&
               weight.sums.bytes() == second.sums.bytes()));
      }
}

TEST_CASE("gemm: 16-bit products are summed in float and rounded once, integers wrap",
          "[kernels][gemm]") {
  NEEDS_DEVICE;
  Operands x(DType::bfloat16, {1, 1, 4096});
  // a bfloat16 sum would stop growing at 2
  x.a.fill(1), x.b.fill(0x1.8p-8);
  x.run();
  CHECK(x.c[0] == 24);
  Operands wrap(DType::int32, {1, 1, 1});
  wrap.a.put(0, std::numeric_limits<std::int32_t>::max()), wrap.b.put(0, 2);
  wrap.run();
  CHECK(wrap.c[0] == -2);
}

TEST_CASE("gemm: bool and uint8 are refused", "[kernels][gemm][errors]") {
  NEEDS_DEVICE;
  for (const DType t : {DType::bool_, DType::uint8}) {
    Operands x(t, {1, 1, 1});
    const auto before = x.c.bytes();
    CHECK_THROWS_AS(x.run(), braid::DTypeError);
    CHECK_THROWS_WITH(
        x.run(),
        braid::str("matmul: expected float32, float64, float16, bfloat16, int32 or int64, got ",
                   t));
    CHECK(x.c.bytes() == before);
  }
}

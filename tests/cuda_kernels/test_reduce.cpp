#include <braid/core/kernel_args/reduce.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

using namespace kernel_test;
using braid::ReduceArgs;
using braid::ReduceOp;

namespace {

// Operand 0 gets the strides of a dense result.
Loop keep_loop(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  Loop loop{};
  loop.rank = static_cast<int>(sizes.size());
  loop.n = 1;
  for (int d = loop.rank - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    loop.size[d] = sizes[i];
    loop.stride[0][d] = loop.n;
    loop.stride[1][d] = strides[i];
    loop.n *= sizes[i];
  }
  loop.dense = loop.rank == 1 && strides[0] == 1;
  return loop;
}

struct Case {
  Loop keep, over;
};

DType result_type(ReduceOp op, DType t) {
  if (op == ReduceOp::argmax || op == ReduceOp::argmin) return DType::int64;
  return op == ReduceOp::sum && !braid::is_floating(t) ? DType::int64 : t;
}

std::int64_t spans(const Case& c) { return extent(c.keep, 1) + extent(c.over, 1) - 1; }

void run(ReduceOp op, Buffer& out, Buffer& x, const Case& c, double scale = 1,
         std::int64_t shift = 0) {
  Twin dx(x, shift), dout(out, shift);
  gpu().reduce(ReduceArgs{.op = op,
                          .dtype = x.dtype(),
                          .out = dout.data(),
                          .x = dx.data(),
                          .scale = scale,
                          .keep = c.keep,
                          .over = c.over},
               gpu_stream());
  dout.fetch();
}

void check_case(ReduceOp op, DType t, const Case& c, std::int64_t shift = 0, double scale = 1) {
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " keep " << c.keep.n << " over "
             << c.over.n << " shift " << shift);
  Buffer x(t, spans(c)), out(result_type(op, t), c.keep.n);
  x.pattern(7);
  run(op, out, x, c, scale, shift);
  std::int64_t wrong = 0;
  for (std::int64_t e = 0; e < c.keep.n; ++e) {
    const std::int64_t base = offset(c.keep, 1, e);
    long double sum = 0;  // more digits than float64
    double magnitude = 0, best = op == ReduceOp::max || op == ReduceOp::argmax ? -kInf : kInf;
    std::int64_t index = -1;
    for (std::int64_t j = 0; j < c.over.n; ++j) {
      const double v = x[base + offset(c.over, 1, j)];
      sum += v;
      magnitude += std::fabs(v);
      if (op == ReduceOp::max || op == ReduceOp::argmax ? v > best : v < best) best = v, index = j;
    }
    double expected = static_cast<double>(sum * scale), tolerance = 0;
    if (op == ReduceOp::sum && braid::is_floating(t)) {
      const double log2n = c.over.n > 1 ? std::ceil(std::log2(static_cast<double>(c.over.n))) : 0;
      tolerance = (log2n + 2) * unit(t) * magnitude * std::fabs(scale) + half_ulp(t, expected);
    } else if (op == ReduceOp::max || op == ReduceOp::min) {
      expected = best;
    } else if (op != ReduceOp::sum) {
      expected = static_cast<double>(index);
    }
    wrong += !(std::fabs(out[e] - expected) <= tolerance);
  }
  CHECK(wrong == 0);
}

const std::vector<ReduceOp> kOps{ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::argmax,
                                 ReduceOp::argmin};

}  // namespace

TEST_CASE("cuda reduce: everything, every dtype and size", "[cuda_kernels][reduce]") {
  NEEDS_GPU;
  for (const ReduceOp op : kOps)
    for (const DType t : kAll)
      for (const std::int64_t n : {1, 7, 16, 17, 33, 512, 513, 4096, 4097, 10007})
        check_case(op, t, {keep_loop({}, {}), keep_loop({n}, {1})}, n % 2,
                   op == ReduceOp::sum && braid::is_floating(t) ? 0.37 : 1);
}

TEST_CASE("cuda reduce: rows, columns and any strides", "[cuda_kernels][reduce]") {
  NEEDS_GPU;
  for (const ReduceOp op : kOps)
    for (const DType t : kAll) {
      for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{5, 7},
                                    {30, 2},
                                    {3, 300},
                                    {70, 129},
                                    {257, 33},
                                    {1, 40},
                                    {40, 1},
                                    {300, 3}}) {
        // over the rows' elements
        check_case(op, t, {keep_loop({rows}, {n}), keep_loop({n}, {1})});
        // over the columns' elements
        check_case(op, t, {keep_loop({n}, {1}), keep_loop({rows}, {n})}, 1);
        check_case(op, t, {keep_loop({n}, {2}), keep_loop({rows}, {3 * n})});  // neither dense
      }
      // columns with outer dims on both sides
      check_case(op, t, {keep_loop({4, 6}, {120, 1}), keep_loop({5, 4}, {24, 6})});
      // first and last dim reduced
      check_case(op, t, {keep_loop({5}, {24}), keep_loop({4, 24}, {120, 1})}, 1);
      // an expanded dim is kept
      check_case(op, t, {keep_loop({3, 4}, {0, 1}), keep_loop({6}, {4})});
      // an expanded dim is reduced
      check_case(op, t, {keep_loop({4}, {1}), keep_loop({3, 6}, {0, 4})});
      // nothing is reduced
      check_case(op, t, {keep_loop({4}, {1}), keep_loop({}, {})});
      check_case(op, t, {keep_loop({0}, {1}), keep_loop({5}, {1})});
    }
}

TEST_CASE("cuda reduce: in several passes", "[cuda_kernels][reduce]") {
  NEEDS_GPU;
  for (const DType t :
       {DType::float32, DType::float64, DType::bfloat16, DType::int64, DType::uint8})
    for (const ReduceOp op : kOps) {
      check_case(op, t, {keep_loop({2}, {70001}), keep_loop({70001}, {1})});
      check_case(op, t, {keep_loop({9}, {1}), keep_loop({7001}, {9})});
      check_case(op, t, {keep_loop({150}, {1}), keep_loop({270}, {150})});
    }
  // partial sums of partial sums
  check_case(ReduceOp::sum, DType::float32, {keep_loop({}, {}), keep_loop({2200001}, {1})});
}

TEST_CASE("cuda reduce: equal addends do not drift", "[cuda_kernels][reduce]") {
  NEEDS_GPU;
  const std::int64_t n = 1000000;
  Buffer x(DType::float32, n), out(DType::float32, 1);
  for (std::int64_t i = 0; i < n; ++i) x.put(i, 0.1);
  const double exact = static_cast<double>(0.1f) * static_cast<double>(n);
  run(ReduceOp::sum, out, x, {keep_loop({}, {}), keep_loop({n}, {1})});
  CHECK(std::fabs(out[0] - exact) <= 22 * 0x1p-24 * exact);
  run(ReduceOp::sum, out, x, {keep_loop({1}, {1}), keep_loop({n / 10, 10}, {10, 1})});
  CHECK(std::fabs(out[0] - exact) <= 22 * 0x1p-24 * exact);
}

TEST_CASE("cuda reduce: NaN, infinities and zeros", "[cuda_kernels][reduce]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const std::int64_t n : {1, 17, 300, 5000})
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1})
        for (const bool columns : {false, true}) {
          const std::int64_t keep = columns ? 8 : 1;
          const Case c{keep_loop({keep}, {1}), keep_loop({n}, {keep})};
          const auto result = [&](ReduceOp op, double special) {
            Buffer x(t, n * keep), out(result_type(op, t), keep);
            x.pattern(5).put(at * keep, special);
            run(op, out, x, c);
            return out[0];
          };
          INFO(braid::name_of(t) << " n " << n << " at " << at << " columns " << columns);
          CHECK(std::isnan(result(ReduceOp::sum, kNaN)));
          CHECK(std::isnan(result(ReduceOp::max, kNaN)));
          CHECK(std::isnan(result(ReduceOp::min, kNaN)));
          CHECK(result(ReduceOp::argmax, kNaN) == static_cast<double>(at));
          CHECK(result(ReduceOp::argmin, kNaN) == static_cast<double>(at));
          CHECK(result(ReduceOp::sum, kInf) == kInf);
          CHECK(result(ReduceOp::max, kInf) == kInf);
          CHECK(result(ReduceOp::argmin, -kInf) == static_cast<double>(at));
        }
  Buffer x(DType::float32, 40), out(DType::float32, 1), index(DType::int64, 1);
  const Case all{keep_loop({}, {}), keep_loop({40}, {1})};
  for (int i = 0; i < 40; ++i) x.put(i, -kInf);
  run(ReduceOp::max, out, x, all);
  CHECK(out[0] == -kInf);
  run(ReduceOp::argmax, index, x, all);
  CHECK(index[0] == 0);
  for (int i = 0; i < 40; ++i) x.put(i, -0.0);
  run(ReduceOp::sum, out, x, all);
  CHECK((out[0] == 0 && !std::signbit(out[0])));
}

TEST_CASE("cuda reduce: argmax gives the first of equal elements", "[cuda_kernels][reduce]") {
  NEEDS_GPU;
  for (const DType t : kAll)
    for (const bool columns : {false, true})
      for (const std::int64_t n : {5, 64, 1000, 9000}) {
        const std::int64_t keep = columns ? 8 : 1, first = n / 3;
        Buffer x(t, n * keep), out(DType::int64, keep);
        for (std::int64_t i = 0; i < n * keep; ++i)
          x.put(i, i / keep >= first && (i / keep - first) % 2 == 0 ? 1 : 0);
        const Case c{keep_loop({keep}, {1}), keep_loop({n}, {keep})};
        run(ReduceOp::argmax, out, x, c);
        CHECK(out[keep - 1] == static_cast<double>(first));
        run(ReduceOp::argmin, out, x, c);
        CHECK(out[keep - 1] == (first == 0 ? 1.0 : 0.0));
      }
}

TEST_CASE("cuda reduce: integers sum in 64 bits and wrap", "[cuda_kernels][reduce]") {
  NEEDS_GPU;
  Buffer x(DType::int32, 100), out(DType::int64, 1), wide(DType::int64, 2);
  for (int i = 0; i < 100; ++i) x.put(i, std::numeric_limits<std::int32_t>::max());
  run(ReduceOp::sum, out, x, {keep_loop({}, {}), keep_loop({100}, {1})});
  CHECK(out[0] == 100.0 * std::numeric_limits<std::int32_t>::max());
  for (int i = 0; i < 100; ++i) x.put(i, -7);
  run(ReduceOp::sum, out, x, {keep_loop({}, {}), keep_loop({100}, {1})});
  CHECK(out[0] == -700);
  static_cast<std::int64_t*>(wide.data())[0] = std::numeric_limits<std::int64_t>::max();
  static_cast<std::int64_t*>(wide.data())[1] = 1;
  run(ReduceOp::sum, out, wide, {keep_loop({}, {}), keep_loop({2}, {1})});
  CHECK(*static_cast<std::int64_t*>(out.data()) == std::numeric_limits<std::int64_t>::min());
  run(ReduceOp::max, out, wide, {keep_loop({}, {}), keep_loop({2}, {1})});
  CHECK(*static_cast<std::int64_t*>(out.data()) == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("cuda reduce: of nothing", "[cuda_kernels][reduce]") {
  NEEDS_GPU;
  const Case c{keep_loop({3}, {0}), keep_loop({0}, {1})};
  for (const DType t : kAll) {
    Buffer x(t, 0), out(result_type(ReduceOp::sum, t), 3);
    run(ReduceOp::sum, out, x, c);
    for (int i = 0; i < 3; ++i) CHECK(out[i] == 0);
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::argmax, ReduceOp::argmin})
      CHECK_THROWS_WITH(run(op, out, x, c),
                        "reduce: expected at least one element to reduce, got none");
  }
  Buffer x(DType::float32, 0), mean(DType::float32, 3);
  run(ReduceOp::sum, mean, x, c, kInf);
  CHECK(std::isnan(mean[2]));
}

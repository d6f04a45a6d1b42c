#include <braid/core/kernel_args/reduce.hpp>

#include "kernels/kernel_support.hpp"
#include "support/sanitized.hpp"

using namespace kernel_test;
using braid::ReduceOp;

namespace {

// Operand 0 gets the strides of a contiguous result.
Loop keep_loop(const Sizes& sizes, const Sizes& strides) {
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
Case everything(std::int64_t n) { return {keep_loop({}, {}), keep_loop({n}, {1})}; }
/// Reduces rows * n elements: the n of each row, or the rows of each of n columns.
Case of_rows(std::int64_t rows, std::int64_t n) {
  return {keep_loop({rows}, {n}), keep_loop({n}, {1})};
}
Case of_columns(std::int64_t rows, std::int64_t n) {
  return {keep_loop({n}, {1}), keep_loop({rows}, {n})};
}

DType result_type(ReduceOp op, DType t) {
  if (op == ReduceOp::argmax || op == ReduceOp::argmin) return DType::int64;
  return op == ReduceOp::sum && !braid::is_floating(t) ? DType::int64 : t;
}

std::int64_t spans(const Case& c) { return extent(c.keep, 1) + extent(c.over, 1) - 1; }

void run(ReduceOp op, Buffer& out, const Buffer& x, const Case& c, double scale = 1) {
  kernels().reduce({op, x.dtype(), out.data(), x.data(), scale, c.keep, c.over}, stream());
}

void check_case(ReduceOp op, DType t, const Case& c, std::int64_t shift = 0, double scale = 1) {
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " keep " << c.keep.n << " over "
             << c.over.n << " shift " << shift);
  Buffer x(t, spans(c), shift), out(result_type(op, t), c.keep.n, shift);
  x.pattern(7);
  run(op, out, x, c, scale);
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
      tolerance = (log2_up(c.over.n) + 2) * unit(t) * magnitude * std::fabs(scale);
      if (braid::size_of(t) == 2) tolerance += 0.5 * ulp(t, expected);
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

TEST_CASE("reduce: everything, every dtype, size and alignment", "[kernels][reduce]") {
  NEEDS_DEVICE;
  for (const ReduceOp op : kOps)
    for (const DType t : kAll) {
      Sizes all = t == DType::float32 ? sizes() : kSmallSizes;
      if (on_cuda()) all.insert(all.end(), {512, 513, 4096, 4097, 10007});
      for (const std::int64_t n : all)
        for (const std::int64_t shift : {0, 1})
          if (n > 0)
            check_case(op, t, everything(n), shift,
                       op == ReduceOp::sum && braid::is_floating(t) ? 0.37 : 1);
    }
}

TEST_CASE("reduce: rows, columns and any strides", "[kernels][reduce]") {
  NEEDS_DEVICE;
  for (const ReduceOp op : kOps)
    for (const DType t : kAll) {
      for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{5, 7},
                                    {30, 2},
                                    {64, 10},
                                    {60, 10},
                                    {3, 300},
                                    {33, 700},
                                    {3, 9001},
                                    {70, 129},
                                    {257, 33},
                                    {1, 40},
                                    {40, 1},
                                    {300, 3},
                                    {1000, 3}}) {
        if (n >= 700 && (op != ReduceOp::sum || !braid::is_floating(t))) continue;
        check_case(op, t, of_rows(rows, n));
        check_case(op, t, of_columns(rows, n), 1);
        check_case(op, t, {keep_loop({n}, {2}), keep_loop({rows}, {3 * n})});  // neither contiguous
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

TEST_CASE("reduce: long ones are shared by threads, cut in panels or take several passes",
          "[kernels][reduce]") {
  NEEDS_DEVICE;
  for (const DType t :
       {DType::float32, DType::float64, DType::bfloat16, DType::int64, DType::uint8})
    for (const ReduceOp op : kOps) {
      check_case(op, t, of_rows(2, 70001));
      check_case(op, t, of_columns(7001, 9));
      check_case(op, t, of_columns(270, 150));
      if (on_cuda()) continue;
      check_case(op, t, of_columns(70001, 3));
      check_case(op, t, of_columns(90, 1500));
    }
  // tiles larger than the smallest; partial sums of partial sums
  check_case(ReduceOp::sum, DType::float32, everything(on_cuda() ? 2200001 : 3000001));
}

TEST_CASE("reduce: threads change no bit", "[kernels][reduce]") {
  if (on_cuda()) return;
  for (const Case& c : {everything(1000003), of_rows(300, 1003), of_columns(300, 1003),
                        of_columns(30000, 10), Case{keep_loop({30}, {2}), keep_loop({5000}, {60})}})
    for (const DType t : {DType::float32, DType::float64, DType::float16})
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::argmax}) {
        Buffer x(t, spans(c)), out(result_type(op, t), c.keep.n);
        x.pattern(3);
        check_threads(out, [&] { run(op, out, x, c, 1e-3); });
      }
}

TEST_CASE("reduce: layouts change no bit", "[kernels][reduce]") {
  if (on_cuda()) return;
  // The same logical matrix, reduced along its second dim: contiguous rows, transposed (columns),
  // and strided (gathered).
  for (const DType t : kFloats)
    for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{3, 5},
                                  {7, 16},
                                  {5, 17},
                                  {9, 100},
                                  {33, 255},
                                  {4, 256},
                                  {130, 300},
                                  {6, 4099},
                                  {2, 40000}}) {
      Buffer dense_x(t, rows * n), columns(t, rows * n), steps(t, rows * n * 2);
      dense_x.pattern(11);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < n; ++j)
          columns.put(j * rows + r, dense_x[r * n + j]),
              steps.put((r * n + j) * 2, dense_x[r * n + j]);
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::argmax}) {
        Buffer a(result_type(op, t), rows), b(result_type(op, t), rows),
            c(result_type(op, t), rows);
        run(op, a, dense_x, of_rows(rows, n));
        run(op, b, columns, of_columns(n, rows));
        run(op, c, steps, {keep_loop({rows}, {2 * n}), keep_loop({n}, {2})});
        INFO(braid::name_of(t) << " " << rows << " x " << n << " op " << static_cast<int>(op));
        CHECK(a.bytes() == b.bytes());
        CHECK(a.bytes() == c.bytes());
      }
    }
}

TEST_CASE("reduce: equal addends do not drift", "[kernels][reduce]") {
  NEEDS_DEVICE;
  // A running sum of 0.1f is off by 1e-4 at this length; the tree is within (ceil(log2 n) + 2) u.
  const std::int64_t n = 1000000;
  Buffer x(DType::float32, n), out(DType::float32, 1);
  x.fill(0.1);
  const double exact = static_cast<double>(0.1f) * static_cast<double>(n);
  for (const Case& c :
       {everything(n), Case{keep_loop({1}, {1}), keep_loop({n / 10, 10}, {10, 1})}}) {
    run(ReduceOp::sum, out, x, c);
    CHECK(std::fabs(out[0] - exact) <= 22 * 0x1p-24 * exact);
  }
}

TEST_CASE("reduce: NaN, infinities and zeros", "[kernels][reduce]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const std::int64_t n : {1, 16, 17, 300, 5000})
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1})
        for (const std::int64_t keep : {1, 3, 8}) {
          const auto result = [&](ReduceOp op, double special) {
            Buffer x(t, n * keep), out(result_type(op, t), keep);
            x.pattern(5).put(at * keep, special);
            run(op, out, x, of_columns(n, keep));
            return out[0];
          };
          INFO(braid::name_of(t) << " n " << n << " at " << at << " of " << keep);
          CHECK(std::isnan(result(ReduceOp::sum, kNaN)));
          CHECK(std::isnan(result(ReduceOp::max, kNaN)));
          CHECK(std::isnan(result(ReduceOp::min, kNaN)));
          CHECK(result(ReduceOp::argmax, kNaN) == static_cast<double>(at));
          CHECK(result(ReduceOp::argmin, kNaN) == static_cast<double>(at));
          CHECK(result(ReduceOp::sum, kInf) == kInf);
          CHECK(result(ReduceOp::max, kInf) == kInf);
          CHECK(result(ReduceOp::argmax, kInf) == static_cast<double>(at));
          CHECK(result(ReduceOp::min, -kInf) == -kInf);
          CHECK(result(ReduceOp::argmin, -kInf) == static_cast<double>(at));
        }
  // Inputs with only infinities of the wrong sign, or only negative zeros.
  Buffer x(DType::float32, 40), out(DType::float32, 1), index(DType::int64, 1);
  x.fill(-kInf);
  run(ReduceOp::max, out, x, everything(40));
  CHECK(out[0] == -kInf);
  run(ReduceOp::argmax, index, x, everything(40));
  CHECK(index[0] == 0);
  run(ReduceOp::sum, out, x.fill(-0.0), everything(40));
  CHECK((out[0] == 0 && !std::signbit(out[0])));
}

TEST_CASE("reduce: argmax gives the first of equal elements", "[kernels][reduce]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const std::int64_t keep : {1, 2, 8})
      for (const std::int64_t n : {5, 64, 1000, on_cuda() ? 9000 : 70000}) {
        const std::int64_t first = n / 3;
        Buffer x(t, n * keep), out(DType::int64, keep);
        for (std::int64_t i = 0; i < n * keep; ++i)
          x.put(i, i / keep >= first && (i / keep - first) % 2 == 0 ? 1 : 0);
        run(ReduceOp::argmax, out, x, of_columns(n, keep));
        CHECK((out[0] == static_cast<double>(first) && out[keep - 1] == out[0]));
        run(ReduceOp::argmin, out, x, of_columns(n, keep));
        CHECK((out[0] == (first == 0 ? 1.0 : 0.0) && out[keep - 1] == out[0]));
      }
}

TEST_CASE("reduce: integers sum in 64 bits and wrap", "[kernels][reduce]") {
  NEEDS_DEVICE;
  struct Row {
    DType t;
    double each, n;
  };
  Buffer out(DType::int64, 1);
  for (const Row& row : {Row{DType::int32, std::numeric_limits<std::int32_t>::max(), 100},
                         {DType::int32, -7, 100},
                         {DType::uint8, 255, 1000},
                         {DType::bool_, 1, 1000}}) {
    Buffer x(row.t, static_cast<std::int64_t>(row.n));
    run(ReduceOp::sum, out, x.fill(row.each), everything(x.size()));
    CHECK(out[0] == row.each * row.n);
  }
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const Buffer wide = indices({largest, 1});
  run(ReduceOp::sum, out, wide, everything(2));
  CHECK(*static_cast<std::int64_t*>(out.host()) == std::numeric_limits<std::int64_t>::min());
  run(ReduceOp::max, out, wide, everything(2));
  CHECK(*static_cast<std::int64_t*>(out.host()) == largest);
}

TEST_CASE("reduce: of nothing", "[kernels][reduce]") {
  NEEDS_DEVICE;
  const Case c{keep_loop({3}, {0}), keep_loop({0}, {1})};
  for (const DType t : kAll) {
    Buffer x(t, 0), out(result_type(ReduceOp::sum, t), 3);
    run(ReduceOp::sum, out, x, c);
    for (int i = 0; i < 3; ++i) CHECK(out[i] == 0);
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::argmax, ReduceOp::argmin}) {
      CHECK_THROWS_AS(run(op, out, x, c), braid::ShapeError);
      CHECK_THROWS_WITH(run(op, out, x, c),
                        "reduce: expected at least one element to reduce, got none");
    }
  }
  Buffer x(DType::float32, 0), mean(DType::float32, 3);
  run(ReduceOp::sum, mean, x, c, kInf);
  CHECK(std::isnan(mean[2]));
}

TEST_CASE("reduce: more than 2^31 elements", "[kernels][reduce]") {
  if (on_cuda() || BRAID_SANITIZED) return;
  // One byte, expanded: only the index arithmetic uses large numbers.
  const std::int64_t n = (std::int64_t{1} << 31) + 513;
  Buffer x(DType::uint8, 1), out(DType::int64, 1);
  run(ReduceOp::sum, out, x.fill(3), {keep_loop({}, {}), keep_loop({n}, {0})});
  CHECK(*static_cast<std::int64_t*>(out.host()) == 3 * n);
}

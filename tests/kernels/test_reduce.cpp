#include <braid/core/kernel_args/reduce.hpp>

#include "kernels/kernel_support.hpp"
#include "support/sanitized.hpp"

using namespace kernel_test;
using braid::ReduceArgs;
using braid::ReduceOp;

namespace {

// A loop over one operand: sizes and strides. Operand 0 gets the strides of a dense result.
Loop keep_loop(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  Loop loop{};
  loop.rank = static_cast<int>(sizes.size());
  loop.n = 1;
  std::int64_t step = 1;
  for (int d = loop.rank - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    loop.size[d] = sizes[i];
    loop.stride[0][d] = step;
    loop.stride[1][d] = strides[i];
    step *= sizes[i];
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

ReduceArgs args_of(ReduceOp op, DType t, Buffer& out, const Buffer& x, const Case& c,
                   double scale = 1) {
  return ReduceArgs{.op = op,
                    .dtype = t,
                    .out = out.data(),
                    .x = x.data(),
                    .scale = scale,
                    .keep = c.keep,
                    .over = c.over};
}

// Unit roundoff of the dtype that sums are taken in, and of the result.
double unit(DType t) { return t == DType::float64 ? 0x1p-53 : 0x1p-24; }

void check_case(ReduceOp op, DType t, const Case& c, std::int64_t shift, double scale = 1) {
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " keep " << c.keep.n << " over "
             << c.over.n << " shift " << shift);
  Buffer x(t, spans(c), shift), out(result_type(op, t), c.keep.n, shift);
  x.pattern(7);
  kernels().reduce(args_of(op, t, out, x, c, scale), stream());
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
      tolerance = (log2n + 2) * unit(t) * magnitude * std::fabs(scale);
      if (t == DType::float16 || t == DType::bfloat16) tolerance += 0.5 * ulp(t, expected);
    } else if (op == ReduceOp::max || op == ReduceOp::min) {
      expected = best;
    } else if (op != ReduceOp::sum) {
      expected = static_cast<double>(index);
    }
    if (!(std::fabs(out[e] - expected) <= tolerance)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(out.guards_intact());
}

const std::vector<ReduceOp> kOps{ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::argmax,
                                 ReduceOp::argmin};

}  // namespace

TEST_CASE("reduce: everything, every dtype, size and alignment", "[kernels][reduce]") {
  for (const ReduceOp op : kOps)
    for (const DType t : kAll)
      for (const std::int64_t n : t == DType::float32 ? kSizes : kSmallSizes) {
        if (n == 0) continue;
        for (const std::int64_t shift : {0, 1})
          check_case(op, t, {keep_loop({}, {}), keep_loop({n}, {1})}, shift,
                     op == ReduceOp::sum && braid::is_floating(t) ? 0.37 : 1);
      }
}

TEST_CASE("reduce: rows, columns and any strides", "[kernels][reduce]") {
  for (const ReduceOp op : kOps)
    for (const DType t : kAll) {
      for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{5, 7},
                                    {30, 2},
                                    {64, 10},
                                    {3, 300},
                                    {70, 129},
                                    {257, 33},
                                    {1, 40},
                                    {40, 1},
                                    {1000, 3}}) {
        // over the rows' elements
        check_case(op, t, {keep_loop({rows}, {n}), keep_loop({n}, {1})}, 0);
        // over the columns' elements
        check_case(op, t, {keep_loop({n}, {1}), keep_loop({rows}, {n})}, 1);
        check_case(op, t, {keep_loop({n}, {2}), keep_loop({rows}, {3 * n})}, 0);  // neither dense
      }
      // columns with outer dims on both sides
      check_case(op, t, {keep_loop({4, 6}, {120, 1}), keep_loop({5, 4}, {24, 6})}, 0);
      // first and last dim reduced
      check_case(op, t, {keep_loop({5}, {24}), keep_loop({4, 24}, {120, 1})}, 1);
      // an expanded dim is kept
      check_case(op, t, {keep_loop({3, 4}, {0, 1}), keep_loop({6}, {4})}, 0);
      // an expanded dim is reduced
      check_case(op, t, {keep_loop({4}, {1}), keep_loop({3, 6}, {0, 4})}, 0);
      // nothing is reduced
      check_case(op, t, {keep_loop({4}, {1}), keep_loop({}, {})}, 0);
      check_case(op, t, {keep_loop({0}, {1}), keep_loop({5}, {1})}, 0);
    }
}

TEST_CASE("reduce: long ones are shared by threads and cut in panels", "[kernels][reduce]") {
  for (const DType t :
       {DType::float32, DType::float64, DType::bfloat16, DType::int64, DType::uint8})
    for (const ReduceOp op : kOps) {
      check_case(op, t, {keep_loop({2}, {70001}), keep_loop({70001}, {1})}, 0);
      check_case(op, t, {keep_loop({3}, {1}), keep_loop({70001}, {3})}, 0);
      check_case(op, t, {keep_loop({1500}, {1}), keep_loop({90}, {1500})}, 0);
    }
  // tiles larger than the smallest
  check_case(ReduceOp::sum, DType::float32, {keep_loop({}, {}), keep_loop({3000001}, {1})}, 0);
}

TEST_CASE("reduce: threads change no bit", "[kernels][reduce]") {
  const std::vector<Case> cases{{keep_loop({}, {}), keep_loop({1000003}, {1})},
                                {keep_loop({300}, {1003}), keep_loop({1003}, {1})},
                                {keep_loop({1003}, {1}), keep_loop({300}, {1003})},
                                {keep_loop({10}, {1}), keep_loop({30000}, {10})},
                                {keep_loop({30}, {2}), keep_loop({5000}, {60})}};
  for (const Case& c : cases)
    for (const DType t : {DType::float32, DType::float64, DType::float16})
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::argmax}) {
        Buffer x(t, spans(c)), out(result_type(op, t), c.keep.n);
        x.pattern(3);
        check_threads(out, [&] { kernels().reduce(args_of(op, t, out, x, c, 1e-3), stream()); });
      }
}

TEST_CASE("reduce: layouts change no bit", "[kernels][reduce]") {
  // The same logical matrix, reduced along its second dim: dense rows, a transposed one (columns),
  // and with steps (gathered).
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
        kernels().reduce(args_of(op, t, a, dense_x, {keep_loop({rows}, {n}), keep_loop({n}, {1})}),
                         stream());
        kernels().reduce(
            args_of(op, t, b, columns, {keep_loop({rows}, {1}), keep_loop({n}, {rows})}), stream());
        kernels().reduce(
            args_of(op, t, c, steps, {keep_loop({rows}, {2 * n}), keep_loop({n}, {2})}), stream());
        INFO(braid::name_of(t) << " " << rows << " x " << n << " op " << static_cast<int>(op));
        CHECK(a.bytes() == b.bytes());
        CHECK(a.bytes() == c.bytes());
      }
    }
}

TEST_CASE("reduce: equal addends do not drift", "[kernels][reduce]") {
  // A running sum of 0.1f is off by 1e-4 at this length; the tree stays within (ceil(log2 n) + 2)
  // u.
  const std::int64_t n = 1000000;
  Buffer x(DType::float32, n), out(DType::float32, 1);
  for (std::int64_t i = 0; i < n; ++i) x.put(i, 0.1);
  kernels().reduce(
      args_of(ReduceOp::sum, DType::float32, out, x, {keep_loop({}, {}), keep_loop({n}, {1})}),
      stream());
  const double exact = static_cast<double>(0.1f) * static_cast<double>(n);
  CHECK(std::fabs(out[0] - exact) <= 22 * 0x1p-24 * exact);
}

TEST_CASE("reduce: NaN, infinities and zeros", "[kernels][reduce]") {
  for (const DType t : kFloats)
    for (const std::int64_t n : {1, 16, 17, 300})
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1})
        for (const bool columns : {false, true}) {
          const std::int64_t stride = columns ? 3 : 1, keep = columns ? 3 : 1;
          const Case c{keep_loop({keep}, {1}), keep_loop({n}, {stride})};
          const auto run = [&](ReduceOp op, double special) {
            Buffer x(t, n * stride), out(result_type(op, t), keep);
            x.pattern(5).put(at * stride, special);
            kernels().reduce(args_of(op, t, out, x, c), stream());
            return out[0];
          };
          CHECK(std::isnan(run(ReduceOp::sum, kNaN)));
          CHECK(std::isnan(run(ReduceOp::max, kNaN)));
          CHECK(std::isnan(run(ReduceOp::min, kNaN)));
          CHECK(run(ReduceOp::argmax, kNaN) == static_cast<double>(at));
          CHECK(run(ReduceOp::argmin, kNaN) == static_cast<double>(at));
          CHECK(run(ReduceOp::sum, kInf) == kInf);
          CHECK(run(ReduceOp::max, kInf) == kInf);
          CHECK(run(ReduceOp::argmax, kInf) == static_cast<double>(at));
          CHECK(run(ReduceOp::min, -kInf) == -kInf);
          CHECK(run(ReduceOp::argmin, -kInf) == static_cast<double>(at));
        }
  // Only infinities of the wrong sign, and only negative zeros.
  Buffer x(DType::float32, 40), out(DType::float32, 1), index(DType::int64, 1);
  const Case all{keep_loop({}, {}), keep_loop({40}, {1})};
  for (int i = 0; i < 40; ++i) x.put(i, -kInf);
  kernels().reduce(args_of(ReduceOp::max, DType::float32, out, x, all), stream());
  CHECK(out[0] == -kInf);
  kernels().reduce(args_of(ReduceOp::argmax, DType::float32, index, x, all), stream());
  CHECK(index[0] == 0);
  for (int i = 0; i < 40; ++i) x.put(i, -0.0);
  kernels().reduce(args_of(ReduceOp::sum, DType::float32, out, x, all), stream());
  CHECK((out[0] == 0 && !std::signbit(out[0])));
}

TEST_CASE("reduce: argmax gives the first of equal elements", "[kernels][reduce]") {
  for (const DType t : kAll)
    for (const bool columns : {false, true})
      for (const std::int64_t n : {5, 64, 1000, 70000}) {
        const std::int64_t stride = columns ? 2 : 1;
        const std::int64_t first = n / 3;
        Buffer x(t, n * stride), out(DType::int64, columns ? 2 : 1);
        for (std::int64_t i = 0; i < n * stride; ++i)
          x.put(i, i / stride >= first && (i / stride - first) % 2 == 0 ? 1 : 0);
        kernels().reduce(args_of(ReduceOp::argmax, t, out, x,
                                 {keep_loop({columns ? 2 : 1}, {1}), keep_loop({n}, {stride})}),
                         stream());
        CHECK(out[0] == static_cast<double>(first));
        kernels().reduce(args_of(ReduceOp::argmin, t, out, x,
                                 {keep_loop({columns ? 2 : 1}, {1}), keep_loop({n}, {stride})}),
                         stream());
        CHECK(out[0] == (first == 0 ? 1.0 : 0.0));
      }
}

TEST_CASE("reduce: integers sum in 64 bits", "[kernels][reduce]") {
  Buffer x(DType::int32, 100), out(DType::int64, 1), bytes(DType::uint8, 1000),
      flags(DType::bool_, 1000);
  for (int i = 0; i < 100; ++i) x.put(i, std::numeric_limits<std::int32_t>::max());
  kernels().reduce(
      args_of(ReduceOp::sum, DType::int32, out, x, {keep_loop({}, {}), keep_loop({100}, {1})}),
      stream());
  CHECK(out[0] == 100.0 * std::numeric_limits<std::int32_t>::max());
  for (int i = 0; i < 1000; ++i) bytes.put(i, 255), flags.put(i, 1);
  kernels().reduce(
      args_of(ReduceOp::sum, DType::uint8, out, bytes, {keep_loop({}, {}), keep_loop({1000}, {1})}),
      stream());
  CHECK(out[0] == 255000);
  kernels().reduce(
      args_of(ReduceOp::sum, DType::bool_, out, flags, {keep_loop({}, {}), keep_loop({1000}, {1})}),
      stream());
  CHECK(out[0] == 1000);
  Buffer wide(DType::int64, 2);
  static_cast<std::int64_t*>(wide.data())[0] = std::numeric_limits<std::int64_t>::max();
  static_cast<std::int64_t*>(wide.data())[1] = 1;
  kernels().reduce(
      args_of(ReduceOp::sum, DType::int64, out, wide, {keep_loop({}, {}), keep_loop({2}, {1})}),
      stream());
  CHECK(*static_cast<std::int64_t*>(out.data()) == std::numeric_limits<std::int64_t>::min());
  kernels().reduce(
      args_of(ReduceOp::max, DType::int64, out, wide, {keep_loop({}, {}), keep_loop({2}, {1})}),
      stream());
  CHECK(*static_cast<std::int64_t*>(out.data()) == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("reduce: of nothing", "[kernels][reduce]") {
  const Case c{keep_loop({3}, {0}), keep_loop({0}, {1})};
  for (const DType t : kAll) {
    Buffer x(t, 0), out(result_type(ReduceOp::sum, t), 3);
    kernels().reduce(args_of(ReduceOp::sum, t, out, x, c), stream());
    for (int i = 0; i < 3; ++i) CHECK(out[i] == 0);
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::argmax, ReduceOp::argmin}) {
      CHECK_THROWS_AS(kernels().reduce(args_of(op, t, out, x, c), stream()), braid::ShapeError);
      CHECK_THROWS_WITH(kernels().reduce(args_of(op, t, out, x, c), stream()),
                        "reduce: expected at least one element to reduce, got none");
    }
  }
  Buffer x(DType::float32, 0), mean(DType::float32, 3);
  kernels().reduce(args_of(ReduceOp::sum, DType::float32, mean, x, c, kInf), stream());
  CHECK(std::isnan(mean[2]));
}

TEST_CASE("reduce: more than 2^31 elements", "[kernels][reduce]") {
#if !BRAID_SANITIZED
  // One byte, expanded: only the index arithmetic is large.
  const std::int64_t n = (std::int64_t{1} << 31) + 513;
  Buffer x(DType::uint8, 1), out(DType::int64, 1);
  x.put(0, 3);
  kernels().reduce(
      args_of(ReduceOp::sum, DType::uint8, out, x, {keep_loop({}, {}), keep_loop({n}, {0})}),
      stream());
  CHECK(*static_cast<std::int64_t*>(out.data()) == 3 * n);
#endif
}

// Calls of reduce and gemm.
#include <array>

#include <braid/core/kernel_args/gemm.hpp>
#include <braid/core/kernel_args/reduce.hpp>

#include "kernels/calls.hpp"

namespace agreement {

using braid::ReduceOp;

namespace {

/// x [rows, n] of some layout, reduced over n.
struct Fold {
  std::string name;
  Loop keep, over;
  std::int64_t memory, shift;
};

std::vector<Fold> folds() {
  std::vector<Fold> list;
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes{
      {33, 1},   {33, 31}, {33, 33},  {33, 127},  {33, 129},
      {300, 16}, {20, 48}, {3, 4096}, {130, 304}, {2, 9008}};
  for (const std::int64_t n : {1, 31, 33, 127, 129, 1025})
    for (const std::int64_t rows : {1, 3}) sizes.emplace_back(rows, n);
  for (const auto& [rows, n] : sizes) {
    list.push_back({braid::str("rows, ", rows, " of ", n), strided({rows}, {{1}, {n}}),
                    strided({n}, {{0}, {1}}), rows * n, n % 2});
    list.push_back({braid::str("columns, ", rows, " of ", n), strided({rows}, {{1}, {1}}),
                    strided({n}, {{0}, {rows}}), rows * n, rows % 2});
  }
  list.push_back(
      {"rows in steps of 2", strided({5}, {{1}, {258}}), strided({129}, {{0}, {2}}), 5 * 258, 1});
  list.push_back({"two dims of three", strided({31}, {{1}, {7}}),
                  strided({9, 7}, {{0, 0}, {217, 1}}), 9 * 217, 0});
  list.push_back({"the outer dims, result with a gap", strided({33}, {{2}, {1}}),
                  strided({3, 5}, {{0, 0}, {165, 33}}), 495, 1});
  list.push_back(
      {"one number repeated", strided({3}, {{1}, {1}}), strided({129}, {{0}, {0}}), 3, 0});
  list.push_back({"no rows", strided({0}, {{1}, {5}}), strided({5}, {{0}, {1}}), 0, 0});
  list.push_back({"rows of nothing", strided({3}, {{1}, {1}}), strided({0}, {{0}, {1}}), 0, 0});
  return list;
}

Call reduction(ReduceOp op, const Fold& f, double scale, DType t) {
  constexpr const char* names[] = {"sum", "max", "min", "argmax", "argmin"};
  const bool index = op == ReduceOp::argmax || op == ReduceOp::argmin;
  const auto type = [=](DType x) {
    return index || (op == ReduceOp::sum && !braid::is_floating(x)) ? DType::int64 : x;
  };
  const double reach = braid::is_floating(t) ? 2 : 100;
  Call call{braid::str("reduce ", names[static_cast<int>(op)], ", ", f.name),
            {out(random(extent(f.keep, 0), 1), 0, type),
             in(random(f.memory, 2, t == DType::uint8 ? 0 : -reach, reach), f.shift)},
            [=](const Place& p) {
              p.table.reduce({op, p.t, p[0], p[1], scale, f.keep, f.over}, p.stream);
            }};
  if (op == ReduceOp::sum)
    call.bound = [=](DType x, const Values& v) {
      Numbers bound(v[0].size());
      for (std::int64_t k = 0; k < f.keep.n; ++k) {
        double size = 0;
        for (std::int64_t p = 0; p < f.over.n; ++p)
          size += std::fabs(v[1][offset(f.keep, 1, k) + offset(f.over, 1, p)]);
        const std::int64_t at = offset(f.keep, 0, k);
        bound[at] =
            (log2_up(f.over.n) + 2 + (scale != 1)) * rounding(x) * size * scale + last(x, v[0][at]);
      }
      return Values{bound};
    };
  return call;
}

}  // namespace

std::vector<Call> calls_of_reduce(DType t) {
  std::vector<Call> list;
  for (int i = 0; i <= static_cast<int>(ReduceOp::argmin); ++i)
    for (const Fold& f : folds()) {
      const auto op = static_cast<ReduceOp>(i);
      if (op != ReduceOp::sum && f.over.n == 0 && f.keep.n > 0) continue;  // refused by the op
      list.push_back(reduction(op, f, 1, t));
      if (op == ReduceOp::sum && braid::is_floating(t))
        list.push_back(reduction(op, f, 1.0 / 3, t));
    }
  return list;
}

namespace {

struct Gemm {
  std::int64_t m, n, k, batch;
  bool ta, tb, accumulate, bias, relu, sums;
  std::int64_t pad;  // elements between the rows
};

/// The memory of a matrix, and where its elements are.
struct Matrix {
  std::int64_t rows, columns, leading, one;
  bool transposed;
  Matrix(std::int64_t rows_, std::int64_t columns_, bool transposed_, std::int64_t pad)
      : rows(rows_),
        columns(columns_),
        leading(std::max<std::int64_t>(1, (transposed_ ? rows_ : columns_) + pad)),
        one((transposed_ ? columns_ : rows_) * leading),
        transposed(transposed_) {}
  [[nodiscard]] std::int64_t at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
    return batch * one + (transposed ? j * leading + i : i * leading + j);
  }
};

braid::GemmArgs args_of(const Gemm& g, DType t, const std::vector<void*>& at, std::size_t first) {
  const Matrix a(g.m, g.k, g.ta, g.pad), b(g.k, g.n, g.tb, g.pad), c(g.m, g.n, false, g.pad);
  braid::GemmArgs args{};
  args.dtype = t, args.ta = g.ta, args.tb = g.tb, args.accumulate = g.accumulate;
  args.m = g.m, args.n = g.n, args.k = g.k, args.batch = g.batch;
  args.c = at[first], args.ldc = c.leading, args.batch_c = c.one;
  args.a = at[first + 1], args.lda = a.leading, args.batch_a = a.one;
  args.b = at[first + 2], args.ldb = b.leading, args.batch_b = b.one;
  args.bias = g.bias ? at[first + 3] : nullptr;
  args.activation = g.relu ? braid::Activation::relu : braid::Activation::none;
  args.sum_a = g.sums ? at[first + 4] : nullptr;
  return args;
}

/// Of c and the sums, whose operands start at `first`.
Values bounds_of(const Gemm& g, const Numbers& before, DType t, const Values& v,
                 std::size_t first) {
  const Matrix a(g.m, g.k, g.ta, g.pad), b(g.k, g.n, g.tb, g.pad), c(g.m, g.n, false, g.pad);
  const Numbers &left = v[first + 1], &right = v[first + 2];
  Numbers of_c(v[first].size()), of_sums(v[first + 4].size());
  for (std::int64_t batch = 0; batch < g.batch; ++batch)
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        const std::int64_t at = c.at(batch, i, j);
        double size = g.bias         ? std::fabs(v[first + 3][j])
                      : g.accumulate ? std::fabs(before[at])
                                     : 0;
        for (std::int64_t q = 0; q < g.k; ++q)
          size += std::fabs(left[a.at(batch, i, q)] * right[b.at(batch, q, j)]);
        of_c[at] = (static_cast<double>(g.k) + 2 + (g.bias || g.accumulate)) * rounding(t) * size +
                   last(t, v[first][at]);
      }
  for (std::int64_t i = 0; g.sums && g.n > 0 && i < g.m; ++i) {
    double size = 0;
    for (std::int64_t q = 0; q < g.k; ++q) size += std::fabs(left[a.at(0, i, q)]);
    of_sums[i] = (log2_up(g.k) + 2) * rounding(t) * size + last(t, v[first + 4][i]);
  }
  return {of_c, of_sums};
}

Call gemm(const Gemm& g, DType t) {
  const Matrix a(g.m, g.k, g.ta, g.pad), b(g.k, g.n, g.tb, g.pad), c(g.m, g.n, false, g.pad);
  const double reach = braid::is_floating(t) ? 2 : 9;
  const auto numbers = [&](std::int64_t n, std::uint64_t seed) {
    return random(n, seed, -reach, reach);
  };
  Call call{braid::str("gemm ", g.m, " x ", g.k, " x ", g.n, " batch ", g.batch, g.ta ? " ta" : "",
                       g.tb ? " tb" : "", g.accumulate ? " added" : "", g.bias ? " bias" : "",
                       g.relu ? " relu" : "", g.sums ? " sums" : "", " pad ", g.pad),
            {out(numbers(g.batch * c.one, 1), g.pad), in(numbers(g.batch * a.one, 2), g.pad),
             in(numbers(g.batch * b.one, 3), g.pad), in(numbers(g.n, 4)), out(numbers(g.m, 5))},
            [=](const Place& p) { p.table.gemm(args_of(g, p.t, p.data, 0), p.stream); }};
  call.bound = [=, before = call.operands[0].numbers](DType type, const Values& v) {
    return bounds_of(g, before, type, v, 0);
  };
  return call;
}

using Shape = std::array<std::int64_t, 3>;

}  // namespace

std::vector<Call> calls_of_gemm(DType t) {
  std::vector<Call> list;
  const std::vector<Shape> shapes{{1, 1, 1},     {30, 2, 5},    {31, 33, 17}, {129, 33, 31},
                                  {33, 127, 65}, {1, 129, 127}, {127, 1, 33}, {5, 7, 1025}};
  for (const auto& [m, n, k] : shapes) {
    for (int layout = 0; layout < 4; ++layout)
      for (const std::int64_t pad : {0, 1})
        list.push_back(gemm({m, n, k, 1, layout / 2 == 1, layout % 2 == 1, pad == 1,
                             pad == 0 && layout == 1, layout == 1, false, pad},
                            t));
    if (braid::is_floating(t))
      list.push_back(gemm({m, n, k, 1, true, false, false, false, false, true, k % 2}, t));
  }
  for (int layout = 0; layout < 4; ++layout)
    list.push_back(gemm(
        {33, 17, 31, 3, layout / 2 == 1, layout % 2 == 1, false, false, false, false, layout % 2},
        t));
  for (const auto& [m, n, k] : {Shape{0, 3, 4}, {3, 0, 4}, {3, 4, 0}})
    list.push_back(gemm({m, n, k, 1, false, false, false, k == 0, false, false, 0}, t));
  list.push_back(gemm({3, 4, 5, 0, false, false, false, false, false, false, 0}, t));
  return list;
}

std::vector<Call> calls_of_gemm_pair(DType t) {
  std::vector<Call> list;
  // The backward of a layer: dx [rows, in] = dy W, dW [out, in] = dyᵀ x with db.
  for (const auto& [rows, in, out] :
       {Shape{1, 1, 1}, {30, 5, 2}, {31, 33, 17}, {33, 3, 129}, {129, 65, 31}, {0, 3, 2}})
    for (const std::int64_t pad : {0, 1}) {
      const Gemm dx{rows, in, out, 1, false, false, false, false, false, false, pad},
          dw{out, in, rows, 1, true, false, false, false, false, braid::is_floating(t), pad};
      Call call = gemm(dx, t);
      const Call second = gemm(dw, t);
      call.name += " and " + second.name;
      call.operands.insert(call.operands.end(), second.operands.begin(), second.operands.end());
      call.run = [=](const Place& p) {
        p.table.gemm_pair({args_of(dx, p.t, p.data, 0), args_of(dw, p.t, p.data, 5)}, p.stream);
      };
      call.bound = [=](DType type, const Values& v) {
        Values bounds = bounds_of(dx, {}, type, v, 0);
        for (const Numbers& b : bounds_of(dw, {}, type, v, 5)) bounds.push_back(b);
        return bounds;
      };
      list.push_back(std::move(call));
    }
  return list;
}

}  // namespace agreement

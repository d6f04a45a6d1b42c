// Calls of reduce and gemm.
#include <braid/core/kernel_args/reduce.hpp>

#include "kernels/calls.hpp"
#include "kernels/gemm_cases.hpp"

namespace agreement {

using braid::ReduceOp;

namespace {

/// x [rows, n] in some layout, reduced over n.
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
    // full vectors of columns, if n is a multiple of 16
    const auto [columns, of] = n % 16 == 0 ? std::pair{n, rows} : std::pair{rows, n};
    list.push_back({braid::str("columns, ", columns, " of ", of), strided({columns}, {{1}, {1}}),
                    strided({of}, {{0}, {columns}}), rows * n, columns % 2});
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
      if (op != ReduceOp::sum && f.over.n == 0 && f.keep.n > 0) continue;  // rejected by the op
      list.push_back(reduction(op, f, 1, t));
      if (op == ReduceOp::sum && braid::is_floating(t))
        list.push_back(reduction(op, f, 1.0 / 3, t));
    }
  return list;
}

namespace {

/// The bounds of c and of the row sums, whose operands start at `first`.
Values bounds_of(const Product& g, const Numbers& before, DType t, const Values& v,
                 std::size_t first) {
  const Numbers &left = v[first + 1], &right = v[first + 2];
  Numbers of_c(v[first].size()), of_sums(v[first + 4].size());
  for (std::int64_t batch = 0; batch < g.batch; ++batch)
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        const std::int64_t at = g.at_c(batch, i, j);
        double size = g.bias         ? std::fabs(v[first + 3][j])
                      : g.accumulate ? std::fabs(before[at])
                                     : 0;
        for (std::int64_t q = 0; q < g.k; ++q)
          size += std::fabs(left[g.at_a(batch, i, q)] * right[g.at_b(batch, q, j)]);
        of_c[at] = (static_cast<double>(g.k) + 2 + (g.bias || g.accumulate)) * rounding(t) * size +
                   last(t, v[first][at]);
      }
  for (std::int64_t i = 0; g.sums && g.n > 0 && i < g.m; ++i) {
    double size = 0;
    for (std::int64_t q = 0; q < g.k; ++q) size += std::fabs(left[g.at_a(0, i, q)]);
    of_sums[i] = (log2_up(g.k) + 2) * rounding(t) * size + last(t, v[first + 4][i]);
  }
  return {of_c, of_sums};
}
/// Makes the arguments from the operands that start at `first`: c, a, b, bias, sums.
braid::GemmArgs args_of(const Product& g, const Place& p, std::size_t first) {
  return g.args(p.t, p[first + 1], p[first + 2], p[first], p[first + 3], p[first + 4]);
}

Call gemm(const Product& g, DType t) {
  const double reach = braid::is_floating(t) ? 2 : 9;
  const auto numbers = [&](std::int64_t n, std::uint64_t seed) {
    return random(n, seed, -reach, reach);
  };
  Call call{
      "gemm " + describe(t, g),
      {out(numbers(g.batch * g.size_c(), 1), g.pad), in(numbers(g.batch * g.size_a(), 2), g.pad),
       in(numbers(g.batch * g.size_b(), 3), g.pad), in(numbers(g.n, 4)), out(numbers(g.m, 5))},
      [=](const Place& p) { p.table.gemm(args_of(g, p, 0), p.stream); }};
  call.bound = [=, before = call.operands[0].numbers](DType type, const Values& v) {
    return bounds_of(g, before, type, v, 0);
  };
  return call;
}

}  // namespace

std::vector<Call> calls_of_gemm(DType t) {
  std::vector<Call> list;
  for (const auto& [m, n, k] : {Shape{1, 1, 1},
                                {30, 2, 5},
                                {31, 33, 17},
                                {129, 33, 31},
                                {33, 127, 65},
                                {1, 129, 127},
                                {127, 1, 33},
                                {5, 7, 1025}}) {
    for (int layout = 0; layout < 4; ++layout)
      for (const std::int64_t pad : {0, 1}) {
        Product s = product({m, n, k}, layout);
        s.pad = pad, s.accumulate = pad == 1;
        s.bias = pad == 0 && layout == 1, s.relu = layout == 1;
        list.push_back(gemm(s, t));
      }
    Product s{m, n, k, true};
    s.sums = true, s.pad = k % 2;
    if (braid::is_floating(t)) list.push_back(gemm(s, t));
  }
  for (int layout = 0; layout < 4; ++layout) {
    Product s = product({33, 17, 31}, layout);
    s.batch = 3, s.pad = layout % 2;
    list.push_back(gemm(s, t));
  }
  for (const Shape& shape : {Shape{0, 3, 4}, {3, 0, 4}, {3, 4, 0}}) {
    Product s = product(shape, 0);
    s.bias = s.k == 0;
    list.push_back(gemm(s, t));
  }
  Product none{3, 4, 5};
  none.batch = 0;
  list.push_back(gemm(none, t));
  return list;
}

std::vector<Call> calls_of_gemm_pair(DType t) {
  std::vector<Call> list;
  // The backward pass of a linear layer: dx [rows, in] = dy W, dW [out, in] = dyᵀ x with db.
  for (const auto& [rows, in, out] :
       {Shape{1, 1, 1}, {30, 5, 2}, {31, 33, 17}, {33, 3, 129}, {129, 65, 31}, {0, 3, 2}})
    for (const std::int64_t pad : {0, 1}) {
      Product dx{rows, in, out}, dw{out, in, rows, true};
      dx.pad = dw.pad = pad, dw.sums = braid::is_floating(t);
      Call call = gemm(dx, t);
      const Call second = gemm(dw, t);
      call.name += " and " + second.name;
      call.operands.insert(call.operands.end(), second.operands.begin(), second.operands.end());
      call.run = [=](const Place& p) {
        p.table.gemm_pair({args_of(dx, p, 0), args_of(dw, p, 5)}, p.stream);
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

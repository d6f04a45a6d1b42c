#include "kernels/calls.hpp"
#include "kernels/gemm_cases.hpp"

namespace agreement {
namespace {

constexpr std::size_t kOperands = 6;  // of a product: c, a, b, bias, sums, other

/// The bounds of the outputs c, the row sums and, if it is written, other, whose operands start at
/// `first`.
Values bounds_of(const Product& g, const Numbers& before, DType t, const Values& v,
                 std::size_t first) {
  const Numbers &left = v[first + 1], &right = v[first + 2];
  Numbers of_c(v[first].size()), of_sums(v[first + 4].size()), of_other(v[first + 5].size());
  for (std::int64_t batch = 0; batch < g.batch; ++batch)
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        const std::int64_t at = g.at_c(batch, i, j);
        double z = g.bias         ? v[first + 3][j]
                   : g.accumulate ? rounded(t, before[at])
                                  : 0,
               size = std::fabs(z);
        for (std::int64_t q = 0; q < g.k; ++q) {
          const double product = left[g.at_a(batch, i, q)] * right[g.at_b(batch, q, j)];
          z += product, size += std::fabs(product);
        }
        const double error =
            (static_cast<double>(g.k) + 2 + (g.bias || g.accumulate)) * rounding(t) * size;
        if (g.epilogue <= braid::Epilogue::relu) of_c[at] = error + last(t, v[first][at]);
        else
          of_c[at] =
              finished_error(g.epilogue, z, v[first + 5][at], error + last(t, z), rounding(t)) +
              last(t, v[first][at]);
        of_other[at] = error + last(t, z);
      }
  for (std::int64_t i = 0; g.sums && g.n > 0 && i < g.m; ++i) {
    double size = 0;
    for (std::int64_t q = 0; q < g.k; ++q) size += std::fabs(left[g.at_a(0, i, q)]);
    of_sums[i] = (log2_up(g.k) + 2) * rounding(t) * size + last(t, v[first + 4][i]);
  }
  if (g.kept) return {of_c, of_sums, of_other};
  return {of_c, of_sums};
}
/// Makes the arguments from the operands that start at `first`.
braid::GemmArgs args_of(const Product& g, const Place& p, std::size_t first) {
  return g.args(p.t, p[first + 1], p[first + 2], p[first], p[first + 3], p[first + 4],
                p[first + 5]);
}

Call gemm(const Product& g, DType t) {
  const double reach = braid::is_floating(t) ? 2 : 9;
  const auto numbers = [&](std::int64_t n, std::uint64_t seed) {
    return random(n, seed, -reach, reach);
  };
  Call call{
      "gemm " + describe(t, g),
      {out(numbers(g.batch * g.size_c(), 1), g.pad), in(numbers(g.batch * g.size_a(), 2), g.pad),
       in(numbers(g.batch * g.size_b(), 3), g.pad), in(numbers(g.n, 4)), out(numbers(g.m, 5)),
       g.kept ? out(numbers(g.batch * g.size_c(), 6), g.pad)
              : in(numbers(g.batch * g.size_c(), 6), g.pad)},
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
        s.bias = pad == 0 && layout == 1;
        if (layout == 1) s.epilogue = braid::Epilogue::relu;
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
  unsigned turn = 0;
  for (const braid::Epilogue epilogue : epilogues_of(t))
    for (const Shape& shape : {Shape{1, 1, 1}, {30, 2, 5}, {65, 66, 33}, {5, 7, 1025}, {3, 4, 0}})
      for (const bool kept : {false, true}) {
        if (kept && !is_gelu(epilogue)) continue;
        Product s = product(shape, static_cast<int>(turn++ % 4));
        s.epilogue = epilogue, s.kept = kept;
        s.bias = turn % 2 == 0, s.accumulate = turn % 4 == 1, s.pad = turn % 3 == 0;
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
      if (pad == 1) dx.epilogue = braid::Epilogue::relu_backward;
      Call call = gemm(dx, t);
      const Call second = gemm(dw, t);
      call.name += " and " + second.name;
      call.operands.insert(call.operands.end(), second.operands.begin(), second.operands.end());
      call.run = [=](const Place& p) {
        p.table.gemm_pair({args_of(dx, p, 0), args_of(dw, p, kOperands)}, p.stream);
      };
      call.bound = [=](DType type, const Values& v) {
        Values bounds = bounds_of(dx, {}, type, v, 0);
        for (const Numbers& b : bounds_of(dw, {}, type, v, kOperands)) bounds.push_back(b);
        return bounds;
      };
      list.push_back(std::move(call));
    }
  return list;
}

}  // namespace agreement

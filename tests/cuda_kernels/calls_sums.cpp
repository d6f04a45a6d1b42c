// Calls of reduce and gemm.
#include <braid/core/kernel_args/gemm.hpp>
#include <braid/core/kernel_args/reduce.hpp>

#include "cuda_kernels/every_kernel.hpp"

namespace agreement {

using braid::ReduceOp;

namespace {

double log2_up(double n) { return n > 1 ? std::ceil(std::log2(n)) : 0; }

/// x [rows, n] of some layout, reduced over n.
struct Fold {
  std::string name;
  Loop keep, over;
  std::int64_t memory, shift;
};

std::vector<Fold> folds() {
  std::vector<Fold> list;
  for (const std::int64_t n : {1, 31, 33, 127, 129, 1025})
    for (const std::int64_t rows : {1, 3, 33}) {
      if (rows == 33 && n > 200) continue;
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

}  // namespace

std::vector<Call<braid::ReduceArgs>> calls_of(Of<braid::ReduceArgs>, DType t) {
  std::vector<Call<braid::ReduceArgs>> list;
  constexpr const char* names[] = {"sum", "max", "min", "argmax", "argmin"};
  for (int i = 0; i <= static_cast<int>(ReduceOp::argmin); ++i) {
    const auto op = static_cast<ReduceOp>(i);
    for (const Fold& f : folds()) {
      if (op != ReduceOp::sum && f.over.n == 0 && f.keep.n > 0) continue;  // refused by the op
      for (const double scale : {1.0, 1.0 / 3}) {
        if (scale != 1 && (op != ReduceOp::sum || !braid::is_floating(t))) continue;
        const bool index = op == ReduceOp::argmax || op == ReduceOp::argmin;
        const auto type = [=](DType x) {
          return index || (op == ReduceOp::sum && !braid::is_floating(x)) ? DType::int64 : x;
        };
        const double reach = braid::is_floating(t) ? 2 : 100;
        list.push_back({braid::str("reduce ", names[i], ", ", f.name),
                        {out(random(extent(f.keep, 0), 1), 0, type),
                         in(random(f.memory, 2, t == DType::uint8 ? 0 : -reach, reach), f.shift)},
                        [=](DType x, const std::vector<void*>& at) {
                          return braid::ReduceArgs{.op = op,
                                                   .dtype = x,
                                                   .out = at[0],
                                                   .x = at[1],
                                                   .scale = scale,
                                                   .keep = f.keep,
                                                   .over = f.over};
                        },
                        nullptr});
        if (op == ReduceOp::sum)
          list.back().bound = [=](DType x, const std::vector<Numbers>& v) {
            Numbers bound(v[0].size(), 0.0);
            for (std::int64_t k = 0; k < f.keep.n; ++k) {
              double size = 0;
              for (std::int64_t p = 0; p < f.over.n; ++p)
                size += std::fabs(
                    v[1][static_cast<std::size_t>(offset(f.keep, 1, k) + offset(f.over, 1, p))]);
              const auto at = static_cast<std::size_t>(offset(f.keep, 0, k));
              bound[at] = (log2_up(static_cast<double>(f.over.n)) + 2 + (scale != 1)) *
                              rounding(x) * size * scale +
                          last(x, v[0][at]);
            }
            return std::vector<Numbers>{bound};
          };
      }
    }
  }
  return list;
}

namespace {

struct Product {
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
  [[nodiscard]] std::size_t at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(batch * one + (transposed ? j * leading + i : i * leading + j));
  }
};

Call<braid::GemmArgs> product(const Product& p, DType t) {
  const Matrix a(p.m, p.k, p.ta, p.pad), b(p.k, p.n, p.tb, p.pad), c(p.m, p.n, false, p.pad);
  const double reach = braid::is_floating(t) ? 2 : 9;
  Call<braid::GemmArgs> call;
  call.name =
      braid::str("gemm ", p.m, " x ", p.k, " x ", p.n, " batch ", p.batch, p.ta ? " ta" : "",
                 p.tb ? " tb" : "", p.accumulate ? " added" : "", p.bias ? " bias" : "",
                 p.relu ? " relu" : "", p.sums ? " sums" : "", " pad ", p.pad);
  call.operands = {out(random(p.batch * c.one, 1, -reach, reach), p.pad),
                   in(random(p.batch * a.one, 2, -reach, reach), p.pad),
                   in(random(p.batch * b.one, 3, -reach, reach), p.pad),
                   in(random(p.n, 4, -reach, reach)), out(random(p.m, 5, -reach, reach))};
  call.args = [=](DType type, const std::vector<void*>& at) {
    braid::GemmArgs args{};
    args.dtype = type, args.ta = p.ta, args.tb = p.tb, args.accumulate = p.accumulate;
    args.m = p.m, args.n = p.n, args.k = p.k, args.batch = p.batch;
    args.c = at[0], args.ldc = c.leading, args.batch_c = c.one;
    args.a = at[1], args.lda = a.leading, args.batch_a = a.one;
    args.b = at[2], args.ldb = b.leading, args.batch_b = b.one;
    args.bias = p.bias ? at[3] : nullptr;
    args.activation = p.relu ? braid::Activation::relu : braid::Activation::none;
    args.sum_a = p.sums ? at[4] : nullptr;
    return args;
  };
  call.bound = [=, before = call.operands[0].numbers](DType type, const std::vector<Numbers>& v) {
    Numbers of_c(v[0].size(), 0.0), of_sums(v[4].size(), 0.0);
    for (std::int64_t batch = 0; batch < p.batch; ++batch)
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) {
          const std::size_t at = c.at(batch, i, j);
          double size = p.bias         ? std::fabs(v[3][static_cast<std::size_t>(j)])
                        : p.accumulate ? std::fabs(before[at])
                                       : 0;
          for (std::int64_t q = 0; q < p.k; ++q)
            size += std::fabs(v[1][a.at(batch, i, q)] * v[2][b.at(batch, q, j)]);
          of_c[at] =
              (static_cast<double>(p.k) + 2 + (p.bias || p.accumulate)) * rounding(type) * size +
              last(type, v[0][at]);
        }
    for (std::int64_t i = 0; p.sums && p.n > 0 && i < p.m; ++i) {
      double size = 0;
      for (std::int64_t q = 0; q < p.k; ++q) size += std::fabs(v[1][a.at(0, i, q)]);
      const auto at = static_cast<std::size_t>(i);
      of_sums[at] =
          (log2_up(static_cast<double>(p.k)) + 2) * rounding(type) * size + last(type, v[4][at]);
    }
    return std::vector<Numbers>{of_c, of_sums};
  };
  return call;
}

}  // namespace

std::vector<Call<braid::GemmArgs>> calls_of(Of<braid::GemmArgs>, DType t) {
  std::vector<Call<braid::GemmArgs>> list;
  const std::vector<std::array<std::int64_t, 3>> shapes{{1, 1, 1},     {30, 2, 5},    {31, 33, 17},
                                                        {129, 33, 31}, {33, 127, 65}, {1, 129, 127},
                                                        {127, 1, 33},  {5, 7, 1025}};
  for (const auto& [m, n, k] : shapes)
    for (int layout = 0; layout < 4; ++layout)
      for (const std::int64_t pad : {0, 1})
        list.push_back(product({m, n, k, 1, layout / 2 == 1, layout % 2 == 1, pad == 1,
                                pad == 0 && layout == 1, layout == 1, false, pad},
                               t));
  for (int layout = 0; layout < 4; ++layout)
    list.push_back(product(
        {33, 17, 31, 3, layout / 2 == 1, layout % 2 == 1, false, false, false, false, layout % 2},
        t));
  if (braid::is_floating(t))
    for (const auto& [m, n, k] : shapes)
      list.push_back(product({m, n, k, 1, true, false, false, false, false, true, k % 2}, t));
  for (const auto& [m, n, k] :
       std::vector<std::array<std::int64_t, 3>>{{0, 3, 4}, {3, 0, 4}, {3, 4, 0}})
    list.push_back(product({m, n, k, 1, false, false, false, k == 0, false, false, 0}, t));
  list.push_back(product({3, 4, 5, 0, false, false, false, false, false, false, 0}, t));
  return list;
}

std::vector<Call<braid::GemmPairArgs>> calls_of(Of<braid::GemmPairArgs>, DType t) {
  std::vector<Call<braid::GemmPairArgs>> list;
  // The backward of a layer: dx [rows, in] = dy W, dW [out, in] = dyᵀ x with db.
  for (const auto& [rows, in, out] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {30, 5, 2}, {31, 33, 17}, {33, 3, 129}, {129, 65, 31}, {0, 3, 2}})
    for (const std::int64_t pad : {0, 1}) {
      const Call<braid::GemmArgs> first = product({rows, in, out, 1, false, false, false, false,
                                                   false, false, pad},
                                                  t),
                                  second = product({out, in, rows, 1, true, false, false, false,
                                                    false, braid::is_floating(t), pad},
                                                   t);
      const auto middle = static_cast<std::ptrdiff_t>(first.operands.size());
      Call<braid::GemmPairArgs> call;
      call.name = first.name + " and " + second.name;
      call.operands = first.operands;
      call.operands.insert(call.operands.end(), second.operands.begin(), second.operands.end());
      call.args = [=](DType type, const std::vector<void*>& at) {
        return braid::GemmPairArgs{first.args(type, {at.begin(), at.begin() + middle}),
                                   second.args(type, {at.begin() + middle, at.end()})};
      };
      call.bound = [=](DType type, const std::vector<Numbers>& v) {
        std::vector<Numbers> bounds = first.bound(type, {v.begin(), v.begin() + middle});
        for (Numbers& b : second.bound(type, {v.begin() + middle, v.end()}))
          bounds.push_back(std::move(b));
        return bounds;
      };
      list.push_back(std::move(call));
    }
  return list;
}

}  // namespace agreement

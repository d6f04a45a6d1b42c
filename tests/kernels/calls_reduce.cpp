#include <braid/core/internal/kernel_args/reduce.hpp>

#include "kernels/calls.hpp"

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

}  // namespace agreement

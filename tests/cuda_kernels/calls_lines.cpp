// Calls of gather, scatter, scan and sort: kernels that go along lines.
#include <braid/core/kernel_args/index.hpp>
#include <braid/core/kernel_args/scan.hpp>
#include <braid/core/kernel_args/sort.hpp>

#include "cuda_kernels/every_kernel.hpp"

namespace agreement {
namespace {

/// m places along the middle of [outer, m, inner], of a tensor with n there.
struct Places {
  std::int64_t outer, n, inner, m, shift;
  std::int64_t wrong = -1;  ///< where the index is out of range
};
const std::vector<Places> kPlaces{{1, 1, 1, 1, 0},      {33, 31, 1, 1, 1},  {3, 7, 129, 5, 0},
                                  {1, 129, 1, 1025, 1}, {2, 5, 3, 1025, 0}, {5, 33, 2, 0, 0},
                                  {0, 4, 3, 2, 0},      {4, 0, 2, 0, 0},    {3, 5, 7, 9, 1, 100},
                                  {1, 2, 1, 3, 0, 2}};

std::string text(const char* kernel, const Places& p) {
  return braid::str(kernel, " ", p.m, " of [", p.outer, ", ", p.n, ", ", p.inner, "]",
                    p.wrong >= 0 ? ", one out of range" : "");
}
Numbers indices(const Places& p) {
  Numbers list;
  for (std::int64_t i = 0; i < p.outer * p.m * p.inner; ++i)
    list.push_back(static_cast<double>(p.n == 0 ? 0 : (i * 5 + i / 3) % p.n));
  if (p.wrong >= 0) list.at(static_cast<std::size_t>(p.wrong)) = static_cast<double>(p.n);
  return list;
}

}  // namespace

std::vector<Call<braid::GatherArgs>> calls_of(Of<braid::GatherArgs>, DType) {
  std::vector<Call<braid::GatherArgs>> list;
  for (const Places& p : kPlaces)
    list.push_back(
        {text("gather", p),
         {out(random(p.outer * p.m * p.inner, 1), p.shift), in(indices(p), 0, always(DType::int64)),
          in(random(p.outer * p.n * p.inner, 2), p.shift)},
         [=](DType t, const std::vector<void*>& at) {
           const std::int64_t one = p.inner, line = p.m * p.inner;
           return braid::GatherArgs{
               .dtype = t,
               .out = at[0],
               .index = static_cast<const std::int64_t*>(at[1]),
               .x = at[2],
               .loop = strided({p.outer, p.m, p.inner},
                               {{line, one, 1}, {line, one, 1}, {p.n * p.inner, 0, 1}}),
               .size = p.n,
               .step = p.inner};
         },
         nullptr});
  return list;
}

std::vector<Call<braid::ScatterArgs>> calls_of(Of<braid::ScatterArgs>, DType t) {
  std::vector<Call<braid::ScatterArgs>> list;
  const double low = t == DType::uint8 ? 0 : -2;
  for (const bool add : {false, true})
    for (const Places& p : kPlaces) {
      // What a refused call has written is not compared; its text is.
      list.push_back(
          {text(add ? "scatter, added," : "scatter", p),
           {out(random(p.outer * p.n * p.inner, 1, low, 3), p.shift),
            in(indices(p), 0, always(DType::int64)),
            in(random(p.outer * p.m * p.inner, 2, low, 3), p.shift)},
           [=](DType type, const std::vector<void*>& at) {
             const std::int64_t line = p.m * p.inner;
             return braid::ScatterArgs{
                 .dtype = type,
                 .add = add,
                 .out = at[0],
                 .index = static_cast<const std::int64_t*>(at[1]),
                 .src = at[2],
                 .lines = strided({p.outer, p.inner}, {{p.n * p.inner, 1}, {line, 1}, {line, 1}}),
                 .m = p.m,
                 .index_step = p.inner,
                 .src_step = p.inner,
                 .size = p.n,
                 .step = p.inner};
           },
           nullptr});
    }
  return list;
}

std::vector<Call<braid::ScanArgs>> calls_of(Of<braid::ScanArgs>, DType t) {
  std::vector<Call<braid::ScanArgs>> list;
  struct Lines {
    std::int64_t outer, n, inner;
  };
  using braid::ScanOp;
  for (const ScanOp op : {ScanOp::sum, ScanOp::prod, ScanOp::recurrence})
    for (const Lines& l : std::vector<Lines>{{1, 1, 1},
                                             {33, 31, 1},
                                             {3, 33, 1},
                                             {2, 1023, 1},
                                             {1, 2049, 1},
                                             {2, 129, 3},
                                             {2, 65, 33},
                                             {0, 5, 1},
                                             {3, 0, 2}})
      for (const bool reverse : {false, true}) {
        const std::int64_t all = l.outer * l.n * l.inner;
        const double reach = !braid::is_floating(t) ? 9 : op == ScanOp::sum ? 2 : 1.05;
        Call<braid::ScanArgs> call;
        call.name = braid::str("scan ", static_cast<int>(op), reverse ? " reversed" : "", ", [",
                               l.outer, ", ", l.n, ", ", l.inner, "]");
        Numbers numbers = random(all, 2, -reach, reach);
        // near 1, so that long products stay within the type
        if (op == ScanOp::prod && braid::is_floating(t))
          for (double& v : numbers) v = v < 0 ? v / 20 - 0.97 : v / 20 + 0.97;
        call.operands = {out(random(all, 1), l.n % 2), in(numbers, l.n % 2),
                         in(random(all, 3, -reach, reach), l.n % 2)};
        call.args = [=](DType type, const std::vector<void*>& at) {
          return braid::ScanArgs{.op = op,
                                 .dtype = type,
                                 .x = at[1],
                                 .a = op == ScanOp::recurrence ? at[2] : nullptr,
                                 .y = at[0],
                                 .outer = l.outer,
                                 .n = l.n,
                                 .inner = l.inner,
                                 .reverse = reverse};
        };
        // Computed in float64 and rounded once: as many roundings of float64 as there are steps, of
        // the sizes that were added, and the last one.
        call.bound = [=](DType type, const std::vector<Numbers>& v) {
          Numbers bound(v[0].size());
          for (std::int64_t line = 0; line < l.outer * l.inner; ++line) {
            double size = op == ScanOp::prod ? 1 : 0;
            for (std::int64_t j = 0; j < l.n; ++j) {
              const auto at = static_cast<std::size_t>(
                  (line / l.inner * l.n + (reverse ? l.n - 1 - j : j)) * l.inner + line % l.inner);
              const double x = std::fabs(v[1][at]);
              size = op == ScanOp::sum    ? size + x
                     : op == ScanOp::prod ? size * x
                                          : std::fabs(v[2][at]) * size + x;
              bound[at] = 2 * 0x1p-53 * static_cast<double>(j + 4) * size + exactly(type, v[0][at]);
            }
          }
          return std::vector<Numbers>{bound};
        };
        list.push_back(call);
      }
  return list;
}

std::vector<Call<braid::SortArgs>> calls_of(Of<braid::SortArgs>, DType t) {
  std::vector<Call<braid::SortArgs>> list;
  struct Rows {
    std::int64_t rows, n, k;
  };
  for (const bool descending : {false, true})
    for (const Rows& r : std::vector<Rows>{{1, 1, 1},
                                           {5, 3, 3},
                                           {33, 31, 31},
                                           {7, 127, 127},
                                           {3, 129, 1},
                                           {2, 1024, 1024},
                                           {2, 1025, 1025},
                                           {1, 3000, 3000},
                                           {2, 2500, 7},
                                           {0, 5, 5}}) {
      Numbers x = random(r.rows * r.n, 3, t == DType::uint8 ? 0 : -9, 9);
      // Ties, and what has no place among the numbers.
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (i % 3 == 0) x[i] = std::trunc(x[i]);
        if (braid::is_floating(t) && i % 11 == 5)
          x[i] = i % 2 == 0 ? kNaN : i % 4 == 1 ? kInf : -kInf;
        if (braid::is_floating(t) && i % 13 == 2) x[i] = i % 2 == 0 ? -0.0 : 0.0;
      }
      list.push_back({braid::str("sort ", r.rows, " x ", r.n, ", first ", r.k,
                                 descending ? ", descending" : ""),
                      {out(random(r.rows * r.k, 1)),
                       out(random(r.rows * r.k, 2), 0, always(DType::int64)), in(x, r.n % 2)},
                      [=](DType type, const std::vector<void*>& at) {
                        return braid::SortArgs{.dtype = type,
                                               .x = at[2],
                                               .values = at[0],
                                               .index = static_cast<std::int64_t*>(at[1]),
                                               .rows = r.rows,
                                               .n = r.n,
                                               .k = r.k,
                                               .descending = descending};
                      },
                      nullptr});
    }
  return list;
}

}  // namespace agreement

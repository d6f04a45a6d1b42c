#include <braid/core/internal/kernel_args/index.hpp>

#include "kernels/calls.hpp"

namespace agreement {

namespace {

/// An index of shape [outer, m, inner] into the middle dim of a tensor [outer, n, inner].
struct Places {
  std::int64_t outer, n, inner, m, shift;
  std::int64_t wrong = -1;  ///< the position of an index that is out of range
  bool rows = false;        ///< the index is the same along inner
};
const std::vector<Places> kPlaces{{1, 1, 1, 1, 0},      {33, 31, 1, 1, 1},  {3, 7, 129, 5, 0},
                                  {1, 129, 1, 1025, 1}, {2, 5, 3, 1025, 0}, {5, 33, 2, 0, 0},
                                  {0, 4, 3, 2, 0},      {4, 0, 2, 0, 0},    {3, 5, 7, 9, 1, 100},
                                  {1, 2, 1, 3, 0, 2}};
/// Those that CUDA sorts for a scatter: few places for many elements, or for many rows.
const std::vector<Places> kSorted{
    {1, 1, 1, 700, 1},           {3, 2, 1, 1025, 0},           {2, 2, 5, 700, 0},
    {2, 2, 5, 700, 1, -1, true}, {1, 2, 16, 900, 0, -1, true}, {2, 2, 1, 900, 0, 1500}};

std::string text(const char* kernel, const Places& p) {
  return braid::str(kernel, " ", p.m, " of [", p.outer, ", ", p.n, ", ", p.inner, "]",
                    p.wrong >= 0 ? ", one out of range" : "");
}
Operand index_of(const Places& p) {
  Numbers list(p.outer * p.m * (p.rows ? 1 : p.inner));
  for (std::int64_t i = 0; i < list.size(); ++i)
    list[i] = static_cast<double>(p.n == 0 ? 0 : (i * 5 + i / 3) % p.n);
  if (p.wrong >= 0) list[p.wrong] = static_cast<double>(p.n);
  return in(list, 0, always(DType::int64));
}
/// The bounds of sums in any order, each rounded to the dtype. Integers are exact.
Numbers bound_of_sums(const Places& s, DType t, const Values& v) {
  Numbers sizes(s.outer * s.n * s.inner, 3), counts(sizes.size(), 1);  // of what was there
  for (std::int64_t e = 0; e < v[2].size(); ++e) {
    const std::int64_t row = e / s.inner, column = e - row * s.inner,
                       at = static_cast<std::int64_t>(v[1][s.rows ? row : e]),
                       to = (row / s.m * s.n + at) * s.inner + column;
    sizes[to] += std::fabs(v[2][e]), counts[to] += 1;
  }
  for (std::int64_t e = 0; e < sizes.size(); ++e) sizes[e] *= counts[e] * ulp(t, 1);
  return sizes;
}

}  // namespace

std::vector<Call> calls_of_gather(DType) {
  std::vector<Call> list;
  for (const Places& s : kPlaces) {
    const std::int64_t line = s.m * s.inner;
    const Loop loop = strided({s.outer, s.m, s.inner},
                              {{line, s.inner, 1}, {line, s.inner, 1}, {s.n * s.inner, 0, 1}});
    list.push_back({text("gather", s),
                    {out(random(s.outer * line, 1), s.shift), index_of(s),
                     in(random(s.outer * s.n * s.inner, 2), s.shift)},
                    [=](const Place& p) {
                      p.table.gather({p.t, p[0], p.integers(1), p[2], loop, s.n, s.inner},
                                     p.stream);
                    }});
  }
  return list;
}

std::vector<Call> calls_of_scatter(DType t) {
  std::vector<Call> list;
  const double low = t == DType::uint8 ? 0 : -2;
  const auto call = [&](const Places& s, bool add, const Bound& bound) {
    const std::int64_t line = s.m * s.inner, step = s.rows ? 1 : s.inner;
    const Loop lines =
        strided({s.outer, s.inner}, {{s.n * s.inner, 1}, {s.m * step, s.rows ? 0 : 1}, {line, 1}});
    // The output of a rejected call is not compared, but its error text is.
    list.push_back({text(add ? "scatter, added," : "scatter", s) + (s.rows ? ", rows" : ""),
                    {out(random(s.outer * s.n * s.inner, 1, low, 3), s.shift), index_of(s),
                     in(random(s.outer * line, 2, low, 3), s.shift)},
                    [=](const Place& p) {
                      p.table.scatter({p.t, add, p[0], p.integers(1), p[2], lines, s.m, step,
                                       s.inner, s.n, s.inner},
                                      p.stream);
                    },
                    bound});
  };
  for (const bool add : {false, true}) {
    for (const Places& s : kPlaces) call(s, add, nullptr);
    for (const Places& s : kSorted)
      call(s, add, !add ? Bound{} : Bound([=](DType of, const Values& v) {
             return Values{bound_of_sums(s, of, v)};
           }));
  }
  return list;
}

}  // namespace agreement

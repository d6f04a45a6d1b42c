#include <braid/core/internal/kernel_args/index.hpp>

#include "kernels/calls.hpp"

namespace agreement {

namespace {

/// An index of shape [outer, m, inner] into the middle dim of a tensor [outer, n, inner].
struct Places {
  std::int64_t outer, n, inner, m, shift;
  std::int64_t wrong = -1;  ///< the position of an index that is out of range
};
const std::vector<Places> kPlaces{{1, 1, 1, 1, 0},      {33, 31, 1, 1, 1},  {3, 7, 129, 5, 0},
                                  {1, 129, 1, 1025, 1}, {2, 5, 3, 1025, 0}, {5, 33, 2, 0, 0},
                                  {0, 4, 3, 2, 0},      {4, 0, 2, 0, 0},    {3, 5, 7, 9, 1, 100},
                                  {1, 2, 1, 3, 0, 2}};

std::string text(const char* kernel, const Places& p) {
  return braid::str(kernel, " ", p.m, " of [", p.outer, ", ", p.n, ", ", p.inner, "]",
                    p.wrong >= 0 ? ", one out of range" : "");
}
Operand index_of(const Places& p) {
  Numbers list(p.outer * p.m * p.inner);
  for (std::int64_t i = 0; i < list.size(); ++i)
    list[i] = static_cast<double>(p.n == 0 ? 0 : (i * 5 + i / 3) % p.n);
  if (p.wrong >= 0) list[p.wrong] = static_cast<double>(p.n);
  return in(list, 0, always(DType::int64));
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
  for (const bool add : {false, true})
    for (const Places& s : kPlaces) {
      const std::int64_t line = s.m * s.inner;
      const Loop lines = strided({s.outer, s.inner}, {{s.n * s.inner, 1}, {line, 1}, {line, 1}});
      // The output of a rejected call is not compared, but its error text is.
      list.push_back({text(add ? "scatter, added," : "scatter", s),
                      {out(random(s.outer * s.n * s.inner, 1, low, 3), s.shift), index_of(s),
                       in(random(s.outer * line, 2, low, 3), s.shift)},
                      [=](const Place& p) {
                        p.table.scatter({p.t, add, p[0], p.integers(1), p[2], lines, s.m, s.inner,
                                         s.inner, s.n, s.inner},
                                        p.stream);
                      }});
    }
  return list;
}

}  // namespace agreement

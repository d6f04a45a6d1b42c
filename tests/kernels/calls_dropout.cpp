#include <braid/core/internal/kernel_args/dropout.hpp>

#include "kernels/calls.hpp"

namespace agreement {

std::vector<Call> calls_of_dropout(DType) {
  std::vector<Call> list;
  struct Area {
    std::int64_t outer, rows, inner, first, shift;
  };
  for (const Area& s : std::vector<Area>{{1, 1, 1, 0, 0},
                                         {1, 33, 31, 0, 1},
                                         {1, 16, 64, 5, 0},
                                         {1, 7, 129, 3, 0},
                                         {3, 5, 7, 2, 0},
                                         {129, 2, 1, 1, 1},
                                         {1, 0, 4, 0, 0}})
    for (const double share : {0.0, 0.3, 1.0})
      list.push_back({braid::str("dropout ", s.outer, " x ", s.rows, " x ", s.inner, " from row ",
                                 s.first, ", p ", share, ", offset ", s.shift),
                      {out(random(s.outer * s.rows * s.inner, 1), s.shift),
                       in(random(s.outer * s.rows * s.inner, 2), s.shift)},
                      [=](const Place& p) {
                        p.table.dropout({p.t, p[1], p[0], s.outer, s.rows, s.inner, s.first, 77, 3,
                                         static_cast<std::uint64_t>(share * 0x1p32),
                                         share < 1 ? 1 / (1 - share) : 0},
                                        p.stream);
                      }});  // no bound: the same bits
  return list;
}

}  // namespace agreement

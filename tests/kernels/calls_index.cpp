#include <braid/core/internal/kernel_args/index.hpp>

#include "kernels/calls.hpp"

namespace agreement {

namespace {

struct Lookup {
  std::int64_t table, rows, width, shift;
};
const std::vector<Lookup> kLookups{{1, 1, 1, 0},     {7, 33, 31, 1},  {33, 129, 16, 0},
                                   {5, 127, 129, 1}, {3, 2, 1025, 0}, {129, 1025, 1, 1},
                                   {4, 0, 7, 0},     {4, 3, 0, 0}};

Operand index_of(const Lookup& k, bool wrap) {
  const double rows = static_cast<double>(k.table);
  Numbers list = random(k.rows, 9, wrap ? -rows : 0, rows);
  for (std::int64_t i = 0; i < list.size(); ++i) list[i] = std::floor(list[i]);
  return in(list, 0, always(DType::int64));
}
/// The bounds of sums in any order, each rounded to the dtype. Integers are exact.
Numbers bound_of_sums(const Lookup& k, DType t, const Values& v) {
  const double each = is_floating(t) ? ulp(t, 1) : 0;
  Numbers sizes(k.table * k.width), counts(k.table);
  for (std::int64_t i = 0; i < k.rows; ++i) {
    const auto row = static_cast<std::int64_t>(v[2][i]) + (v[2][i] < 0 ? k.table : 0);
    counts[row] += 1;
    for (std::int64_t j = 0; j < k.width; ++j)
      sizes[row * k.width + j] += std::fabs(v[1][i * k.width + j]);
  }
  for (std::int64_t e = 0; e < sizes.size(); ++e) {
    const double count = counts[e / k.width];
    sizes[e] *= count < 2 ? 0 : each * count;
  }
  return sizes;
}
std::string text(const char* kernel, const Lookup& k) {
  return braid::str(kernel, ", ", k.rows, " of ", k.table, " rows of ", k.width, ", offset ",
                    k.shift);
}

}  // namespace

std::vector<Call> calls_of_gather_rows(DType) {
  std::vector<Call> list;
  for (const bool wrap : {false, true})
    for (const Lookup& k : kLookups)
      list.push_back({text("gather rows", k),
                      {out(random(k.rows * k.width, 1), k.shift),
                       in(random(k.table * k.width, 2), k.shift), index_of(k, wrap)},
                      [=](const Place& p) {
                        p.table.gather_rows({p.t, p[1], p.integers(2), p[0], k.table, k.rows,
                                             k.width, "gather_rows", wrap},
                                            p.stream);
                      }});
  return list;
}

std::vector<Call> calls_of_scatter_add_rows(DType t) {
  const bool wide = braid::size_of(t) != 2;  // a CUDA device rounds 16-bit sums once
  std::vector<Call> list;
  for (const Lookup& k : kLookups)
    list.push_back(
        {text("scatter add rows", k),
         {out(Numbers(k.table * k.width), k.shift), in(random(k.rows * k.width, 2), k.shift),
          index_of(k, true)},
         [=](const Place& p) {
           p.table.scatter_add_rows({p.t, p[0], p.integers(2), p[1], k.table, k.rows, k.width},
                                    p.stream);
         },
         k.rows <= 256 && wide  // added in the order of the indices on all devices
             ? Bound{}
             : Bound([=](DType of, const Values& v) { return Values{bound_of_sums(k, of, v)}; })});
  return list;
}

}  // namespace agreement

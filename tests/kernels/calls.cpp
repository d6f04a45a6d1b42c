#include "kernels/calls.hpp"

#include "support/tensors.hpp"

namespace agreement {

TypeOf always(DType t) {
  return [t](DType) { return t; };
}
DType statistics(DType t) { return t == DType::float64 ? t : DType::float32; }
Operand in(Numbers numbers, std::int64_t shift, TypeOf type) {
  return {std::move(numbers), std::move(type), false, shift};
}
Operand out(Numbers numbers, std::int64_t shift, TypeOf type) {
  return {std::move(numbers), std::move(type), true, shift};
}
Numbers random(std::int64_t n, std::uint64_t seed, double low, double high) {
  braid::test::Numbers source(seed);
  Numbers list(n);
  for (std::int64_t i = 0; i < n; ++i) list[i] = source.uniform(low, high);
  return list;
}

Bound each(BoundOfOne f) {
  return [f = std::move(f)](DType t, const Values& v) {
    Numbers bound(v[0].size());
    for (std::int64_t i = 0; i < bound.size(); ++i) bound[i] = f(t, v, i);
    return Values{bound};
  };
}
double reach(DType t) { return braid::is_floating(t) ? 2 : 9; }
double rounding(DType t) { return t == DType::float64 ? 2 * 0x1p-53 : 0x1p-24; }
double exactly(DType t, double y) { return t == DType::float64 ? 0 : 0.501 * ulp(t, y); }
double four_ulp(DType t, double y) {
  return (braid::size_of(t) == 2 ? 1 : t == DType::float64 ? 8 : 4) * ulp(t, y);
}
double last(DType t, double y) { return braid::size_of(t) == 2 ? 0.501 * ulp(t, y) : 0; }

Numbers Walk::numbers(int operand, std::uint64_t seed, double low, double high) const {
  return random(loop.n == 0 ? 0 : extent(loop, operand), seed, low, high);
}
Operand Walk::result(TypeOf type) const { return out(numbers(0, 1), shift, std::move(type)); }
Operand Walk::operand(int k, double low, double high) const {
  return in(numbers(k, static_cast<std::uint64_t>(k) + 1, low, high), shift);
}
const std::vector<Walk>& walks() {
  static const std::vector<Walk> all = [] {
    std::vector<Walk> list;
    for (const std::int64_t n : {0, 1, 16, 31, 33, 127, 129, 1025})
      for (const std::int64_t shift : {0, 1})
        list.push_back({braid::str(n, " dense, offset ", shift), dense(n), shift});
    const auto add = [&](const char* name, Loop loop, std::int64_t shift) {
      list.push_back({name, loop, shift});
    };
    add("33 x 31 transposed", strided({33, 31}, {{31, 1}, {1, 33}, {31, 1}, {1, 33}}), 0);
    add("33 x 31, second transposed", strided({33, 31}, {{31, 1}, {31, 1}, {1, 33}, {31, 1}}), 1);
    add("129 in steps of 2", strided({129}, {{1}, {2}, {2}, {3}}), 0);
    add("127 to steps of 2", strided({127}, {{2}, {1}, {1}, {1}}), 1);
    add("5 x 33, row repeated", strided({5, 33}, {{33, 1}, {0, 1}, {33, 1}, {0, 1}}), 0);
    add("5 x 33, column repeated", strided({5, 33}, {{33, 1}, {33, 1}, {1, 0}, {1, 0}}), 0);
    add("3 x 7 x 11 permuted, rows with a gap",
        strided({3, 7, 11}, {{84, 12, 1}, {1, 3, 21}, {77, 11, 1}, {1, 3, 21}}), 1);
    add("3 x 0", strided({3, 0}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}), 0);
    return list;
  }();
  return all;
}
Bound along(const Walk& w, BoundOfOne f) {
  return [loop = w.loop, f = std::move(f)](DType t, const Values& v) {
    Numbers bound(v[0].size());
    for (std::int64_t i = 0; i < loop.n; ++i) bound[offset(loop, 0, i)] = f(t, v, i);
    return Values{bound};
  };
}

}  // namespace agreement

#include <algorithm>

#include "kernels/gemm_cases.hpp"

#include "reference/sums.hpp"

namespace kernel_test {

namespace {

std::int64_t spanned(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  return rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols;
}
std::int64_t leading(std::int64_t cols, std::int64_t pad) {
  return std::max<std::int64_t>(1, cols + pad);
}
std::vector<double> numbers(const Buffer& x) {
  std::vector<double> list(static_cast<std::size_t>(x.size()) + 1);  // never empty: data() is valid
  for (std::int64_t i = 0; i < x.size(); ++i) list[static_cast<std::size_t>(i)] = x[i];
  return list;
}

// Unit roundoff of the dtype itself, not of its accumulation type.
double unit_of(DType t) {
  return t == DType::float16 ? 0x1p-11 : t == DType::bfloat16 ? 0x1p-8 : unit(t);
}

}  // namespace

const std::vector<DType> kGemmTypes{DType::float32,  DType::float64, DType::float16,
                                    DType::bfloat16, DType::int32,   DType::int64};

Product product(const Shape& shape, int layout) {
  return {shape[0], shape[1], shape[2], layout >= 2, layout % 2 == 1};
}

std::int64_t Product::size_a() const {
  return ta ? spanned(k, m, leading(m, pad)) : spanned(m, k, leading(k, pad));
}
std::int64_t Product::size_b() const {
  return tb ? spanned(n, k, leading(k, pad)) : spanned(k, n, leading(n, pad));
}
std::int64_t Product::size_c() const { return spanned(m, n, leading(n, pad)); }
std::int64_t Product::at_a(std::int64_t q, std::int64_t i, std::int64_t p) const {
  return (repeat_a ? 0 : q * size_a()) + (ta ? p * leading(m, pad) + i : i * leading(k, pad) + p);
}
std::int64_t Product::at_b(std::int64_t q, std::int64_t p, std::int64_t j) const {
  return (repeat_b ? 0 : q * size_b()) + (tb ? j * leading(k, pad) + p : p * leading(n, pad) + j);
}
std::int64_t Product::at_c(std::int64_t q, std::int64_t i, std::int64_t j) const {
  return q * size_c() + i * leading(n, pad) + j;
}
braid::GemmArgs Product::args(DType t, void* a, void* b, void* c, void* of_bias,
                              void* of_sums) const {
  braid::GemmArgs args{};
  args.dtype = t;
  args.ta = ta, args.tb = tb, args.accumulate = accumulate;
  args.m = m, args.n = n, args.k = k, args.batch = batch;
  args.lda = leading(ta ? m : k, pad), args.ldb = leading(tb ? k : n, pad);
  args.ldc = leading(n, pad);
  args.activation = relu ? braid::Activation::relu : braid::Activation::none;
  args.batch_a = repeat_a ? 0 : size_a(), args.batch_b = repeat_b ? 0 : size_b();
  args.batch_c = size_c();
  args.a = a, args.b = b, args.c = c;
  args.bias = bias ? of_bias : nullptr, args.sum_a = sums ? of_sums : nullptr;
  return args;
}

Operands::Operands(DType t, const Product& what)
    : s(what),
      a(t, s.size_a() * (s.repeat_a ? 1 : s.batch), s.shift, true),
      b(t, s.size_b() * (s.repeat_b ? 1 : s.batch), s.shift, true),
      c(t, s.size_c() * s.batch, s.shift, true),
      bias(t, s.bias ? s.n : 0, s.shift, true),
      sums(t, s.sums ? s.m : 0, s.shift, true) {
  std::uint32_t seed = 1;
  for (Buffer* operand : {&a, &b, &c, &bias, &sums}) operand->pattern(seed++, 0.5);
  args = s.args(t, a.data(), b.data(), c.data(), bias.data(), sums.data());
}
void Operands::run() {
  braid::Stream& on = stream();
  if (s.by) s.by(args);
  else kernels().gemm(args, on);
}
std::string describe(DType t, const Product& s) {
  return braid::str(t, " m ", s.m, " n ", s.n, " k ", s.k, s.ta ? " T" : " N", s.tb ? "T" : "N",
                    s.accumulate ? " accumulate" : "", s.bias ? " bias" : "", " batch ", s.batch,
                    " pad ", s.pad, " shift ", s.shift, s.relu ? " relu" : "",
                    s.sums ? " sums" : "");
}

void check(DType t, const Product& s) {
  INFO(describe(t, s));
  Operands x(t, s);
  const Buffer before = x.c;
  x.run();
  // Converted to double once, and read through raw pointers.
  const std::vector<double> all_a = numbers(x.a), all_b = numbers(x.b);
  const std::int64_t step_a = s.ta ? x.args.lda : 1, step_b = s.tb ? 1 : x.args.ldb;
  std::int64_t wrong = 0, changed = 0;
  std::vector<bool> inside(static_cast<std::size_t>(x.c.size()));
  for (std::int64_t q = 0; q < s.batch; ++q)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        const std::int64_t at = s.at_c(q, i, j);
        inside[static_cast<std::size_t>(at)] = true;
        const double start = s.accumulate ? before[at] : s.bias ? x.bias[j] : 0;
        const auto [sum, size] =
            reference::add_products(start, all_a.data() + (s.k > 0 ? s.at_a(q, i, 0) : 0), step_a,
                                    all_b.data() + (s.k > 0 ? s.at_b(q, 0, j) : 0), step_b, s.k);
        const double bound = braid::is_floating(t)
                                 ? ((static_cast<double>(s.k) + 2) * unit(t) + s.rounded) * size +
                                       1.001 * unit_of(t) * std::fabs(sum) +
                                       (t == DType::float16 ? 0x1p-25 : 0)
                                 : 0;
        wrong += !(std::fabs(x.c[at] - (s.relu ? std::fmax(sum, 0.0) : sum)) <= bound);
      }
  for (std::int64_t i = 0; s.sums && i < s.m; ++i) {
    double sum = 0, size = 0;
    for (std::int64_t p = 0; p < s.k; ++p)
      sum += x.a[s.at_a(0, i, p)], size += std::fabs(x.a[s.at_a(0, i, p)]);
    wrong += !(std::fabs(x.sums[i] - sum) <=
               (log2_up(s.k) + 2) * unit(t) * size + 1.001 * unit_of(t) * std::fabs(sum));
  }
  for (std::int64_t at = 0; at < x.c.size(); ++at)
    changed += !inside[static_cast<std::size_t>(at)] && x.c[at] != before[at];
  CHECK(wrong == 0);
  CHECK(changed == 0);
}

}  // namespace kernel_test

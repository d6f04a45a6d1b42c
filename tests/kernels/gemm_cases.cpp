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
std::int64_t size_a(const Product& s) {
  return s.ta ? spanned(s.k, s.m, leading(s.m, s.pad)) : spanned(s.m, s.k, leading(s.k, s.pad));
}
std::int64_t size_b(const Product& s) {
  return s.tb ? spanned(s.n, s.k, leading(s.k, s.pad)) : spanned(s.k, s.n, leading(s.n, s.pad));
}
std::int64_t size_c(const Product& s) { return spanned(s.m, s.n, leading(s.n, s.pad)); }

std::vector<double> numbers(const Buffer& x) {
  std::vector<double> list(static_cast<std::size_t>(x.size()) + 1);  // has an address if x is empty
  for (std::int64_t i = 0; i < x.size(); ++i) list[static_cast<std::size_t>(i)] = x[i];
  return list;
}

// Unit roundoff of the dtype itself.
double unit_of(DType t) {
  return t == DType::float16 ? 0x1p-11 : t == DType::bfloat16 ? 0x1p-8 : unit(t);
}

}  // namespace

const std::vector<DType> kGemmTypes{DType::float32,  DType::float64, DType::float16,
                                    DType::bfloat16, DType::int32,   DType::int64};

Product product(const Shape& shape, int layout) {
  return {shape[0], shape[1], shape[2], layout >= 2, layout % 2 == 1};
}

Operands::Operands(DType t, const Product& what)
    : s(what),
      a(t, size_a(s) * (s.repeat_a ? 1 : s.batch), s.shift, true),
      b(t, size_b(s) * (s.repeat_b ? 1 : s.batch), s.shift, true),
      c(t, size_c(s) * s.batch, s.shift, true),
      bias(t, s.bias ? s.n : 0, s.shift, true),
      sums(t, s.sums ? s.m : 0, s.shift, true) {
  std::uint32_t seed = 1;
  for (Buffer* operand : {&a, &b, &c, &bias, &sums}) operand->pattern(seed++, 0.5);
  args.dtype = t;
  args.ta = s.ta, args.tb = s.tb, args.accumulate = s.accumulate;
  args.m = s.m, args.n = s.n, args.k = s.k, args.batch = s.batch;
  args.lda = leading(s.ta ? s.m : s.k, s.pad), args.ldb = leading(s.tb ? s.k : s.n, s.pad);
  args.ldc = leading(s.n, s.pad);
  args.activation = s.relu ? braid::Activation::relu : braid::Activation::none;
  args.batch_a = s.repeat_a ? 0 : size_a(s), args.batch_b = s.repeat_b ? 0 : size_b(s);
  args.batch_c = size_c(s);
  args.a = a.data(), args.b = b.data(), args.c = c.data();
  args.bias = s.bias ? bias.data() : nullptr, args.sum_a = s.sums ? sums.data() : nullptr;
}
void Operands::run() {
  braid::Stream& on = stream();
  if (s.by) s.by(args);
  else kernels().gemm(args, on);
}
std::int64_t Operands::at_a(std::int64_t q, std::int64_t i, std::int64_t p) const {
  return q * args.batch_a + (s.ta ? p * args.lda + i : i * args.lda + p);
}
std::int64_t Operands::at_b(std::int64_t q, std::int64_t p, std::int64_t j) const {
  return q * args.batch_b + (s.tb ? j * args.ldb + p : p * args.ldb + j);
}
std::int64_t Operands::at_c(std::int64_t q, std::int64_t i, std::int64_t j) const {
  return q * args.batch_c + i * args.ldc + j;
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
  // Widened once, and read through plain pointers.
  const std::vector<double> all_a = numbers(x.a), all_b = numbers(x.b);
  const std::int64_t step_a = s.ta ? x.args.lda : 1, step_b = s.tb ? 1 : x.args.ldb;
  std::int64_t wrong = 0, changed = 0;
  std::vector<bool> inside(static_cast<std::size_t>(x.c.size()));
  for (std::int64_t q = 0; q < s.batch; ++q)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        const std::int64_t at = x.at_c(q, i, j);
        inside[static_cast<std::size_t>(at)] = true;
        const double start = s.accumulate ? before[at] : s.bias ? x.bias[j] : 0;
        const auto [sum, size] =
            reference::add_products(start, all_a.data() + (s.k > 0 ? x.at_a(q, i, 0) : 0), step_a,
                                    all_b.data() + (s.k > 0 ? x.at_b(q, 0, j) : 0), step_b, s.k);
        const double bound = braid::is_floating(t)
                                 ? (static_cast<double>(s.k) + 2) * unit(t) * size +
                                       1.001 * unit_of(t) * std::fabs(sum) +
                                       (t == DType::float16 ? 0x1p-25 : 0)
                                 : 0;
        wrong += !(std::fabs(x.c[at] - (s.relu ? std::fmax(sum, 0.0) : sum)) <= bound);
      }
  for (std::int64_t i = 0; s.sums && i < s.m; ++i) {
    double sum = 0, size = 0;
    for (std::int64_t p = 0; p < s.k; ++p)
      sum += x.a[x.at_a(0, i, p)], size += std::fabs(x.a[x.at_a(0, i, p)]);
    wrong += !(std::fabs(x.sums[i] - sum) <=
               (log2_up(s.k) + 2) * unit(t) * size + 1.001 * unit_of(t) * std::fabs(sum));
  }
  for (std::int64_t at = 0; at < x.c.size(); ++at)
    changed += !inside[static_cast<std::size_t>(at)] && x.c[at] != before[at];
  CHECK(wrong == 0);
  CHECK(changed == 0);
}

}  // namespace kernel_test

#include <algorithm>
#include <cstdlib>

#include <braid/kernels/cuda.hpp>

#include "kernels/gemm_cases.hpp"

#include "reference/activation.hpp"
#include "reference/sums.hpp"

namespace kernel_test {

using braid::Epilogue;

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
braid::GemmArgs Product::args(DType t, void* a, void* b, void* c, void* of_bias, void* of_sums,
                              void* of_other) const {
  braid::GemmArgs args{};
  args.dtype = t;
  args.ta = ta, args.tb = tb, args.accumulate = accumulate;
  args.m = m, args.n = n, args.k = k, args.batch = batch;
  args.lda = leading(ta ? m : k, pad), args.ldb = leading(tb ? k : n, pad);
  args.ldc = leading(n, pad);
  args.epilogue = epilogue;
  args.batch_a = repeat_a ? 0 : size_a(), args.batch_b = repeat_b ? 0 : size_b();
  args.batch_c = size_c();
  args.a = a, args.b = b, args.c = c;
  args.bias = bias ? of_bias : nullptr, args.sum_a = sums ? of_sums : nullptr;
  const bool reads = epilogue != Epilogue::none && epilogue != Epilogue::relu && !is_gelu(epilogue);
  args.other = reads || kept ? of_other : nullptr;
  return args;
}

Operands::Operands(DType t, const Product& what)
    : s(what),
      a(t, s.size_a() * (s.repeat_a ? 1 : s.batch), s.shift, true),
      b(t, s.size_b() * (s.repeat_b ? 1 : s.batch), s.shift, true),
      c(t, s.size_c() * s.batch, s.shift, true),
      bias(t, s.bias ? s.n : 0, s.shift, true),
      sums(t, s.sums ? s.m : 0, s.shift, true),
      other(t, s.size_c() * s.batch, s.shift + s.other_shift, true) {
  std::uint32_t seed = 1;
  for (Buffer* operand : {&a, &b, &c, &bias, &sums, &other}) operand->pattern(seed++, 0.5);
  args = s.args(t, a.data(), b.data(), c.data(), bias.data(), sums.data(), other.data());
}
void Operands::run() {
  braid::Stream& on = stream();
  if (s.by) s.by(args);
  else kernels().gemm(args, on);
}
std::string describe(DType t, const Product& s) {
  return braid::str(t, " m ", s.m, " n ", s.n, " k ", s.k, s.ta ? " T" : " N", s.tb ? "T" : "N",
                    s.accumulate ? " accumulate" : "", s.bias ? " bias" : "", " batch ", s.batch,
                    " pad ", s.pad, " shift ", s.shift, "+", s.other_shift, " epilogue ",
                    static_cast<int>(s.epilogue), s.kept ? " kept" : "", s.sums ? " sums" : "");
}

std::vector<Epilogue> epilogues_of(DType t) {
  std::vector<Epilogue> list{Epilogue::relu, Epilogue::add, Epilogue::relu_backward};
  if (braid::is_floating(t))
    list.insert(list.end(), {Epilogue::gelu, Epilogue::gelu_tanh, Epilogue::gelu_backward,
                             Epilogue::gelu_tanh_backward});
  return list;
}

double finished(Epilogue epilogue, double z, double o) {
  switch (epilogue) {
    case Epilogue::none: return z;
    case Epilogue::relu: return z <= 0 ? 0 : z;
    case Epilogue::gelu: return reference::gelu(z);
    case Epilogue::gelu_tanh: return reference::gelu_tanh(z);
    case Epilogue::add: return z + o;
    case Epilogue::relu_backward: return o <= 0 ? 0 : z;
    case Epilogue::gelu_backward: return z * reference::gelu_slope(o);
    case Epilogue::gelu_tanh_backward: return z * reference::gelu_tanh_slope(o);
  }
  return kNaN;
}
/// True if only the sum of the epilogue `add` is rounded: of numbers that are narrower than sums.
bool rounds_once(DType t, const Product& s) {
  return s.epilogue == Epilogue::add && braid::size_of(t) == 2;
}
/// cuBLAS gets bias + o in C, where it is rounded; where it adds to C, o is added after it.
bool by_cublas(const Product& s) {
  const char* const engine = std::getenv("BRAID_GEMM");
  return s.by == nullptr && engine != nullptr && std::string(engine) == "cublas";
}
/// The library rounds a product of 16 bits before it adds it to C, as an H200 showed. The fake of
/// the emulation does not.
bool rounds_product(DType t, const Product& s) {
  return by_cublas(s) && !braid::cuda::is_emulated() && braid::size_of(t) == 2;
}
double finished_error(Epilogue epilogue, double z, double o, double error, double u) {
  constexpr double kSlope = 1.13;  // the largest of gelu
  switch (epilogue) {
    case Epilogue::none:
    case Epilogue::relu:
    case Epilogue::relu_backward: return error;
    case Epilogue::add: return error + u * std::fabs(z + o);
    case Epilogue::gelu:
    case Epilogue::gelu_tanh: return kSlope * error + 16 * u * (1 + std::fabs(z));
    case Epilogue::gelu_backward:
    case Epilogue::gelu_tanh_backward:
      return kSlope * error + 16 * u * (1 + std::fabs(o)) * std::fabs(z);
  }
  return 0;
}

void check(DType t, const Product& s) {
  INFO(describe(t, s));
  Operands x(t, s);
  const Buffer before = x.c, other_before = x.other;
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
        const double o = other_before[at];
        const double rounded_first = !rounds_once(t, s) ? sum
                                     : !by_cublas(s)    ? 0
                                     : s.accumulate     ? sum
                                                        : start + o;
        const bool added = s.accumulate || s.bias || s.epilogue == Epilogue::add;
        const double product = rounds_product(t, s) && added ? std::fabs(sum - start) : 0;
        const double bound = braid::is_floating(t)
                                 ? ((static_cast<double>(s.k) + 2) * unit(t) + s.rounded) * size +
                                       1.001 * unit_of(t) * (std::fabs(rounded_first) + product) +
                                       (t == DType::float16 ? 0x1p-25 : 0)
                                 : 0;
        const double want = finished(s.epilogue, sum, o),
                     last = braid::is_floating(t) ? 1.001 * unit_of(t) * std::fabs(want) : 0;
        wrong += !(std::fabs(x.c[at] - want) <=
                   (s.epilogue <= Epilogue::relu
                        ? bound
                        : finished_error(s.epilogue, sum, o, bound, unit(t)) + last));
        wrong += s.kept ? !(std::fabs(x.other[at] - sum) <= bound) : x.other[at] != o;
      }
  for (std::int64_t i = 0; s.sums && i < s.m; ++i) {
    double sum = 0, size = 0;
    for (std::int64_t p = 0; p < s.k; ++p)
      sum += x.a[s.at_a(0, i, p)], size += std::fabs(x.a[s.at_a(0, i, p)]);
    wrong += !(std::fabs(x.sums[i] - sum) <=
               (log2_up(s.k) + 2) * unit(t) * size + 1.001 * unit_of(t) * std::fabs(sum));
  }
  for (std::int64_t at = 0; at < x.c.size(); ++at)
    changed += !inside[static_cast<std::size_t>(at)] &&
               (x.c[at] != before[at] || x.other[at] != other_before[at]);
  CHECK(wrong == 0);
  CHECK(changed == 0);
}

void check_apart(DType t, const Product& s, const std::function<void(Operands&)>& change) {
  INFO(describe(t, s));
  Product plain = s;
  plain.epilogue = Epilogue::none, plain.kept = false;
  Operands together(t, s), apart(t, plain);
  change(together), change(apart);
  together.run(), apart.run();
  const bool gelu = s.epilogue > Epilogue::relu && s.epilogue != Epilogue::add &&
                    s.epilogue != Epilogue::relu_backward;
  const auto same = [](double a, double b) {
    return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
  };
  std::int64_t wrong = 0;
  for (std::int64_t q = 0; q < s.batch; ++q)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        const std::int64_t at = s.at_c(q, i, j);
        const double z = apart.c[at], o = apart.other[at], got = together.c[at],
                     want = finished(s.epilogue, z, o);
        if (s.kept) wrong += !same(together.other[at], z);
        if (rounds_once(t, s) && std::isfinite(want)) {
          const double first = std::fabs(z) +
                               (by_cublas(s) && s.bias ? std::fabs(together.bias[j] + o) : 0) +
                               (rounds_product(t, s) && s.bias ? std::fabs(together.bias[j]) : 0);
          wrong +=
              !(std::fabs(got - want) <= 1.001 * unit_of(t) * (first + std::fabs(want)) + 0x1p-20);
        } else if (!gelu) {
          wrong += !same(got, rounded(t, want));
        } else if (std::isfinite(want)) {
          const double last = 1.001 * unit_of(t) * std::fabs(want) + 0x1p-25;
          wrong += !(std::fabs(got - want) <= finished_error(s.epilogue, z, o, 0, unit(t)) + last);
        } else if (is_gelu(s.epilogue) || std::isfinite(o)) {
          wrong += !(got == want || (std::isnan(got) && std::isnan(want)));
        }
      }
  CHECK(wrong == 0);
}

}  // namespace kernel_test

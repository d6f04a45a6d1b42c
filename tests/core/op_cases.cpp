#include "op_cases.hpp"

#include <algorithm>
#include <cmath>

namespace braid::test {

std::function<double()> numbers_of(const Input& input, std::size_t i, DType dtype,
                                   std::uint64_t seed) {
  const DType t = type_of(input, dtype);
  Numbers start(seed * 1000 + i);
  // A shuffled grid of distinct elements: 37 is coprime to 256. Each input has a different offset
  // between the grid points.
  static constexpr double kBetween[] = {0, 0.5, 0.25, 0.75};
  const std::int64_t first = start.integer(0, 256);
  return [input, i, t, integers = !is_floating(t), numbers = start, k = first]() mutable -> double {
    switch (input.kind) {
      case Input::Kind::value:
      case Input::Kind::boolean: return numbers.of(t);
      case Input::Kind::positive:
        return integers ? static_cast<double>(t == DType::bool_ ? 1 : numbers.integer(1, 10))
                        : numbers.uniform(0.3, 3);
      case Input::Kind::nonzero:
        if (integers)
          return static_cast<double>(t == DType::bool_ ? 1
                                     : t == DType::uint8 || numbers.integer(0, 2) == 0
                                         ? numbers.integer(1, 10)
                                         : numbers.integer(-9, 0));
        return numbers.uniform(0.2, 2) * (numbers.integer(0, 2) == 0 ? 1 : -1);
      case Input::Kind::unit: return integers ? 0 : numbers.uniform(-0.9, 0.9);
      case Input::Kind::probability:
        return integers ? static_cast<double>(numbers.integer(0, 2)) : numbers.uniform(0.1, 0.9);
      case Input::Kind::above_one:
        return integers ? static_cast<double>(t == DType::bool_ ? 1 : numbers.integer(1, 10))
                        : numbers.uniform(1.2, 4);
      case Input::Kind::distinct: {
        k = (k + 37) % 256;
        if (t == DType::bool_) return static_cast<double>(k % 2);
        if (integers) return static_cast<double>(t == DType::uint8 ? k : k - 128);
        return (static_cast<double>(k) - 128 + kBetween[i % 4]) / 32;
      }
      case Input::Kind::index:
        return static_cast<double>(numbers.integer(input.negative ? -input.below : 0, input.below));
    }
    throw std::logic_error("numbers_of");
  };
}

Tensor sample(const Input& input, std::size_t i, DType dtype, const Layout& layout, Device device,
              std::uint64_t seed) {
  return strided(input.shape, layout.strides, layout.offset, type_of(input, dtype), device,
                 numbers_of(input, i, dtype, seed));
}

std::vector<Layout> dense(const OpCase& c) {
  std::vector<Layout> list;
  for (const Input& input : c.inputs) list.push_back(layouts(input.shape).front());
  return list;
}

std::vector<Tensor> inputs_of(const OpCase& c, DType dtype, const std::vector<Layout>& layout,
                              Device device, std::uint64_t seed) {
  std::vector<Tensor> list;
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    list.push_back(sample(c.inputs[i], i, dtype, layout[i], device, seed));
  return list;
}

std::string describe(const std::string& name, DType dtype, Device device,
                     const std::vector<Layout>& layout) {
  std::string text = str(name, ", ", dtype, " on ", device);
  for (const Layout& l : layout) text += ", " + l.name;
  return text;
}

std::string names_of_devices() {
  std::string text;
  for (const Device d : test_devices()) text += str(text.empty() ? "" : ", ", d);
  return text;
}

OpCase resized(OpCase c, const Resize& to) {
  const auto change = [&](std::int64_t& n) {
    if (const auto found = to.find(n); found != to.end()) n = found->second;
  };
  for (Input& input : c.inputs) {
    for (std::int64_t& n : input.shape) change(n);
    if (input.kind != Input::Kind::index) continue;
    std::int64_t rows = input.below, other = 3;
    change(rows), change(other);
    input.below = std::min(rows, other);
  }
  return c;
}

std::vector<std::vector<Layout>> layout_combinations(const OpCase& c) {
  std::vector<std::vector<Layout>> of;
  for (const Input& input : c.inputs) of.push_back(layouts(input.shape));
  std::vector<std::vector<Layout>> list;
  const std::vector<Layout> all = dense(c);
  list.push_back(all);
  std::size_t most = 0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    most = std::max(most, of[i].size());
    for (std::size_t k = 1; k < of[i].size(); ++k) {
      std::vector<Layout> one = all;
      one[i] = of[i][k];
      list.push_back(one);
    }
  }
  if (of.size() > 1)
    for (std::size_t k = 1; k < most; ++k) {
      std::vector<Layout> together;
      for (std::size_t i = 0; i < of.size(); ++i)
        together.push_back(of[i][(k + 2 * i) % of[i].size()]);
      list.push_back(together);
    }
  return list;
}

namespace {

/// Returns the case's bound. Returns infinity if it has none, for example for inputs of other
/// sizes.
Array bound_of(const OpCase& c, std::size_t output, const Array& want,
               const std::vector<Array>& inputs) {
  if (c.accuracy != Accuracy::bound) return want;
  try {
    Array bound = c.bound(inputs).at(output);
    if (bound.shape == want.shape) return bound;
  } catch (const std::logic_error&) {}
  return Array(want.shape, INFINITY);
}

}  // namespace

double error_units(const OpCase& c, std::size_t output, const Tensor& got, const Array& want,
                   const std::vector<Array>& inputs) {
  if (sizes_of(got.shape()) != want.shape) return INFINITY;
  const DType t = got.dtype();
  if (!is_floating(t)) return exact(got, want).empty() ? 0 : INFINITY;
  const Array y = array_of(got), bound = bound_of(c, output, want, inputs);
  double largest = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const double w = want[i], ulp = reference::ulp(w, format_of(t));
    if (y[i] == w || (std::isnan(y[i]) && std::isnan(w))) continue;
    double allowed = 0.501 * ulp;
    if (c.accuracy == Accuracy::ulps) allowed = (size_of(t) == 2 ? 1 : 4) * ulp;
    // A bound is a sum of magnitudes, so there is none next to an infinity or a NaN.
    const bool bounded = c.accuracy == Accuracy::bound && std::isfinite(bound[i]);
    // 16-bit dtypes accumulate in float32
    if (bounded) allowed = bound[i] * (t == DType::float64 ? 0x1p-53 : 0x1p-24) + 0.501 * ulp;
    else if (c.accuracy == Accuracy::tolerance || c.accuracy == Accuracy::bound)
      allowed = tolerance(t).atol + tolerance(t).rtol * std::fabs(w);
    const double error = std::fabs(y[i] - w) / allowed;
    if (!(error <= largest)) largest = std::isnan(error) ? INFINITY : error;
  }
  return largest;
}

std::string evaluate(const OpCase& c, std::size_t output, const Tensor& got,
                     const std::vector<Array>& inputs) {
  const Array want = c.expected(inputs).at(output);
  const DType t = got.dtype();
  if (!is_floating(t)) return exact(got, want);
  const bool half = t == DType::float16 || t == DType::bfloat16;
  switch (c.accuracy) {
    case Accuracy::exact: return exact(got, want);
    case Accuracy::ulps: return within_ulps(got, want, half ? 1 : 4);
    case Accuracy::tolerance: return close(got, want, tolerance(t));
    case Accuracy::bound: {
      Array bound = c.bound(inputs).at(output);
      // 16-bit dtypes accumulate in float32
      for (double& b : bound.data) b *= t == DType::float64 ? 0x1p-53 : 0x1p-24;
      return within_bound(got, want, bound);
    }
  }
  throw std::logic_error("evaluate");
}

namespace {

struct Family {
  const char* name;
  void (*add)(std::vector<OpCase>&);
};
const Family kFamilies[] = {
    {"unary", add_unary_cases},
    {"binary", add_binary_cases},
    {"bitwise", add_bitwise_cases},
    {"compare", add_compare_cases},
    {"where", add_where_cases},
    {"lerp", add_lerp_cases},
    {"activation", add_activation_cases},
    {"reduce", add_reduce_cases},
    {"statistics", add_statistics_cases},
    {"scan", add_scan_cases},
    {"sort", add_sort_cases},
    {"softmax", add_softmax_cases},
    {"loss", add_loss_bound_cases},
    {"loss", add_loss_cases},
    {"loss", add_loss_parameters},
    {"matmul", add_matmul_cases},
    {"linear", add_linear_cases},
    {"einsum", add_einsum_cases},
    {"join", add_join_cases},
    {"index", add_index_cases},
    {"gather", add_gather_cases},
    {"masks", add_masks_cases},
    {"views", add_views_cases},
    {"shape", add_shape_cases},
    {"rearrange", add_rearrange_cases},
    {"pad", add_pad_cases},
    {"diagonal", add_diagonal_cases},
    {"inplace", add_inplace_cases},
    {"norm", add_norm_cases},
    {"attention", add_attention_cases},
    {"dropout", add_dropout_cases},
    {"rnn", add_rnn_cases},
    {"conv", add_conv_cases},
    {"pool", add_pool_cases},
};

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> list = [] {
    std::vector<OpCase> all;
    for (const Family& family : kFamilies) {
      const std::size_t first = all.size();
      family.add(all);
      for (std::size_t i = first; i < all.size(); ++i) all[i].family = family.name;
    }
    add_differences(all);
    return all;
  }();
  return list;
}

}  // namespace braid::test

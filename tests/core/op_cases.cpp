#include "op_cases.hpp"

namespace braid::test {

Tensor sample(const Input& input, std::size_t i, DType dtype, const Layout& layout, Device device, std::uint64_t seed) {
  Numbers numbers(seed * 1000 + i);
  const DType t = type_of(input, dtype);
  const bool integers = !is_floating(t);
  // A shuffled grid for distinct elements: 37 is prime to 256.
  std::int64_t k = numbers.integer(0, 256);
  const auto next = [&]() -> double {
    switch (input.kind) {
      case Input::Kind::value:
      case Input::Kind::boolean:
        return numbers.of(t);
      case Input::Kind::positive:
        return integers ? static_cast<double>(t == DType::bool_ ? 1 : numbers.integer(1, 10)) : numbers.uniform(0.3, 3);
      case Input::Kind::nonzero:
        if (integers)
          return static_cast<double>(t == DType::bool_ ? 1 : t == DType::uint8 || numbers.integer(0, 2) == 0 ? numbers.integer(1, 10) : numbers.integer(-9, 0));
        return numbers.uniform(0.2, 2) * (numbers.integer(0, 2) == 0 ? 1 : -1);
      case Input::Kind::distinct: {
        k = (k + 37) % 256;
        if (t == DType::bool_) return static_cast<double>(k % 2);
        if (integers) return static_cast<double>(t == DType::uint8 ? k : k - 128);
        return (static_cast<double>(k) - 128 + 0.5 * static_cast<double>(i)) / 32;
      }
      case Input::Kind::index:
        return static_cast<double>(numbers.integer(input.negative ? -input.below : 0, input.below));
    }
    throw std::logic_error("sample");
  };
  return strided(input.shape, layout.strides, layout.offset, t, device, next);
}

std::string judge(const OpCase& c, std::size_t output, const Tensor& got, const std::vector<Array>& inputs) {
  const Array want = c.expected(inputs).at(output);
  const DType t = got.dtype();
  if (!is_floating(t)) return exact(got, want);
  const bool half = t == DType::float16 || t == DType::bfloat16;
  switch (c.accuracy) {
    case Accuracy::exact:
      return exact(got, want);
    case Accuracy::ulps:
      return within_ulps(got, want, half ? 1 : 4);
    case Accuracy::tolerance:
      return close(got, want, tolerance(t));
    case Accuracy::bound: {
      Array bound = c.bound(inputs).at(output);
      for (double& b : bound.data) b *= t == DType::float64 ? 0x1p-53 : 0x1p-24;  // 16-bit types accumulate in float32
      return within_bound(got, want, bound);
    }
  }
  throw std::logic_error("judge");
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> list = [] {
    std::vector<OpCase> all;
    add_elementwise_cases(all);
    add_reduction_cases(all);
    add_product_cases(all);
    add_join_cases(all);
    add_view_cases(all);
    return all;
  }();
  return list;
}

}  // namespace braid::test

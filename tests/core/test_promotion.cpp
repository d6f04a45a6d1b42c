// Tests of dtype promotion for two operands: docs/notes/dtypes.md, and PyTorch's results
// (goldens/promotion.txt).
#include <cstdlib>
#include <map>
#include <sstream>

#include "shorthand.hpp"
#include "support/golden.hpp"

namespace braid::test::on_device {
namespace {

const std::map<std::string, DType>& dtypes_by_name() {
  static const std::map<std::string, DType> map = [] {
    std::map<std::string, DType> m;
    for (const DType t : all_dtypes()) m[str(t)] = t;
    return m;
  }();
  return map;
}

struct Row {
  std::string a, b;
  DType result;
};
std::vector<Row> rows() {
  std::vector<Row> list;
  std::istringstream lines(testing::Goldens("promotion.txt").text("promotion"));
  for (std::string a, b, result; lines >> a >> b >> result;)
    list.push_back({a, b, dtypes_by_name().at(result)});
  return list;
}

}  // namespace

TEST_CASE("promotion: every pair of dtypes, and every dtype beside numbers, is PyTorch's",
          "[dtype][goldens]") {
  int pairs = 0, numbers = 0;
  for (const Row& row : rows()) {
    INFO(row.a << " beside " << row.b);
    const DType a = dtypes_by_name().at(row.a);
    const Tensor x = ones({2}, {.dtype = a});
    if (const auto b = dtypes_by_name().find(row.b); b != dtypes_by_name().end()) {
      ++pairs;
      CHECK(promote(a, b->second) == row.result);
      CHECK(promote(b->second, a) == row.result);
      const Tensor y = ones({2}, {.dtype = b->second});
      CHECK((x * y).dtype() == row.result);
      CHECK(where(eq(x, x), x, y).dtype() == row.result);
      if (row.result != DType::bool_) CHECK(fmod(x, y).dtype() == row.result);
    } else {
      ++numbers;
      const bool floating = row.b.find_first_of(".en") != std::string::npos;  // 2.5, 1e30, inf
      const Scalar number = floating ? Scalar(std::strtod(row.b.c_str(), nullptr))
                                     : Scalar(std::strtoll(row.b.c_str(), nullptr, 10));
      CHECK(promote(a, number) == row.result);
      CHECK((x * number).dtype() == row.result);
      CHECK(where(eq(x, x), x, number).dtype() == row.result);
      CHECK(where(eq(x, x), number, x).dtype() == row.result);
      if (a == DType::bool_ && number.to_double() != 0) {
        CHECK(fmod(x, number).dtype() == row.result);
        CHECK(remainder(x, number).dtype() == row.result);
        CHECK(floor_divide(x, number).dtype() == row.result);
      }
      if (a != DType::bool_ && !std::isinf(number.to_double()))
        CHECK(clamp(x, number).dtype() == row.result);
    }
  }
  CHECK(pairs == kDTypeCount * kDTypeCount);
  CHECK(numbers == 8 * kDTypeCount);
}

TEST_CASE("promotion: what differs from PyTorch, as docs/notes/dtypes.md says", "[dtype]") {
  // A tensor of rank 0 counts like any other.
  CHECK((ones({2}) + ones({}, {.dtype = DType::float64})).dtype() == DType::float64);
}

}  // namespace braid::test::on_device

#pragma once
// What most tests of this folder include: the library, the device of the run, checks of errors, and
// short words for what is written often.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <braid/braid.hpp>

#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test {

using T = const Tensor&;
using List = std::vector<double>;
using Whole = std::vector<std::int64_t>;
using Bools = std::vector<bool>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min(),
                       kMax = std::numeric_limits<std::int64_t>::max();

/// The elements, row by row; none of an undefined tensor.
[[nodiscard]] List list(T t);
[[nodiscard]] Whole whole(T t);
[[nodiscard]] Bools bools(T t);

/// Every tensor holds these numbers, or has this shape.
void check_lists(const std::vector<std::pair<Tensor, List>>& rows);
void check_whole(const std::vector<std::pair<Tensor, Whole>>& rows);
void check_bools(const std::vector<std::pair<Tensor, Bools>>& rows);
void check_shapes(const std::vector<std::pair<Tensor, Shape>>& rows);
/// Equal, NaN to NaN, and the sign of zero.
void check_same(T got, const List& want);

/// The gradients of y by the inputs for the incoming gradient dy.
[[nodiscard]] std::vector<Tensor> pulled(T y, const std::vector<Tensor>& inputs, T dy,
                                         bool create_graph = false);
/// d sum(f(x)) / dx at x = these numbers, on here().
[[nodiscard]] List gradient_at(const std::function<Tensor(T)>& f, const List& at);

/// Puts back the number of threads at the end of a test.
class KeepThreads {
 public:
  KeepThreads() = default;
  KeepThreads(const KeepThreads&) = delete;
  KeepThreads& operator=(const KeepThreads&) = delete;
  ~KeepThreads() { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

}  // namespace braid::test

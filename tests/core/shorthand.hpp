#pragma once
// Common includes of the tests in this folder: the library, the device of the run, checks of
// errors, and short names for frequent operations.
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

/// Returns the elements in row-major order; empty for an undefined tensor.
[[nodiscard]] List list(T t);
[[nodiscard]] Whole whole(T t);
[[nodiscard]] Bools bools(T t);

/// Checks that every tensor holds these numbers, or has this shape.
void check_lists(const std::vector<std::pair<Tensor, List>>& rows);
void check_whole(const std::vector<std::pair<Tensor, Whole>>& rows);
void check_bools(const std::vector<std::pair<Tensor, Bools>>& rows);
void check_shapes(const std::vector<std::pair<Tensor, Shape>>& rows);
/// Checks equality; NaN equals NaN, and zeros must have the same sign.
void check_same(T got, const List& want);

/// Returns the gradients of y by the inputs for the incoming gradient dy.
[[nodiscard]] std::vector<Tensor> pulled(T y, const std::vector<Tensor>& inputs, T dy,
                                         bool create_graph = false);
/// Returns d sum(f(x)) / dx at x = `at`, on here().
[[nodiscard]] List gradient_at(const std::function<Tensor(T)>& f, const List& at);

/// Restores the number of threads at the end of a test.
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

#pragma once
// Cases of reductions whose reference computes one number from each group of elements.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "op_case_makers.hpp"
#include "reference/reduce.hpp"

namespace braid::test {

inline const std::vector<Dims> kGroups{{"all", {2, 3, 2}, {}, false},
                                       {"last dim", {3, 4}, {-1}, false},
                                       {"first dim, keepdim", {3, 4}, {0}, true},
                                       {"middle dim", {2, 3, 2}, {1}, false},
                                       {"two dims", {2, 3, 2}, {0, 2}, false},
                                       {"all, keepdim", {2, 3}, {}, true}};

/// Returns PyTorch's arguments for dims and keepdim.
inline std::string in_torch(const Dims& d) {
  return str("dim=", d.dims.empty() ? "None" : tuple(d.dims), d.keepdim ? ", keepdim=True" : "");
}

inline double count(Numbers1 v) { return static_cast<double>(v.size()); }
/// Computes one number from each group.
using Fold = std::function<double(Numbers1)>;
inline std::function<std::vector<Array>(Arrays)> folding(const Dims& d, Fold fold) {
  return [d, fold = std::move(fold)](Arrays a) {
    return std::vector<Array>{reference::reduce(a[0], d.dims, d.keepdim, fold)};
  };
}

/// Adds a case with one input whose groups are folded.
inline OpCase& folded(Cases& list, const char* op, const Dims& d, const std::string& variant,
                      std::function<Tensor(T)> call, Fold fold, std::string torch,
                      Kind kind = Kind::value) {
  OpCase& c = push(list, op, variant, std::move(torch), {{d.shape, kind}}, kFloats);
  c.call = function_of(std::move(call));
  c.expected = folding(d, std::move(fold));
  return c;
}

/// Adds three bad dims, dtypes and tensors.
inline void refuse_folds(Cases& list, const char* op, const std::function<void(T, const Shape&)>& f,
                         bool floating_alone = true) {
  const auto over = [f](const Shape& dims) { f(on_device::zeros({2, 3}), dims); };
  BadInputs bad(list, op);
  bad.lists("dims", {Shape{2}}, kIndex, ".*got 2", over)
      .lists("dims", {Shape{0, -3}}, kIndex, ".*got -3", over)
      .lists("dims", {Shape{1, -1}}, kShape, "each dim once", over)
      .tensor("x", [f](T x) { f(x, {}); });
  if (floating_alone)
    bad.types([f](T x) { f(x, {}); }, {2, 3}, {DType::bool_, DType::int64, DType::uint8});
  else
    bad.is(kIndex, ".*got 1", [f] { f(on_device::zeros({}), {1}); })
        .is(kShape, "each dim once", [f] { f(on_device::zeros({2}), {0, 0}); });
}

}  // namespace braid::test

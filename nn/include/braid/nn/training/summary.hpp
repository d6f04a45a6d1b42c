#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include <braid/nn/walks.hpp>

namespace braid::training {

/// The layers of a model with their parameters: `print(training::summary(model))` prints a table.
struct Summary {
  struct Layer {
    std::string path;  ///< empty: the model itself
    /// `Linear(in_features=5, out_features=2, bias=true)`
    std::string type;
    /// own parameters and buffers with their shapes: `weight [2, 5], bias [2]`
    std::string shapes;
    /// counts of its own numbers, without those of layers inside it; a tied parameter counts where
    /// it appears first
    std::int64_t parameters = 0, trained = 0, buffers = 0;
    std::int64_t bytes = 0;
    /// with an example input: the shapes of its last outputs, `[8, 2]`, and the multiply-adds of
    /// its calls. 0 calls: the model did not call it
    std::string output;
    std::int64_t multiply_adds = 0, calls = 0;
  };
  /// every module that contains no other module or that has tensors of its own, in field order
  std::vector<Layer> layers;
  std::int64_t parameters = 0, trained = 0, buffers = 0, bytes = 0;
  /// of the whole call, functions outside of layers included; 0 without an example input
  std::int64_t multiply_adds = 0;
  bool called = false;  ///< with an example input
  friend std::ostream& operator<<(std::ostream& out, const Summary& summary);
};

namespace detail {
[[nodiscard]] Summary summary_of(const tree::Flat& flat);
/// Adds what the call of the model shows.
void add_call(Summary& summary, const tree::Flat& flat, const std::function<void()>& call);
}  // namespace detail

/// Returns the summary of a model. With inputs, the model is called once with them, in evaluation
/// mode and without gradients, to see the shapes of the outputs and to count multiply-adds: those
/// of matrix products, convolutions and attention, as other counters do. Afterwards the model is as
/// before. Calls on other threads (DataParallel's replicas but the first) add to the total alone.
///
/// Throws    what the call throws
///
///     print(training::summary(model));
///     print(training::summary(model, randn({1, 3, 32, 32})));
template <class M, class... X> [[nodiscard]] Summary summary(const M& model, const X&... inputs) {
  check_tree<M>();
  const tree::Flat flat = tree::flatten(model);
  Summary summary = detail::summary_of(flat);
  if constexpr (sizeof...(X) > 0) detail::add_call(summary, flat, [&] { (void)model(inputs...); });
  return summary;
}

}  // namespace braid::training

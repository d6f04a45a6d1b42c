#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/collate.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/nn/walks.hpp>

namespace braid::training {

/// The options of accuracy.
struct AccuracyOptions {
  std::int64_t batch = 256;  ///< items in one call of the model
};

namespace detail {

/// RAII guard: sets every module to evaluation mode, and restores the flags in its destructor.
class EvalMode {
 public:
  explicit EvalMode(const tree::Flat& flat) {
    for (const tree::Node& node : flat.nodes) {
      if (!node.type->training) continue;
      bool* flag = node.type->training(node.object);
      flags_.emplace_back(flag, std::exchange(*flag, false));
    }
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;
  ~EvalMode() {
    for (const auto& [flag, was] : flags_) *flag = was;
  }

 private:
  std::vector<std::pair<bool*, bool>> flags_;
};

/// Returns the items with these indices as one batch.
template <class D>
[[nodiscard]] auto batch_of(const D& dataset, std::span<const std::int64_t> indices) {
  if constexpr (requires { dataset.get_batch(indices); }) {
    return dataset.get_batch(indices);
  } else {
    std::vector<std::remove_cvref_t<decltype(dataset.get(std::int64_t{}))>> items;
    items.reserve(indices.size());
    for (const std::int64_t i : indices) items.push_back(dataset.get(i));
    return collate(items);
  }
}

/// The two tensors of a batch: the model's input and the expected label.
struct InputAndLabel {
  Tensor input, label;
};
[[nodiscard]] InputAndLabel input_and_label(const tree::Flat& batch);
/// Returns the number of rows of scores [n, classes] whose largest score is at the label.
[[nodiscard]] std::int64_t count_right(const Tensor& scores, const Tensor& label);

}  // namespace detail

/// Returns the fraction of a dataset's items that a model classifies correctly. An item is a tree
/// of two tensors: the input, then the label (a class, int64). For a batch of n inputs the model
/// returns scores [n, classes]. The inputs are moved to the device of the model's first parameter.
/// During the call the model is in evaluation mode; afterwards the previous mode is restored.
/// Nothing is recorded.
///
/// Throws    ArgumentError for an empty dataset, batch < 1, or items that are not two tensors;
///           ShapeError or DTypeError if scores or labels do not fit
///
///     print("accuracy ", training::accuracy(model, dataset));
template <class M, class D>
[[nodiscard]] double accuracy(M& model, const D& dataset, const AccuracyOptions& options = {}) {
  const auto size = static_cast<std::int64_t>(dataset.size());
  if (size < 1)
    throw ArgumentError(str("accuracy: expected a dataset with at least one item, got ", size));
  if (options.batch < 1)
    throw ArgumentError(str("accuracy: expected batch >= 1, got ", options.batch));
  const NoGrad guard;
  const detail::EvalMode mode(tree::flatten(model));
  const std::vector<Tensor> weights = parameters(model);
  const Device device = weights.empty() ? Device() : weights.front().device();
  std::vector<std::int64_t> indices;
  std::int64_t right = 0;
  for (std::int64_t first = 0; first < size; first += options.batch) {
    indices.clear();
    for (std::int64_t i = first; i < size && i - first < options.batch; ++i) indices.push_back(i);
    const auto batch = detail::batch_of(dataset, indices);
    const detail::InputAndLabel both = detail::input_and_label(tree::flatten(batch));
    right += detail::count_right(std::as_const(model)(both.input.to(device)), both.label);
  }
  return static_cast<double>(right) / static_cast<double>(size);
}

}  // namespace braid::training

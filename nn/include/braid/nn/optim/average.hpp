#pragma once
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include <braid/core/state_dict.hpp>
#include <braid/core/tensor.hpp>
#include <braid/nn/parameter.hpp>
#include <braid/nn/walks.hpp>

namespace braid::optim {

struct AverageOptions {
  double decay = 0.999;
  /// decay min(decay, (1 + n) / (10 + n)) at update n, so that early parameters are forgotten soon
  bool warm_up = false;
  bool equal = false;  ///< the mean of all updates instead (stochastic weight averaging)
};

/// A running average of a model's parameters, which often does better than the last ones: average =
/// decay average + (1 - decay) p; the first update takes p itself. It keeps the handles of the
/// parameters, and averages 16-bit ones in float32. Its state is a tree: state_dict(average),
/// load_state_dict(average, dict).
///
///     optim::Average average(model);
///     … optimizer.step(); average.update();
///     { optim::Averaged guard(average); eval … }     // the model has the averaged parameters here
///
/// Throws    ArgumentError for options out of range, no parameters or one that is undefined;
///           DTypeError
/// Source    Polyak & Juditsky 1992; Izmailov et al. 2018, arXiv:1803.05407 (equal)
class Average {
 public:
  template <class M>
  explicit Average(const M& model, const AverageOptions& options = {})
      : Average(parameters(model), options) {}
  explicit Average(std::vector<Tensor> parameters, const AverageOptions& options = {});
  Average(const Average&) = delete;
  Average& operator=(const Average&) = delete;

  /// Takes the parameters as they are now into the average. All is checked and allocated before
  /// anything is written. Throws ArgumentError while swapped in.
  void update();
  /// Gives the model the averaged parameters; they can be trained no further until swap_out. Throws
  /// ArgumentError before the first update and when it is in already.
  void swap_in();
  /// Gives the model its own parameters back. Throws ArgumentError unless swapped in.
  void swap_out();
  [[nodiscard]] bool swapped_in() const noexcept { return !own_.empty(); }
  [[nodiscard]] std::int64_t updates() const;
  /// One a parameter; the starting parameters before the first update.
  [[nodiscard]] const std::vector<nn::Buffer>& averages() const noexcept { return average_; }

  auto braid_fields() { return std::tie(average_, updates_); }
  auto braid_fields() const { return std::tie(average_, updates_); }
  static constexpr std::string_view braid_names() { return "average, updates"; }
  void braid_owner() const {}

 private:
  std::vector<Tensor> parameters_;
  AverageOptions options_;
  std::vector<nn::Buffer> average_;
  nn::Buffer updates_;       // int64 [1]
  std::vector<Tensor> own_;  // the model's numbers while the average is in it
};

/// Swaps the average in while it lives.
class Averaged {
 public:
  explicit Averaged(Average& average) : average_(average) { average_.swap_in(); }
  ~Averaged() {
    if (average_.swapped_in()) average_.swap_out();
  }
  Averaged(const Averaged&) = delete;
  Averaged& operator=(const Averaged&) = delete;

 private:
  Average& average_;
};

}  // namespace braid::optim

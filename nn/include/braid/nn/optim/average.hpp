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

/// The options of Average.
struct AverageOptions {
  double decay = 0.999;
  /// uses the decay min(decay, (1 + n) / (10 + n)) at update n, so that early parameters fade out
  /// quickly
  bool warm_up = false;
  bool equal = false;  ///< the plain mean of all updates (stochastic weight averaging)
};

/// An exponential moving average of a model's parameters, which often generalises better than the
/// last parameters: average = decay · average + (1 - decay) · p. The first update stores p itself.
/// 16-bit parameters are averaged in float32. An Average keeps handles to the parameters. Its state
/// is a tree: state_dict(average), load_state_dict(average, dict).
///
///     optim::Average average(model);
///     optimizer.step();
///     average.update();
///     {
///       const optim::Averaged guard(average);  // the model has the averaged parameters here
///       evaluate(model);
///     }
///
/// Throws    ArgumentError if an option is out of range, if there are no parameters or if one is
///           undefined; DTypeError unless all are floating point
/// Source    Polyak & Juditsky 1992; Izmailov et al. 2018, arXiv:1803.05407 (equal)
class Average {
 public:
  template <class M>
  explicit Average(const M& model, const AverageOptions& options = {})
      : Average(parameters(model), options) {}
  explicit Average(std::vector<Tensor> parameters, const AverageOptions& options = {});
  Average(const Average&) = delete;
  Average& operator=(const Average&) = delete;

  /// Adds the current parameters to the average. Everything is checked and allocated before
  /// anything is written. Throws ArgumentError while the average is swapped in, ShapeError if a
  /// parameter has another shape than at construction.
  void update();
  /// Writes the averaged parameters into the model. Do not train it until swap_out. Throws
  /// ArgumentError before the first update and if the average is already swapped in.
  void swap_in();
  /// Restores the model's own parameters. Throws ArgumentError unless the average is swapped in.
  void swap_out();
  [[nodiscard]] bool swapped_in() const noexcept { return !own_.empty(); }
  [[nodiscard]] std::int64_t updates() const;
  /// One average for each parameter; before the first update, the parameters at construction.
  [[nodiscard]] const std::vector<nn::Buffer>& averages() const noexcept { return average_; }

  auto braid_fields() -> std::tuple<std::vector<nn::Buffer>&, nn::Buffer&>;
  auto braid_fields() const -> std::tuple<const std::vector<nn::Buffer>&, const nn::Buffer&>;
  static constexpr std::string_view braid_names() { return "average, updates"; }
  void braid_owner() const {}

 private:
  std::vector<Tensor> parameters_;
  AverageOptions options_;
  std::vector<nn::Buffer> average_;
  nn::Buffer updates_;       // int64 [1]
  std::vector<Tensor> own_;  // the model's own numbers while the average is swapped in
};

/// RAII guard: swaps the average in, and out again in its destructor.
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

#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <braid/braid.hpp>

// The nets whose batches are split. Their training is written as a user would write it with
// DataParallel.
namespace bench::split {

/// Where the optimizer runs: on the first device, which then broadcasts the weights, or on every
/// device.
enum class Update { broadcast, local };
[[nodiscard]] constexpr const char* name_of(Update update) {
  return update == Update::local ? "local" : "broadcast";
}

/// A model on a list of devices, its batch and its optimizer.
class Training {
 public:
  virtual ~Training() = default;
  /// Resets the model to the common weights and creates an optimizer without state.
  virtual void reset() = 0;
  /// Runs one training step and returns its loss.
  virtual braid::Tensor step() = 0;
  virtual void count_memory(braid::parallel::DataParallelReport::Recording& recording) const = 0;
  /// The model's own parameters, with their current values.
  [[nodiscard]] virtual const std::vector<braid::Tensor>& parameters() const = 0;
  /// Returns the losses of the first `count` steps, starting from the common weights.
  [[nodiscard]] std::vector<double> losses(int count);
};

struct Net {
  std::string name, about, rows_are;  ///< name (`mlp`), sizes, unit of a batch row
  /// the peers' rows are named <peer>_b<rows>_sgd and <peer>_b<rows>_ddp
  std::string peer;
  std::int64_t strong, weak;  ///< rows in all, rows on each device
  std::int64_t checked;       ///< number of rows in the comparison with the plain reference
  int steps;                  ///< steps timed in a turn
  bool judged;                ///< has bars for its efficiency
  std::function<std::unique_ptr<Training>(const std::vector<braid::Device>&, std::int64_t rows,
                                          Update)>
      make;
  /// losses of the reference implementation
  std::function<std::vector<double>(std::int64_t rows, int steps)> reference;
};

/// All nets, in the order in which they are measured.
[[nodiscard]] const std::vector<Net>& nets();

}  // namespace bench::split

#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <braid/braid.hpp>

// The nets whose batches are split, as a user would write their training with DataParallel.
namespace bench::split {

/// Where the optimizer's step happens.
enum class Update { broadcast, local };
[[nodiscard]] constexpr const char* name_of(Update update) {
  return update == Update::local ? "local" : "broadcast";
}

/// A model over a list of devices, its batch and its optimizer.
class Training {
 public:
  virtual ~Training() = default;
  /// The common weights, and an optimizer without state.
  virtual void reset() = 0;
  /// One training step; its loss.
  virtual braid::Tensor step() = 0;
  virtual void count_memory(braid::parallel::DataParallelReport::Recording& recording) const = 0;
  /// The model's own, as they are now.
  [[nodiscard]] virtual const std::vector<braid::Tensor>& parameters() const = 0;
  /// The losses of the first `count` steps from the common weights.
  [[nodiscard]] std::vector<double> losses(int count);
};

struct Net {
  std::string name, about, rows_are;  ///< `mlp`, its sizes, what a row of the batch is
  /// its rows are called <peer>_b<rows>_sgd and <peer>_b<rows>_ddp
  std::string peer;
  std::int64_t strong, weak;  ///< rows in all, rows a device
  std::int64_t checked;       ///< rows that the plain reference computes
  int steps;                  ///< timed in a turn
  bool judged;                ///< has bars of efficiency
  std::function<std::unique_ptr<Training>(const std::vector<braid::Device>&, std::int64_t rows,
                                          Update)>
      make;
  /// losses by another way
  std::function<std::vector<double>(std::int64_t rows, int steps)> reference;
};

/// All of them, in the order in which they are measured.
[[nodiscard]] const std::vector<Net>& nets();

}  // namespace bench::split

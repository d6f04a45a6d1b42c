#pragma once
#include <memory>
#include <string>

#include <braid/braid.hpp>

namespace bench::ddp {

namespace parallel = braid::parallel;

/// A net of `bench split` under DistributedDataParallel, with this rank's rows of the batch.
class RankRow {
 public:
  virtual ~RankRow() = default;
  /// Resets the model to the common weights and creates an optimizer without state.
  virtual void reset() = 0;
  /// One step; its loss is that of this rank's rows.
  virtual braid::Tensor step() = 0;
};

/// Makes the row mlp<hidden>_b<rows>_ddp or cnn_b<rows>_ddp; <rows> are those of one rank. Throws
/// ArgumentError for another name.
[[nodiscard]] std::unique_ptr<RankRow> make_row(const std::string& name,
                                                parallel::Process& process);

}  // namespace bench::ddp

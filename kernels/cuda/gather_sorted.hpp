#pragma once
#include <braid/core/internal/kernel_args/index.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

struct FaultSite;

/// The scatter of the kernel table, as a sort of the places that it writes: for few lines of many
/// elements.
class SortedScatter {
 public:
  explicit SortedScatter(const ScatterArgs& args);
  /// The entries to sort. Adjacent elements that all have one index are one entry.
  [[nodiscard]] std::int64_t entries() const noexcept { return lines_.n * args_.m; }
  void queue(const FaultSite& site, Stream& stream) const;

 private:
  const ScatterArgs& args_;
  Loop lines_;              // of entries: those of the scatter, without the dim of the width
  std::int64_t width_ = 1;  // elements of an entry
};

}  // namespace braid::cuda

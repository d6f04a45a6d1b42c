#pragma once
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <braid/parallel/data_parallel.hpp>

namespace braid::parallel {

/// The options of DeterministicDataParallel besides the devices.
struct DeterministicOptions {
  /// The number of parts that a batch is split into, whatever the number of devices. A batch with
  /// fewer rows is split into one part per row. At least 1.
  int virtual_replicas = 24;
  std::optional<Device> output_device = {};  ///< as in DataParallelOptions, like all of these
  int dim = 0;
  std::vector<int> dims = {};
  std::vector<int> output_dims = {};
  MergeBuffers merge_buffers = MergeBuffers::replica0;
  bool cache = true;
  std::size_t bucket_bytes = kBucketBytes;
};

namespace detail {
[[nodiscard]] State make_state(const DeviceList& devices, const DeterministicOptions& options);
}  // namespace detail

/// A DataParallel whose results have the same bits for any number of devices, including one:
///
///     parallel::DeterministicDataParallel model(Net{}, devices(), {.virtual_replicas = 24});
///
/// The batch is split into min(virtual_replicas, rows) parts, whose sizes differ by at most one
/// row. Each is computed separately, and every sum over the batch (gradients, BatchNorm's
/// statistics) is added in the fixed order of Communicator::reduce. A device computes consecutive
/// parts one at a time.
///
/// Forward   as DataParallel, with a replica for each part. `replicas(…)` returns one output for
///           each. One device runs part by part too
/// Gradient  the same bits for any number of devices, over any communicator
/// Limits    the pieces of work are smaller, which costs speed. Random tensors that the model
///           creates, and sums that it computes over its input, are those of a part
/// Throws    ArgumentError for virtual_replicas < 1 or no devices; else as DataParallel
template <class M> struct DeterministicDataParallel : DataParallel<M> {
  explicit DeterministicDataParallel(M&& m, const DeviceList& on = devices(),
                                     const DeterministicOptions& options = {})
      : DataParallel<M>(detail::make_state(on, options), std::move(m)) {}
  /// A compile error. Move the model in, or clone it first.
  template <class U, class... A>
    requires(std::is_lvalue_reference_v<U> && std::same_as<std::remove_cvref_t<U>, M>)
  explicit DeterministicDataParallel(U&&, A&&...)
      : DataParallel<M>(detail::State(), detail::no_model<M>()) {
    detail::refuse_lvalue<M>();
  }

  BRAID_FIELDS_OF(DataParallel<M>)
};
template <class M> DeterministicDataParallel(M) -> DeterministicDataParallel<M>;
template <class M> DeterministicDataParallel(M, DeviceList) -> DeterministicDataParallel<M>;
template <class M>
DeterministicDataParallel(M, DeviceList, DeterministicOptions) -> DeterministicDataParallel<M>;

}  // namespace braid::parallel

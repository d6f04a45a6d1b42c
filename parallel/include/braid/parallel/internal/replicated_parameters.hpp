#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/replicate.hpp>

namespace braid::parallel::detail {

/// The weights of a model on every device of a group. Each copy is a leaf with a separate gradient;
/// those of the first device are the model's own parameters. Equal optimizer steps keep the copies
/// equal. Parameters that other code has written since then are sent again.
class ReplicatedParameters {
 public:
  /// `bucket_bytes`: the maximum bytes of gradients that are summed and sent in one call.
  ReplicatedParameters(std::vector<Device> devices, std::size_t bucket_bytes);
  ReplicatedParameters(const ReplicatedParameters&) = delete;
  ReplicatedParameters& operator=(const ReplicatedParameters&) = delete;

  /// Makes the copies, or updates them from the model's parameters. Each parameter must be defined
  /// and appear once. Throws ArgumentError if the parameters differ from those of the first call in
  /// number, shape, dtype or device.
  void refresh(std::span<const Tensor> parameters);
  /// Updates the existing copies between a forward and the optimizer's step. Parameters that need
  /// not be sent are not counted again.
  void refresh_for_step();
  /// Called after all devices have taken the same step: marks the copies as equal to the
  /// parameters.
  void stepped();
  /// Marks the copies as inconsistent: only some of the optimizers have changed them, so their next
  /// steps would differ.
  void set_inconsistent(bool inconsistent) noexcept { inconsistent_ = inconsistent; }
  [[nodiscard]] bool inconsistent() const noexcept { return inconsistent_; }
  /// Removes the gradients of the copies, but not those of the model's own parameters.
  void zero_grad() noexcept;

  [[nodiscard]] const std::vector<Device>& devices() const noexcept { return devices_; }
  [[nodiscard]] std::size_t bucket_bytes() const noexcept { return bucket_bytes_; }
  /// [rank][parameter]
  [[nodiscard]] const std::vector<std::vector<Tensor>>& parameters() const noexcept {
    return copies_;
  }
  [[nodiscard]] ReplicateBytes last() const;

 private:
  struct Seen {
    std::uint64_t source = 0, source_version = 0;  // the model's storage
    std::vector<std::uint64_t> versions;           // of the copies
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  [[nodiscard]] Seen seen(std::size_t k) const;
  [[nodiscard]] bool fresh(std::size_t k) const;
  void make_copies(std::span<const Tensor> parameters);
  void send_changed(std::span<const Tensor> parameters, bool count_cached);

  struct Lock;  // a std::mutex, whose header would be expensive in every compilation
  std::shared_ptr<Lock> lock_;
  std::vector<Device> devices_;
  std::size_t bucket_bytes_;
  std::vector<std::vector<Tensor>> copies_;
  std::vector<Seen> seen_;  // of each parameter, when all copies were last equal
  ReplicateBytes last_;
  bool inconsistent_ = false;
};

/// Returns the parameters of a tree, each once, in the order of its leaves.
[[nodiscard]] std::vector<Tensor> distinct_parameters(const tree::Flat& flat);

}  // namespace braid::parallel::detail

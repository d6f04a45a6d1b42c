#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/device.hpp>
#include <braid/parallel/process.hpp>

// Whether the ranks use NCCL between their GPUs: they exchange what each has, and decide alike.
namespace braid::parallel::process {

/// What the ranks know of each other before they decide. Texts end with a 0.
struct NcclFacts {
  std::array<char, 64> host{};    // the machine's boot id, else its name
  std::array<char, 32> gpu{};     // its PCI address; empty: the rank's device is none
  std::array<char, 16> device{};  // cuda:0
  std::array<char, 256> error{};  // why this rank has no NCCL, or (failed) no device
  std::int32_t version = 0;       // 22809
  std::uint8_t engine = 0;        // the one that was asked for
  std::uint8_t failed = 0;        // 1: the rank cannot start
  std::uint8_t emulated = 0;
  std::uint8_t shares = 0;  // 1: NCCL may have several ranks on a GPU
};

/// The facts of this rank. Opens NCCL if it may be used. Does not throw.
[[nodiscard]] NcclFacts nccl_facts(Device device, Engine engine) noexcept;
/// The facts of a rank that cannot start.
[[nodiscard]] NcclFacts failed_facts(const std::string& why) noexcept;

struct NcclAgreement {
  bool nccl = false;    // GPU tensors go over NCCL
  std::string error;    // not empty: no rank can start
  std::string warning;  // not empty: why GPU tensors go through the host
};
/// Decides; the same on all ranks. `automatic` takes NCCL if each rank has a real GPU of its own,
/// and all have one version of NCCL.
[[nodiscard]] NcclAgreement agree_on_nccl(std::span<const NcclFacts> ranks);

}  // namespace braid::parallel::process

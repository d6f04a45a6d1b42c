#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <braid/braid.hpp>

// The ways in which a tensor can be copied, and how long a copy takes.
namespace bench::transfer {

/// The endpoints of the copies: the host (cpu:0) and one or two devices.
struct Ends {
  braid::Device host, first, second;
  /// whether there is a second device
  bool two = false;
  /// Whether a call may return before the copy is done.
  [[nodiscard]] bool queued() const { return first.type() != braid::DeviceType::cpu; }
};

/// The memory for copies of one size; `bytes` is a multiple of 4. The constructor throws
/// OutOfMemoryError.
struct Buffers {
  Buffers(const Ends& ends, std::size_t bytes);
  /// float32; host holds numbers that are all different up to 2^24 of them
  braid::Tensor host, host_target, first, second;
  braid::Tensor pinned, pinned_target;  ///< with CUDA devices
  std::size_t bytes;
};

enum class Call { to, copy_, driver };

/// One way to copy: its names in the tables, and what it does.
struct Way {
  std::string direction;  ///< H2D, D2H, D2D (to another device), local (within one)
  std::string memory;     ///< host memory: pageable or pinned; `device` if none is involved
  /// blocking: each copy is waited for; async: many copies are queued, then waited for
  std::string mode;
  Call call;
  braid::Tensor source, target;  ///< copy_ and driver write `target`; `to` creates a new tensor
  braid::Device destination;

  [[nodiscard]] std::string call_text() const;
  [[nodiscard]] std::string text() const;
  /// Copies once, and returns the tensor that has the numbers or will have them after wait().
  braid::Tensor move() const;
  /// Waits until all copies are done.
  void wait() const;
};

/// Returns all ways for one size, always in the same order.
[[nodiscard]] std::vector<Way> ways(const Ends& ends, const Buffers& buffers);

/// The combinations that are not measured, with the reason.
struct Absent {
  std::string direction, memory, mode, reason;
};
[[nodiscard]] std::vector<Absent> absent_ways(const Ends& ends);

/// Copies numbers that the destination does not hold yet, and compares every byte. Returns an empty
/// text, or a description of the error.
[[nodiscard]] std::string disagreement(const Way& way, const Buffers& buffers);

/// The time of a copy in us, and of its call alone, until it returns to the host.
struct Timed {
  double us = 0, call_us = 0;
};
[[nodiscard]] Timed time_way(const Way& way);
/// Returns the time in us of std::memcpy between the two host buffers.
[[nodiscard]] double time_memcpy(const Buffers& buffers);

}  // namespace bench::transfer

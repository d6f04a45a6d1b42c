#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <braid/braid.hpp>

// The ways in which a tensor moves, and the time of one.
namespace bench::transfer {

/// Between whom: the host (cpu:0) and one or two devices.
struct Ends {
  braid::Device host, first, second;
  /// is there a second device?
  bool two = false;
  /// a call may return before the copy is done
  [[nodiscard]] bool queued() const { return first.type() != braid::DeviceType::cpu; }
};

/// The memory that copies of one size need; `bytes` is a multiple of 4. Throws OutOfMemoryError.
struct Buffers {
  Buffers(const Ends& ends, std::size_t bytes);
  /// float32; host holds numbers, all of them different up to 2^24
  braid::Tensor host, host_target, first, second;
  braid::Tensor pinned, pinned_target;  ///< with CUDA devices
  std::size_t bytes;
};

enum class Call { to, copy_, driver };

/// One way to move: the names it has in the tables, and what it does.
struct Way {
  std::string direction;  ///< H2D, D2H, D2D (to another device), local (within one)
  std::string memory;     ///< of the host: pageable or pinned; `device` where the host has no part
  /// blocking: until the numbers are there; async: many are queued, then waited for
  std::string mode;
  Call call;
  braid::Tensor source, target;  ///< copy_ and driver write target; to makes a new tensor
  braid::Device destination;

  [[nodiscard]] std::string call_text() const;
  [[nodiscard]] std::string text() const;
  /// Moves once, and returns the tensor that has the numbers, or will have.
  braid::Tensor move() const;
  /// Until all that was moved is there.
  void wait() const;
};

/// All ways of one size, in an order that is the same for every size.
[[nodiscard]] std::vector<Way> ways(const Ends& ends, const Buffers& buffers);

/// The combinations that are not there, with the reason.
struct Absent {
  std::string direction, memory, mode, reason;
};
[[nodiscard]] std::vector<Absent> absent_ways(const Ends& ends);

/// Moves numbers that the destination does not have yet and compares every byte that arrives.
/// Empty, or what is wrong.
[[nodiscard]] std::string disagreement(const Way& way, const Buffers& buffers);

/// us of a move, and of its call alone: until the host is free.
struct Timed {
  double us = 0, call_us = 0;
};
[[nodiscard]] Timed time_way(const Way& way);
/// us of std::memcpy of the host's buffer onto its other one.
[[nodiscard]] double time_memcpy(const Buffers& buffers);

}  // namespace bench::transfer

#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <braid/parallel/internal/flight_record.hpp>

#include "process/call.hpp"

namespace braid::parallel::process {

/// The last 1,024 calls of this process's communicators, for the search after a failure.
/// flight_record_file.cpp turns it into the form that PyTorch's fr_trace reads.
class FlightRecord {
 public:
  static constexpr std::size_t kMost = 1024;

  /// Adds a group of ranks of the world; returns its number.
  int add_group(std::string name, std::vector<int> ranks, double timeout);
  /// Adds a call that has been queued; returns its number, for the following two.
  std::uint64_t add(int group, const std::string& engine, const Call& call);
  void started(std::uint64_t number) noexcept;
  void completed(std::uint64_t number) noexcept;
  /// A copy of what is recorded, for the rank of the world.
  [[nodiscard]] detail::FlightRecord snapshot(int rank, std::string reason) const;
  /// Writes it to a file of this name and the rank, once. Errors are ignored: the failure that is
  /// reported is more important.
  void write(const std::string& prefix, int rank, const std::string& reason) noexcept;

 private:
  struct Group {
    detail::FlightGroup group;
    std::int64_t timeout_ms;
    std::map<std::tuple<bool, int, int>, std::int64_t> messages;  // sent?, peer, tag
  };
  [[nodiscard]] detail::FlightEntry* find(std::uint64_t number) noexcept;

  mutable std::mutex mutex_;
  std::deque<detail::FlightEntry> entries_;
  std::vector<Group> groups_;
  std::int64_t next_ = 0;
  bool written_ = false;
};

}  // namespace braid::parallel::process

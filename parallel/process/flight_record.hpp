#pragma once
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "process/call.hpp"

namespace braid::parallel::process {

/// The last 1,024 calls of this process's communicators, for the search after a failure. It is
/// written in the form that PyTorch's fr_trace reads: a pickle for each rank.
class FlightRecord {
 public:
  static constexpr std::size_t kMost = 1024;

  /// Adds a group of ranks of the world; returns its number.
  int add_group(std::string name, std::vector<int> ranks, double timeout);
  /// Adds a call that has been queued; returns its number, for the following two.
  std::uint64_t add(int group, const std::string& engine, const Call& call);
  void started(std::uint64_t number) noexcept;
  void completed(std::uint64_t number) noexcept;
  [[nodiscard]] std::string pickle() const;
  /// Writes it to a file of this name and the rank, once. Errors are ignored: the failure that is
  /// reported is more important.
  void write(const std::string& prefix, int rank) noexcept;

 private:
  struct Entry {
    std::uint64_t number;
    int group;
    std::string op;  // `gloo:all_reduce`
    std::uint64_t sequence;
    bool message;  // a send or receive
    Shape in, out;
    bool has_in, has_out;
    DType dtype;
    std::int64_t created, started, completed;  // ns since 1970; 0: not yet
  };
  struct Group {
    std::string name, desc;
    std::vector<int> ranks;
    double timeout;
    std::uint64_t messages;
  };
  [[nodiscard]] Entry* find(std::uint64_t number) noexcept;

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  std::vector<Group> groups_;
  std::uint64_t next_ = 0;
  bool written_ = false;
};

}  // namespace braid::parallel::process

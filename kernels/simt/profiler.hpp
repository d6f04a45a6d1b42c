#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simt/symbols.hpp"

namespace braid::simt {

/// The cost of the accesses of one source line. A warp access is one execution of one load or store
/// by the lanes of a warp.
struct ProfileLine {
  std::string file;
  int line = 0;
  bool shared = false;
  std::uint64_t accesses = 0;  ///< warp accesses
  /// shared: wavefronts (passes over the 32 banks of 4 bytes); global: sectors of 32 bytes
  std::uint64_t cost = 0;
  std::uint64_t ideal = 0;  ///< the minimum for the same lanes
  /// Wavefronts per shared access, or sectors per global access.
  [[nodiscard]] double each() const {
    return accesses == 0 ? 0 : static_cast<double>(cost) / static_cast<double>(accesses);
  }
  [[nodiscard]] double ideal_each() const {
    return accesses == 0 ? 0 : static_cast<double>(ideal) / static_cast<double>(accesses);
  }
};

/// Counts, during its lifetime, the accesses of all kernels that run under the checker. Only one
/// Profile may exist at a time.
///   Profile profile;  launch_now(…);  CHECK(profile.at("transpose.cu", 12, true).each() == 1);
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  /// Sorted by file and line. Shared and global accesses of a line are separate entries.
  [[nodiscard]] std::vector<ProfileLine> lines() const;
  /// Returns the accesses of a line. `accesses` is 0 if there were none.
  [[nodiscard]] ProfileLine at(std::string_view file, int line, bool shared) const;
  /// Returns a readable table. Lines that cost more than 1.5 times their ideal are marked.
  [[nodiscard]] std::string table() const;
};

/// The counters behind Profile. The k-th executions of an instruction by the lanes of a warp count
/// as one warp access.
class Profiler {
 public:
  /// Returns the profiler of the Profile that is alive, or nullptr.
  static Profiler* current() noexcept;
  void access(Site site, unsigned thread, std::uintptr_t address, std::size_t bytes, bool shared);
  /// Called at the end of a block, when its accesses are complete.
  void flush();

 private:
  friend class Profile;
  struct Key {
    Site site;
    std::uint32_t warp, turn;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const noexcept {
      return static_cast<std::size_t>((k.site * 0x9e3779b97f4a7c15u ^ k.warp) *
                                          0xbf58476d1ce4e5b9u ^
                                      static_cast<std::uint64_t>(k.turn) * 0x94d049bb133111ebu);
    }
  };
  struct WarpAccess {
    std::uintptr_t address[32];
    std::uint32_t lanes = 0;
    std::uint8_t bytes = 0;
    bool shared = false;
  };
  struct Counter {
    std::uint64_t accesses = 0, cost = 0, ideal = 0;
  };
  std::unordered_map<Key, WarpAccess, Hash> pending_;
  std::unordered_map<Key, std::uint32_t, Hash> turns_;  // key: site, thread, 0
  std::unordered_map<Site, Counter> shared_, global_;
};

}  // namespace braid::simt

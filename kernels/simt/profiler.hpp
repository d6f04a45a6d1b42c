#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simt/symbols.hpp"

namespace braid::simt {

/// What the accesses of one source line cost. A warp access is one execution of one load or store
/// by the lanes of a warp.
struct ProfileLine {
  std::string file;
  int line = 0;
  bool shared = false;
  std::uint64_t accesses = 0;  ///< warp accesses
  /// shared: wavefronts (passes over the 32 banks of 4 bytes); global: sectors of 32 bytes
  std::uint64_t cost = 0;
  std::uint64_t ideal = 0;  ///< the least the same lanes could do with
  /// Wavefronts of a shared access, sectors of a global one.
  [[nodiscard]] double each() const {
    return accesses == 0 ? 0 : static_cast<double>(cost) / static_cast<double>(accesses);
  }
  [[nodiscard]] double ideal_each() const {
    return accesses == 0 ? 0 : static_cast<double>(ideal) / static_cast<double>(accesses);
  }
};

/// Counts while it lives: all kernels that run under the checker. One at a time.
///   Profile profile;  launch_now(…);  CHECK(profile.at("transpose.cu", 12, true).each() == 1);
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  /// Sorted by file and line; shared and global accesses of a line apart.
  [[nodiscard]] std::vector<ProfileLine> lines() const;
  /// The accesses of a line; with accesses == 0 if there were none.
  [[nodiscard]] ProfileLine at(std::string_view file, int line, bool shared) const;
  /// A table for people; lines that cost more than half as much again as they need not are marked.
  [[nodiscard]] std::string table() const;
};

/// The counters behind Profile: the k-th execution of an instruction by each lane of a warp is one
/// warp access.
class Profiler {
 public:
  /// The one of the living Profile, or nullptr.
  static Profiler* current() noexcept;
  void access(Site site, unsigned thread, std::uintptr_t address, std::size_t bytes, bool shared);
  /// The block is over: its accesses are complete.
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

#pragma once
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace braid::simt {

/// The access of an operation to some bytes of a word.
struct OpAccess {
  std::uint32_t op = 0;
  std::uint8_t bytes = 0;  // mask of 4
  enum Kind : std::uint8_t { read, write, atomic } kind = read;
  bool operator==(const OpAccess&) const = default;
  auto operator<=>(const OpAccess&) const = default;
};

/// Sets of accesses that are recorded for a word besides the last write and the last read: those of
/// operations that are not ordered with them. Equal sets are stored once under one number, so a
/// word needs four bytes, however many streams read it.
class OpSets {
  struct Step {
    std::uint32_t set;
    OpAccess access;
    bool operator==(const Step&) const = default;
  };
  struct HashStep {
    std::size_t operator()(const Step& s) const noexcept {
      return ((std::uint64_t{s.set} << 32 | s.access.op) * 0x9e3779b97f4a7c15u) ^
             static_cast<std::size_t>(s.access.bytes * 4 + s.access.kind) << 7;
    }
  };

 public:
  using Set = std::vector<OpAccess>;
  /// Returns the number of a set; 0 is the empty set. Drops the oldest access of a set that has
  /// more than a few dozen.
  [[nodiscard]] std::uint32_t number(Set set);
  [[nodiscard]] const Set& operator[](std::uint32_t n) const { return *sets_[n]; }
  /// Returns set n with one more access, without those for which `gone` holds. The result is cached
  /// until new_operation().
  template <class Gone>
  [[nodiscard]] std::uint32_t with(std::uint32_t n, const OpAccess& access, const Gone& gone) {
    std::uint32_t& known = steps_[Step{n, access}];
    if (known == 0) {
      Set set{access};
      for (const OpAccess& a : *sets_[n])
        if (!gone(a)) set.push_back(a);
      known = number(std::move(set));
    }
    return known;
  }
  /// Returns set n without the bytes of `mask` in the accesses for which `gone` holds.
  template <class Gone>
  [[nodiscard]] std::uint32_t without(std::uint32_t n, unsigned mask, const Gone& gone) {
    Set left;
    for (OpAccess a : *sets_[n]) {
      if (gone(a)) a.bytes = static_cast<std::uint8_t>(a.bytes & ~mask);
      if (a.bytes != 0) left.push_back(a);
    }
    return left.size() == sets_[n]->size() && left == *sets_[n] ? n : number(std::move(left));
  }
  /// Clears the cache of with(), because `gone` may now hold for other accesses.
  void new_operation() { steps_.clear(); }
  [[nodiscard]] std::size_t count() const noexcept { return sets_.size(); }
  /// Removes all sets. Call it when nothing refers to them.
  void clear();
  OpSets() { clear(); }

 private:
  std::map<Set, std::uint32_t> numbers_;
  std::vector<const Set*> sets_;
  std::unordered_map<Step, std::uint32_t, HashStep> steps_;
};

}  // namespace braid::simt

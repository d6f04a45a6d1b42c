#pragma once
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace braid::simt {

/// What an operation did to some bytes of a word.
struct OpAccess {
  std::uint32_t op = 0;
  std::uint8_t bytes = 0;  // mask of 4
  enum Kind : std::uint8_t { read, write, atomic } kind = read;
  bool operator==(const OpAccess&) const = default;
  auto operator<=>(const OpAccess&) const = default;
};

/// Sets of accesses that a word remembers besides the last write and the last read: of operations
/// that are not ordered with those. Equal sets are stored once and have one number, so that a word
/// pays four bytes however many streams read it.
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
  /// The number of a set; 0 is the empty one. Forgets the oldest access where there are more than a
  /// few dozen.
  [[nodiscard]] std::uint32_t number(Set set);
  [[nodiscard]] const Set& operator[](std::uint32_t n) const { return *sets_[n]; }
  /// Set n with one more access, without those for which `gone` holds. Fast where it was asked
  /// before; see new_operation.
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
  /// Set n without accesses for which `gone` holds of the bytes in `mask`.
  template <class Gone>
  [[nodiscard]] std::uint32_t without(std::uint32_t n, unsigned mask, const Gone& gone) {
    Set left;
    for (OpAccess a : *sets_[n]) {
      if (gone(a)) a.bytes = static_cast<std::uint8_t>(a.bytes & ~mask);
      if (a.bytes != 0) left.push_back(a);
    }
    return left.size() == sets_[n]->size() && left == *sets_[n] ? n : number(std::move(left));
  }
  /// `gone` may hold of others from now on.
  void new_operation() { steps_.clear(); }
  [[nodiscard]] std::size_t count() const noexcept { return sets_.size(); }
  /// Forgets all sets, for when nothing refers to them.
  void clear();
  OpSets() { clear(); }

 private:
  std::map<Set, std::uint32_t> numbers_;
  std::vector<const Set*> sets_;
  std::unordered_map<Step, std::uint32_t, HashStep> steps_;
};

}  // namespace braid::simt

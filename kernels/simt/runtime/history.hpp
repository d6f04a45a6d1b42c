#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simt/runtime/control.hpp"
#include "simt/runtime/operation.hpp"

namespace braid::simt::detail {

/// allocate and free are calls of a sub-allocator or cudaMallocAsync. release frees the whole
/// allocation, whatever blocks it contains.
enum class Access : std::uint8_t { read, write, allocate, free, release };

/// Two operations that conflict.
struct Conflict {
  ReportKind kind;
  OpPtr earlier;     ///< the one that was recorded first
  std::string text;  ///< `was freed by …`
};

/// Records which operations last accessed which bytes of one allocation, and which bytes a
/// sub-allocator holds. Accesses are recorded in execution order, which is one of the orders that
/// the clocks allow.
class History {
 public:
  /// Records the access and returns the first conflict with an earlier one.
  std::optional<Conflict> touch(const OpPtr& op, std::uintptr_t begin, std::uintptr_t end,
                                Access access);

 private:
  struct Segment {
    std::uintptr_t end;
    OpPtr writer, allocated, freed;  ///< freed: set from a free to the next allocation
    std::vector<OpPtr> readers;
  };
  using Segments = std::map<std::uintptr_t, Segment>;
  Segments::iterator split(std::uintptr_t at);
  void cover(std::uintptr_t begin, std::uintptr_t end);
  static std::optional<Conflict> check(const Segment& segment, const Op& op, Access access);
  Segments segments_;
};

}  // namespace braid::simt::detail

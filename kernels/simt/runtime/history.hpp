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

/// allocate and free are a sub-allocator's, or cudaMallocAsync's; release is the end of the whole
/// allocation, whatever blocks it has.
enum class Access : std::uint8_t { read, write, allocate, free, release };

/// Two operations that must not be as they are.
struct Conflict {
  ReportKind kind;
  OpPtr earlier;     ///< the one that was there first
  std::string text;  ///< `was freed by …`
};

/// Who last touched which bytes of one allocation, and which of them a sub-allocator holds.
/// Accesses come in the order of execution, which is one of the orders that the clocks allow.
class History {
 public:
  /// Notes the access and returns the first conflict with an earlier one.
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

#include <braid/data/dataset.hpp>

#include <braid/core/error.hpp>

namespace braid::data::detail {

void index_out_of_range(const char* what, std::int64_t index, std::int64_t size) {
  throw IndexError(str(what, ": expected an index in [0, ", size, "), got ", index));
}

void check_split(std::int64_t n) {
  if (n < 0) throw ArgumentError(str("split: expected n >= 0, got ", n));
}

void check_indices(const char* what, std::span<const std::int64_t> indices, std::int64_t size) {
  for (const std::int64_t index : indices)
    if (index < 0 || index >= size) index_out_of_range(what, index, size);
}

}  // namespace braid::data::detail

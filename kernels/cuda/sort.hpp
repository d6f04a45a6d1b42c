#pragma once
#include <braid/core/internal/kernel_args/sort.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

/// The sort of the kernel table. Rows that are longer than a tile are sorted in chunks of whole
/// rows: at least one, and at most `entries` elements, each of which takes 32 bytes of scratch.
void sort_in_chunks(const SortArgs& args, std::int64_t entries, Stream& stream);

}  // namespace braid::cuda

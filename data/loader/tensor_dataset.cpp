#include <braid/data/tensor_dataset.hpp>

#include <algorithm>
#include <cstring>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

namespace braid::data::detail {
namespace {

constexpr std::size_t kLine = 64;  // bytes of a cache line
// bytes of the next rows that are prefetched while a row is copied
constexpr std::size_t kAhead = 2 * 4096;
constexpr std::size_t kAheadRows = 8;

/// Copies rows of `bytes` bytes each. Rows at random positions are not in the cache, and the
/// hardware prefetcher does not predict them. So the first cache lines of the next rows are
/// prefetched here; the hardware predicts the rest of a row.
void gather(const char* from, std::size_t bytes, std::span<const std::int64_t> indices, char* to) {
  const std::size_t rows_ahead = bytes == 0 ? 0 : std::min(kAheadRows, kAhead / bytes + 1);
  const std::size_t lines = std::min<std::size_t>(bytes / kLine + 1, 8);
  for (std::size_t i = 0; i < indices.size(); ++i, to += bytes) {
    if (i + rows_ahead < indices.size()) {
      const char* next = from + static_cast<std::size_t>(indices[i + rows_ahead]) * bytes;
      for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(next + line * kLine);
    }
    std::memcpy(to, from + static_cast<std::size_t>(indices[i]) * bytes, bytes);
  }
}

}  // namespace

std::int64_t row_count(const tree::Flat& flat) {
  std::int64_t rows = -1;
  for (const tree::Leaf& leaf : flat.leaves) {
    const Tensor& t = *leaf.tensor;
    const std::string what =
        str("TensorDataset: expected ",
            flat.path(leaf).empty() ? std::string("the tensor") : str("'", flat.path(leaf), "'"));
    if (!t.defined() || t.dim() == 0)
      throw ShapeError(
          str(what, " to have rows, got ", t.defined() ? "a 0-dim tensor" : "an undefined one"));
    if (!device_context(t.device()).host_memory)
      throw DeviceError(str(what, " in host memory, got ", t.device()));
    if (rows >= 0 && t.size(0) != rows)
      throw ShapeError(str(what, " to have ", rows, " rows as the first tensor, got ", t.size(0)));
    rows = t.size(0);
  }
  if (rows < 0) throw ArgumentError("TensorDataset: expected at least one tensor, got none");
  return rows;
}

void gather_rows(const tree::Flat& rows, std::span<const std::int64_t> indices, std::int64_t size) {
  check_indices("TensorDataset", indices, size);
  const NoGrad guard;
  for (const tree::Leaf& leaf : rows.leaves) {
    const Tensor all = leaf.tensor->contiguous();  // a copy only if it is not contiguous
    Shape shape = all.shape();
    shape[0] = static_cast<std::int64_t>(indices.size());
    Tensor batch = make_tensor(shape, all.dtype(), all.device());
    const std::size_t bytes =
        size == 0 ? 0 : static_cast<std::size_t>(all.numel() / size) * size_of(all.dtype());
    if (batch.numel() > 0)
      gather(static_cast<const char*>(all.impl()->data()), bytes, indices,
             static_cast<char*>(batch.impl()->data()));
    *leaf.tensor = std::move(batch);
  }
}

void take_row(const tree::Flat& row, std::int64_t index, std::int64_t size) {
  check_index("TensorDataset", index, size);
  const NoGrad guard;
  for (const tree::Leaf& leaf : row.leaves) *leaf.tensor = leaf.tensor->select(0, index);
}

}  // namespace braid::data::detail

#include <algorithm>
#include <cstring>

#include <braid/core/autograd.hpp>
#include <braid/core/backend.hpp>
#include <braid/core/collate.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/join.hpp>

namespace braid::detail {

namespace {

std::string what(const std::string& at, const std::string& path) {
  const std::string full = at.empty() || path.empty() ? at + path : at + '.' + path;
  return full.empty() ? std::string("collate: ") : "collate: '" + full + "': ";
}

/// Throws ArgumentError for items without any defined tensor, as when `get` has returned nothing.
[[noreturn]] void nothing_defined(const std::string& at) {
  throw ArgumentError(what(at, {}) +
                      "expected items with a defined tensor, got an item 0 that has none");
}

/// Stacks the same leaf of all items. Throws if one differs from the first in shape, dtype or
/// device.
template <class Of>
Tensor stacked(std::size_t n, const Of& of, const std::string& at, const std::string& path) {
  const Tensor& first = of(0);
  bool recorded = false;
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& x = of(i);
    if (x.shape() != first.shape())
      throw ShapeError(str(what(at, path), "expected shape ", first.shape(), " as in item 0, got ",
                           x.shape(), " in item ", i));
    if (x.dtype() != first.dtype())
      throw DTypeError(str(what(at, path), "expected ", first.dtype(), " as in item 0, got ",
                           x.dtype(), " in item ", i));
    if (x.device() != first.device())
      throw DeviceError(str(what(at, path), "expected ", first.device(), " as in item 0, got ",
                            x.device(), " in item ", i));
    recorded = recorded || x.requires_grad();
  }
  if (recorded && grad_enabled()) {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < n; ++i) all.push_back(of(i));
    return stack(all);
  }
  Shape shape = first.shape();
  shape.insert(0, static_cast<std::int64_t>(n));
  const Tensor batch = make_tensor(shape, first.dtype(), first.device());
  const std::size_t bytes = static_cast<std::size_t>(first.numel()) * size_of(first.dtype());
  if (bytes == 0) return batch;
  const NoGrad guard;
  const bool host = device_context(first.device()).host_memory;
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& x = of(i);
    if (host && x.is_contiguous())
      std::memcpy(static_cast<char*>(batch.impl()->data()) + i * bytes, x.impl()->data(), bytes);
    else batch.select(0, static_cast<std::int64_t>(i)).copy_(x);
  }
  return batch;
}

}  // namespace

void collate_leaves(const tree::Flat& batch, std::span<const tree::Flat> items,
                    const std::string& at) {
  const tree::Flat& first = items.front();
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (const std::string difference = first.difference(items[i]); !difference.empty()) {
      throw ShapeError(str(what(at, {}), "expected items of one structure, got one in item ", i,
                           " where ", difference));
    }
  }
  if (!first.leaves.empty() &&
      std::none_of(first.leaves.begin(), first.leaves.end(),
                   [](const tree::Leaf& leaf) { return leaf.tensor->defined(); }))
    nothing_defined(at);
  for (std::size_t leaf = 0; leaf < first.leaves.size(); ++leaf) {
    if (!first.leaves[leaf].tensor->defined()) continue;
    *batch.leaves[leaf].tensor = stacked(
        items.size(), [&](std::size_t i) -> const Tensor& { return *items[i].leaves[leaf].tensor; },
        at, first.path(first.leaves[leaf]));
  }
}

Tensor collate_tensors(std::span<const Tensor> items) {
  const bool defined = items.front().defined();
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (items[i].defined() != defined)
      throw ShapeError(str("collate: expected items of one structure, got one in item ", i,
                           " where the root is ", defined ? "undefined" : "defined"));
  }
  if (!defined) nothing_defined({});
  return stacked(items.size(), [&](std::size_t i) -> const Tensor& { return items[i]; }, {}, {});
}

Tensor collate_numbers(const std::vector<std::int64_t>& numbers) { return tensor(numbers); }
Tensor collate_numbers(const std::vector<float>& numbers) { return tensor(numbers); }
Tensor collate_numbers(const std::vector<std::uint8_t>& numbers) {
  return tensor(numbers, {.dtype = DType::bool_});
}

void nothing_to_collate() { throw ArgumentError("collate: expected at least one item, got 0"); }

}  // namespace braid::detail

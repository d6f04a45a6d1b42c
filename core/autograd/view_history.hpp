#pragma once
#include <cstdint>

#include <braid/core/autograd.hpp>

// In-place changes through views (docs/decisions/0025-in-place-through-views.md). A view stores the
// tensor whose memory it shares, its base, which itself is no view. A recorded change of a view is
// recorded as a change of its base: the base's new graph is a node "copy_slices". All views of a
// base, also the changed one, get their graph from the base's when it is next needed.
namespace braid::detail {

/// Makes `view` a view of `parent`, or of parent's base. Called by make_view.
void be_view_of(TensorImpl& view, TensorImpl& parent) noexcept;
/// True if changes of this view are changes of its base: it has one, and they share memory
/// (replace_body can give a base other memory).
[[nodiscard]] inline bool follows_base(const TensorImpl& t) noexcept {
  return t.base && t.base->storage == t.storage;
}
/// Makes y, a view on which `make_view` has returned, a copy or one of several results of an op.
void be_no_view(const Tensor& y) noexcept;
void be_one_of_many(const Tensor& y) noexcept;

/// Records that the values of `view` are now output `output_nr` of the node: its base becomes
/// copy_slices(base, output). An empty node means values without a graph.
void change_base(const Tensor& view, const Ref<autograd::Node>& node, std::uint32_t output_nr);

}  // namespace braid::detail

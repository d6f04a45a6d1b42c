#include <braid/parallel/gather.hpp>

#include <algorithm>
#include <atomic>

#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>

#include "primitives/pieces.hpp"

namespace braid::parallel::detail {
namespace {

std::string quoted(const std::string& path) {
  return path.empty() ? "the output" : str("'", path, "'");
}

[[noreturn]] void differs(const tree::Flat& flat, const tree::Node& node, std::size_t replica,
                          std::string_view what) {
  throw ArgumentError(
      str("gather: expected the same structure from every replica, got another one from replica ",
          replica, " at ", quoted(flat.path(node)), what));
}

/// Returns the leaves of `other` that match the leaves of the first tree, in that order. Leaves
/// that the first tree lacks are skipped below its empty optionals and are an error elsewhere.
std::vector<const Tensor*> aligned(const tree::Flat& first, const tree::Flat& other,
                                   std::size_t replica) {
  constexpr std::int32_t kLeftOut = -2;
  std::vector<std::int32_t> same(other.nodes.size(), kLeftOut);  // other's node → the first tree's
  const auto parent_of = [&](std::int32_t parent) {
    return parent < 0 ? parent : same[static_cast<std::size_t>(parent)];
  };
  const auto below_none = [&](std::int32_t parent) {
    return parent >= 0 && (parent_of(parent) == kLeftOut ||
                           first.nodes[static_cast<std::size_t>(parent_of(parent))].size == 0);
  };
  std::size_t at = 0;
  for (std::size_t j = 0; j < other.nodes.size(); ++j) {
    const tree::Node& b = other.nodes[j];
    if (below_none(b.parent)) continue;
    if (at == first.nodes.size()) differs(other, b, replica, ": not in replica 0's");
    const tree::Node& a = first.nodes[at];
    if (a.parent != parent_of(b.parent) || a.name != b.name || a.type->form != b.type->form)
      differs(other, b, replica, ": not in replica 0's");
    same[j] = static_cast<std::int32_t>(at++);
    if (a.size == b.size) continue;
    if (a.type->form == tree::Form::map)
      throw ArgumentError("All dicts must have the same number of keys");
    if (a.type->form == tree::Form::optional) {
      if (a.size == 0) continue;  // the first replica decides
      differs(other, b, replica, ": empty there");
    }
    differs(other, b, replica, str(": expected ", a.size, " elements, got ", b.size));
  }
  if (at != first.nodes.size()) differs(first, first.nodes[at], replica, ": missing there");
  std::vector<const Tensor*> leaves;
  for (const tree::Leaf& leaf : other.leaves) {
    if (below_none(leaf.parent)) continue;
    const tree::Leaf* a =
        leaves.size() < first.leaves.size() ? &first.leaves[leaves.size()] : nullptr;
    if (!a || a->parent != parent_of(leaf.parent) || a->name != leaf.name)
      throw ArgumentError(str("gather: expected the same structure from every replica, got ",
                              quoted(other.path(leaf)), " from replica ", replica, " alone"));
    leaves.push_back(leaf.tensor);
  }
  if (leaves.size() != first.leaves.size())
    throw ArgumentError(str("gather: expected the same structure from every replica, got no ",
                            quoted(first.path(first.leaves[leaves.size()])), " from replica ",
                            replica));
  return leaves;
}

void warn_scalars() {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true))
    warn(
        "Was asked to gather along dimension 0, but all input tensors were scalars; will instead "
        "unsqueeze and return a vector.");
}

/// One leaf of all replicas; parts[0] is defined. All plans are checked before any result is made.
struct Plan {
  std::vector<Tensor> parts;
  Pieces pieces;
  Shape shape;
};

Plan plan(std::vector<Tensor> parts, const std::string& path, int dim, bool separate) {
  const Tensor& first = parts.front();
  Plan plan;
  plan.pieces.separate = separate;
  plan.pieces.scalars = first.dim() == 0;
  plan.pieces.dim = plan.pieces.scalars ? 0 : wrap_dim("gather", dim, first.dim());
  std::int64_t total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    const auto where = [&] { return str(" (", quoted(path), " of replica ", i, ")"); };
    if (!part.defined())
      throw ArgumentError(str("gather: expected a defined tensor, got an undefined one", where()));
    Shape expected = first.shape();
    if (part.dim() == first.dim() && !plan.pieces.scalars)
      expected[plan.pieces.dim] = part.shape()[plan.pieces.dim];
    if (part.shape() != expected)
      throw ShapeError(str("Gather got an input of invalid size: got ", part.shape(),
                           ", but expected ", expected, where()));
    if (part.dtype() != first.dtype())
      throw DTypeError(str("gather: expected ", first.dtype(), " from every replica, got ",
                           part.dtype(), where()));
    plan.pieces.sizes.push_back(plan.pieces.scalars ? 1 : part.shape()[plan.pieces.dim]);
    plan.pieces.devices.push_back(part.device());
    total += plan.pieces.sizes.back();
  }
  plan.shape = plan.pieces.scalars ? Shape{total} : first.shape();
  plan.shape[plan.pieces.dim] = total;
  plan.parts = std::move(parts);
  return plan;
}

}  // namespace

std::vector<Tensor> gather_leaves(std::span<const tree::Flat> outputs, Device output_device,
                                  int dim, std::span<const int> dims, bool separate) {
  if (outputs.empty()) throw ArgumentError("Expected at least one tensor to gather from");
  (void)device_context(output_device);  // throws for a device that does not exist
  const tree::Flat& first = outputs.front();
  std::vector<std::vector<const Tensor*>> leaves;
  for (std::size_t i = 0; i < outputs.size(); ++i) leaves.push_back(aligned(first, outputs[i], i));

  if (!first.leaves.empty() &&
      std::none_of(first.leaves.begin(), first.leaves.end(),
                   [](const tree::Leaf& leaf) { return leaf.tensor->defined(); }))
    throw ArgumentError(
        "gather: expected an output with a defined tensor, got none from replica 0");
  std::vector<std::optional<Plan>> plans(first.leaves.size());
  bool scalars = false;
  for (std::size_t k = 0; k < plans.size(); ++k) {
    if (!first.leaves[k].tensor->defined()) continue;
    std::vector<Tensor> parts;
    for (const auto& replica : leaves) parts.push_back(*replica[k]);
    plans[k] = plan(std::move(parts), first.path(first.leaves[k]),
                    dim_of(first, first.leaves[k], dim, dims), separate);
    scalars = scalars || plans[k]->pieces.scalars;
  }
  if (scalars) warn_scalars();
  std::vector<Tensor> results(plans.size());
  for (std::size_t k = 0; k < plans.size(); ++k) {
    if (!plans[k]) continue;
    const Plan& p = *plans[k];
    if (p.parts.size() == 1 && !p.pieces.scalars) results[k] = p.parts.front().to(output_device);
    else results[k] = join(p.parts, p.pieces, p.shape, p.parts.front().dtype(), output_device);
  }
  return results;
}

}  // namespace braid::parallel::detail

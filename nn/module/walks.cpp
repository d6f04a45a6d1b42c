#include <braid/nn/walks.hpp>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/body.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/nn/internal/marks.hpp>

namespace braid::detail {

namespace {

/// Calls f(leaf) once for each defined tensor of this kind, at its first leaf.
template <class F> void each_once(const tree::Flat& flat, tree::Kind kind, const F& f) {
  const std::vector<std::size_t> first = flat.first_of();
  // not `first[i] == i`: the first leaf may be a plain Tensor, which is skipped
  std::vector<bool> seen(flat.leaves.size(), false);
  for (std::size_t i = 0; i < flat.leaves.size(); ++i) {
    const tree::Leaf& leaf = flat.leaves[i];
    if (leaf.kind != kind || !leaf.tensor->defined() || seen[first[i]]) continue;
    seen[first[i]] = true;
    f(leaf);
  }
}

/// For each leaf that is the first of its tensor: whether one of the tensor's handles is a
/// parameter or buffer.
std::vector<bool> owned(const tree::Flat& flat, const std::vector<std::size_t>& first) {
  std::vector<bool> is(flat.leaves.size(), false);
  for (std::size_t i = 0; i < flat.leaves.size(); ++i) {
    if (flat.leaves[i].kind != tree::Kind::tensor) is[first[i]] = true;
  }
  return is;
}

}  // namespace

std::vector<Tensor> tensors_of(const tree::Flat& flat, tree::Kind kind) {
  std::vector<Tensor> tensors;
  each_once(flat, kind, [&](const tree::Leaf& leaf) { tensors.push_back(*leaf.tensor); });
  return tensors;
}

NamedTensors named_tensors_of(const tree::Flat& flat, tree::Kind kind) {
  NamedTensors named;
  each_once(flat, kind,
            [&](const tree::Leaf& leaf) { named.emplace_back(flat.path(leaf), *leaf.tensor); });
  return named;
}

std::int64_t count_parameters(const tree::Flat& flat) {
  std::int64_t count = 0;
  each_once(flat, tree::Kind::parameter,
            [&](const tree::Leaf& leaf) { count += leaf.tensor->numel(); });
  return count;
}

void move_leaves(const tree::Flat& flat, std::optional<Device> device, std::optional<DType> dtype) {
  if (dtype && !is_floating(*dtype))
    throw DTypeError(str("to: expected a floating point dtype, got ", *dtype));
  // throws if the device does not exist, even if the tree has no tensors
  if (device) (void)device_context(*device);
  struct Move {
    tree::Leaf leaf;
    Tensor tensor, grad;
    bool in_place;
  };
  const std::vector<std::size_t> first = flat.first_of();
  const std::vector<bool> is_owned = owned(flat, first);
  std::vector<Move> moves;
  std::vector<std::ptrdiff_t> move_of(flat.leaves.size(), -1);
  for (std::size_t i = 0; i < flat.leaves.size(); ++i) {
    const Tensor& t = *flat.leaves[i].tensor;
    if (!t.defined()) continue;
    if (first[i] != i) {
      const std::ptrdiff_t at = move_of[first[i]];
      if (at >= 0 && !moves[static_cast<std::size_t>(at)].in_place)
        moves.push_back({flat.leaves[i], moves[static_cast<std::size_t>(at)].tensor, {}, false});
      continue;
    }
    const auto moved = [&](const Tensor& x) {
      return x.to(device.value_or(x.device()),
                  dtype && is_floating(x.dtype()) ? *dtype : x.dtype());
    };
    Move move{flat.leaves[i], {}, {}, is_owned[i] && t.is_leaf()};
    if (move.in_place) {
      const NoGrad guard;
      move.tensor = moved(t);
      if (const Tensor grad = t.grad(); grad.defined()) move.grad = moved(grad);
    } else {
      move.tensor = moved(t);
    }
    if (move.tensor.id() == t.id()) continue;
    move_of[i] = static_cast<std::ptrdiff_t>(moves.size());
    moves.push_back(std::move(move));
  }
  for (Move& move : moves) {  // nothing throws from here on
    if (!move.in_place) {
      *move.leaf.tensor = std::move(move.tensor);
    } else {
      replace_body(*move.leaf.tensor, move.tensor);
      if (move.grad.defined()) move.leaf.tensor->impl()->grad = move.grad.impl();
    }
  }
}

void clone_leaves(const tree::Flat& flat) {
  const std::vector<std::size_t> first = flat.first_of();
  const std::vector<bool> is_owned = owned(flat, first);
  for (std::size_t i = 0; i < flat.leaves.size(); ++i) {
    Tensor& t = *flat.leaves[i].tensor;
    if (!t.defined()) continue;
    if (first[i] != i) {
      t = *flat.leaves[first[i]].tensor;
      continue;
    }
    if (!is_owned[i]) {
      t = t.clone();
      continue;
    }
    Tensor copy;
    {
      const NoGrad guard;
      copy = t.clone();
    }
    if (t.requires_grad()) copy.requires_grad_();
    nn::detail::set_mark(copy, nn::detail::Mark::tied,
                         nn::detail::has_mark(t, nn::detail::Mark::tied));
    t = std::move(copy);
  }
}

void set_mode(bool* training, bool on) {
  const bool before = std::exchange(*training, on);
  StepCapture::mode_set(training, before, on);
}

void set_training(const tree::Flat& flat, bool on) {
  for (const tree::Node& node : flat.nodes) {
    if (node.type->training) set_mode(node.type->training(node.object), on);
  }
}

void clear_gradients(const tree::Flat& flat) {
  bool replica = false;
  each_once(flat, tree::Kind::parameter, [&](const tree::Leaf& leaf) {
    replica = replica || nn::detail::has_mark(*leaf.tensor, nn::detail::Mark::replica);
  });
  if (replica) {
    warn(
        "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The "
        "parameters are copied (in a differentiable manner) from the "
        "original module. This means they are not leaf nodes in autograd and so don't accumulate "
        "gradients.");
    return;
  }
  each_once(flat, tree::Kind::parameter, [](const tree::Leaf& leaf) { leaf.tensor->set_grad({}); });
}

void require_gradients(const tree::Flat& flat, bool on) {
  each_once(flat, tree::Kind::parameter, [&](const tree::Leaf& leaf) {
    if (!leaf.tensor->is_leaf())
      throw AutogradError(str("requires_grad_: expected parameters that are leaves, got '",
                              flat.path(leaf), "', which an op made"));
    if (on && !is_floating(leaf.tensor->dtype())) {
      throw DTypeError(str("requires_grad_: expected floating point parameters, got '",
                           flat.path(leaf), "' of ", leaf.tensor->dtype()));
    }
  });
  each_once(flat, tree::Kind::parameter,
            [&](const tree::Leaf& leaf) { leaf.tensor->requires_grad_(on); });
}

}  // namespace braid::detail

namespace braid {

EvalGuard::EvalGuard(const tree::Flat& flat) {
  for (const tree::Node& node : flat.nodes)
    if (node.type->training) {
      bool* const mode = node.type->training(node.object);
      modes_.emplace_back(mode, *mode);
    }
  for (const auto& [mode, before] : modes_) detail::set_mode(mode, false);
}

}  // namespace braid

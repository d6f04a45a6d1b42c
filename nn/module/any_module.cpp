#include <braid/nn/sequential.hpp>

#include "layers/call.hpp"

namespace braid::nn {

namespace detail {

void wrong_module(std::string_view expected, std::string_view got) {
  throw ArgumentError(
      str("AnyModule: expected a ", expected, ", got ", got.empty() ? "none" : str("a ", got)));
}
void wrong_call(std::string_view module, std::size_t tensors) {
  throw ArgumentError(str("AnyModule: expected a module that takes ", tensors,
                          tensors == 1 ? " tensor" : " tensors", " and returns one, got a ", module,
                          "; use get<", module, ">()"));
}
void no_module() { throw ArgumentError("AnyModule: expected a module, got none"); }

}  // namespace detail

ForwardHookHandle AnyModule::register_forward_hook(ForwardHookFunction hook) {
  if (!held_) detail::no_module();
  Module* const module = held_->hooked();
  if (!module)
    throw ArgumentError(
        str("register_forward_hook: expected a layer of the library or a struct "
            "that derives from nn::Layer, got a ",
            type_name()));
  return detail::add_hook(*module, std::move(hook));
}

void Sequential<>::push_back(AnyModule layer) {
  push_back(std::to_string(layers.size()), std::move(layer));
}
void Sequential<>::push_back(std::string name, AnyModule layer) {
  layers.insert(std::move(name), std::move(layer));
}

AnyModule& Sequential<>::operator[](std::size_t i) {
  if (i >= size())
    throw IndexError(str("Sequential: expected an index below ", size(), ", got ", i));
  return (layers.begin() + static_cast<std::ptrdiff_t>(i))->second;
}

namespace {

/// Computes a layer and the one after it in one pass. Returns false if it cannot.
template <class Activation> bool fuse(const AnyModule& first, const AnyModule& second, Tensor& x) {
  const auto* const linear = first.get_if<Linear>();
  const auto* const activation = second.get_if<Activation>();
  if (linear == nullptr || activation == nullptr || !detail::may_fuse(*linear, *activation))
    return false;
  x = detail::call_fused(*linear, *activation, x);
  return true;
}

}  // namespace

Tensor Sequential<>::forward(const Tensor& x) const {
  Tensor y = x;
  for (auto layer = layers.begin(); layer != layers.end(); ++layer) {
    const auto next = layer + 1;
    if (next != layers.end() &&
        (fuse<ReLU>(layer->second, next->second, y) || fuse<GELU>(layer->second, next->second, y)))
      layer = next;
    else y = layer->second(y);
  }
  return y;
}
BRAID_LAYER_CALL(Tensor, Sequential<>, (const Tensor& x), (x))

}  // namespace braid::nn

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

AnyModule& Sequential<>::operator[](std::size_t i) {
  if (i >= size())
    throw IndexError(str("Sequential: expected an index below ", size(), ", got ", i));
  return (layers.begin() + static_cast<std::ptrdiff_t>(i))->second;
}

Tensor Sequential<>::forward(const Tensor& x) const {
  Tensor y = x;
  for (const auto& [name, layer] : layers) y = layer(y);
  return y;
}
BRAID_LAYER_CALL(Tensor, Sequential<>, (const Tensor& x), (x))

}  // namespace braid::nn

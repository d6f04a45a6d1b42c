#pragma once
#include <braid/nn/layer.hpp>

// Defines the call of a layer for the forward that BRAID_FORWARD declares:
// BRAID_LAYER_CALL(Tensor, Linear, (const Tensor& x), (x)).
#define BRAID_LAYER_CALL(Result, Class, parameters, arguments)                      \
  Result Class::operator() parameters const {                                       \
    return braid::nn::detail::call(                                                 \
        *this, [&] { return forward arguments; }, BRAID_LAYER_CALL_LIST arguments); \
  }
#define BRAID_LAYER_CALL_LIST(...) __VA_ARGS__

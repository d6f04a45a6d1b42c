#pragma once
#include <braid/core/ops/softmax.hpp>

// Losses under the name that layers have; their docs are in core/ops/softmax.hpp.
namespace braid::nn {

using braid::cross_entropy;
using braid::mse_loss;
using braid::Reduction;

}  // namespace braid::nn

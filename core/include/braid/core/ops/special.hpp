#pragma once
#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/composed.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

// torch::special's names of functions that Braid has.
namespace braid::special {

using braid::erf;
using braid::erfc;
using braid::exp2;
using braid::expm1;
using braid::log1p;
using braid::log_softmax;
using braid::logit;
using braid::logsumexp;
using braid::round;
using braid::softmax;
using braid::xlogy;
/// sigmoid.
[[nodiscard]] Tensor expit(const Tensor& x);

}  // namespace braid::special

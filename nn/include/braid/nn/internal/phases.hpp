#pragma once
#include <braid/core/trace.hpp>

namespace braid::nn::detail {

  inline constexpr trace::Phase kOptimizerPhase("optimizer"); }  // namespace braid::nn::detail

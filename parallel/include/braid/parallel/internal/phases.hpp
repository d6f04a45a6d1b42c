#pragma once
#include <braid/nn/internal/phases.hpp>

// The phases of a data-parallel step.
namespace braid::parallel::phase {

using trace::Phase;
inline constexpr Phase step = Phase::step, compute = Phase::compute;
inline constexpr Phase optimizer = nn::detail::kOptimizerPhase;
inline constexpr Phase scatter("scatter"), replicate("replicate"), gather("gather"),
    reduce("reduce");

}  // namespace braid::parallel::phase

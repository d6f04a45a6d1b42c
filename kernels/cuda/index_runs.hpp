#pragma once
#include <braid/core/internal/kernel_args/index.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

struct FaultSite;

/// Adds rows to a table of a floating-point dtype: sorts their indices, then sums each run of equal
/// ones, in float32 or float64, and rounds once. Balanced for any indices.
void scatter_add_runs(const ScatterAddRowsArgs& args, const FaultSite& site, Stream& stream);

}  // namespace braid::cuda

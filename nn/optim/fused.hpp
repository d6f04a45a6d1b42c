#pragma once
// Shared by the optimizers whose update is a kernel.
#include <span>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/optim.hpp>

namespace braid::optim {

/// Optimizer::Traits::has_kernel of an optimizer with this kernel: has_kernel<&KernelTable::sgd>.
template <auto kernel> bool has_kernel(const KernelTable& kernels) noexcept {
  return kernels.*kernel != nullptr;
}

/// Begins the arguments of a kernel.
template <class Args> Args step_args(DType dtype, std::span<const OptimItem> items) {
  Args args{};
  args.dtype = dtype;
  args.items = items.data();
  args.count = static_cast<std::int64_t>(items.size());
  return args;
}

}  // namespace braid::optim

#pragma once
// Shared by the optimizers whose update is a kernel.
#include <span>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/optim.hpp>

namespace braid::optim {

namespace detail {

struct Update {
  std::span<const OptimItem> items;
  const void* grad_factor = nullptr;  // as in kernel_args/optim.hpp
};
struct Updates {
  std::vector<OptimItem> all, of_batch;
};

}  // namespace detail

/// Optimizer::Traits::has_kernel of an optimizer with this kernel: has_kernel<&KernelTable::sgd>.
template <auto kernel> bool has_kernel(Device device) {
  return device_context(device).kernels->*kernel != nullptr;
}

/// Begins the arguments of a kernel.
template <class Args> Args step_args(DType dtype, const detail::Update& what) {
  Args args{};
  args.dtype = dtype;
  args.items = what.items.data();
  args.count = static_cast<std::int64_t>(what.items.size());
  args.grad_factor = what.grad_factor;
  return args;
}

}  // namespace braid::optim

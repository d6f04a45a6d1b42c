#pragma once
// Shared by the optimizers whose update is a kernel.
#include <functional>
#include <memory>
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
  /// Expires with the optimizer.
  std::shared_ptr<const char> alive = std::make_shared<char>();
};

}  // namespace detail

/// Optimizer::Traits::has_kernel of an optimizer with this kernel: has_kernel<&KernelTable::sgd>.
template <auto kernel> bool has_kernel(Device device) {
  return device_context(device).kernels->*kernel != nullptr;
}

/// Queues the kernel of a batch (Optimizer::Batch). set(args, key) sets its arguments, except the
/// parameters. A replay of a recorded step calls it again, with the key that `key_now`
/// (Optimizer::key_at_replay) returns, so it must not refer to local variables.
template <class Batch, class Args, class KeyNow, class F>
void launch_update(const char* name, const Batch& batch, const detail::Update& what,
                   void (*KernelTable::*kernel)(const Args&, Stream&), const KeyNow& key_now,
                   const F& set) {
  Args args{};
  args.dtype = batch.dtype;
  args.items = what.items.data();
  args.count = static_cast<std::int64_t>(what.items.size());
  args.grad_factor = what.grad_factor;
  set(args, batch.key);
  std::function<void(Args&)> again;
  if (key_now) {
    again = [key_now, set](Args& later) { set(later, key_now()); };
    args.again = &again;
  }
  launch(name, batch.device, kernel, args);
}

}  // namespace braid::optim

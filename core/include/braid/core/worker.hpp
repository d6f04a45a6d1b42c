#pragma once
#include <cstddef>
#include <span>

#include <braid/core/device.hpp>

namespace braid {

/// Runs job(i) for each device of the list at the same time, job(i) on devices[i]'s worker thread
/// (one a device, kept for the process), job(0) on the calling thread. All are started before any
/// is waited for; returns when all are done. Jobs must not throw (catch inside). They start with
/// the caller's ThreadState. In a forked child the workers are new threads. Called from inside a
/// worker, further threads are made for the call, so that it never waits for itself.
void run_on_devices(std::span<const Device> devices, void (*job)(void* context, std::size_t index),
                    void* context);

template <class F> void run_on_devices(std::span<const Device> devices, F&& f) {
  run_on_devices(
      devices,
      [](void* context, std::size_t index) {
        (*static_cast<std::remove_reference_t<F>*>(context))(index);
      },
      &f);
}

}  // namespace braid

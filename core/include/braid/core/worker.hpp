#pragma once
#include <cstddef>
#include <span>

#include <braid/core/device.hpp>

namespace braid {

/// Runs job(i) for all devices of the list in parallel: job(0) on the calling thread, every other
/// job(i) on the worker thread of devices[i] (one thread per device, kept for the process). Starts
/// all jobs before it waits for any, and returns when all are done. Jobs must not throw; catch
/// inside. They start with the caller's ThreadState. A forked child gets new worker threads. If a
/// worker is busy, for example in a call from inside a worker, an additional thread runs the job,
/// so that the call never waits for itself.
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

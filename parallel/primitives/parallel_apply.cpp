#include <braid/parallel/parallel_apply.hpp>

#include <algorithm>
#include <exception>
#include <optional>

#include <braid/core/error.hpp>
#include <braid/core/internal/print_capture.hpp>
#include <braid/core/internal/worker.hpp>
#include <braid/core/trace.hpp>
#include <braid/parallel/error.hpp>
#include <braid/parallel/print_order.hpp>

#include "primitives/ordered_prints.hpp"
#include "primitives/replica_group.hpp"
#include "primitives/serial_executor.hpp"
#include "workers.hpp"

namespace braid::parallel::detail {

bool all_on(const tree::Flat& flat, Device device) {
  for (const tree::Leaf& leaf : flat.leaves)
    if (leaf.tensor->defined() && leaf.tensor->device() != device) return false;
  return true;
}

std::optional<Device> first_device(const tree::Flat& flat) {
  for (const tree::Leaf& leaf : flat.leaves)
    if (leaf.tensor->defined()) return leaf.tensor->device();
  return {};
}

std::vector<Device> apply_devices(std::size_t modules, std::size_t inputs,
                                  const std::vector<Device>& given,
                                  std::optional<Device> (*resolve)(const void*, std::size_t),
                                  const void* context) {
  if (modules != inputs)
    throw ArgumentError(str("parallel_apply: expected one input for each module, got ", modules,
                            " modules and ", inputs, " inputs"));
  if (!given.empty() && given.size() != modules)
    throw ArgumentError(str("parallel_apply: expected one device for each module, got ", modules,
                            " modules and ", given.size(), " devices"));
  std::vector<Device> devices = given;
  for (std::size_t i = devices.size(); i < modules; ++i) {
    const std::optional<Device> found = resolve(context, i);
    if (!found)
      throw DeviceError(
          str("in replica ", i,
              ", no device was provided and no tensor input was found; device cannot be resolved"));
    devices.push_back(*found);
  }
  check_devices("parallel_apply", devices);
  return devices;
}

void apply(std::span<const Device> devices, void (*job)(void*, std::size_t), void* context,
           bool virtual_replicas) {
  std::vector<std::exception_ptr> errors(devices.size());
  Rendezvous rendezvous(devices, virtual_replicas);
  std::optional<OrderedPrints> prints;
  if (devices.size() > 1 && print_order() == PrintOrder::replica) prints.emplace(devices.size());
  auto run = [&](std::size_t i) {
    std::optional<PrintCapture> capture;
    if (prints) capture.emplace(prints->text_of(i));
    try {
      const ReplicaGroupScope scope(rendezvous, i);
      const trace::Span span("forward", trace::Phase::compute, devices[i],
                             static_cast<std::int32_t>(i), trace::Span::Memory::yes);
      job(context, i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
    if (!prints) return;
    capture.reset();
    prints->end(i);
  };
  if (const std::vector<Device> workers = distinct(devices); workers.size() == devices.size()) {
    run_on_devices(devices, run);
  } else {
    run_on_devices(workers, [&](std::size_t worker) {
      std::vector<std::size_t> mine;
      for (std::size_t i = 0; i < devices.size(); ++i)
        if (devices[i] == workers[worker]) mine.push_back(i);
      SerialExecutor(std::move(mine), run).run();
    });
  }
  // A replica that failed only because another one had ended is a follow-up error. It is reported
  // only if there is no other error.
  const auto blamed = [&](std::size_t i) { return errors[i] && !rendezvous.left_alone(i); };
  bool any = false;
  for (std::size_t i = 0; i < errors.size(); ++i) any = any || blamed(i);
  std::vector<ReplicaError::Failure> failures;
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (errors[i] && (!any || blamed(i)))
      failures.push_back(
          {i, devices[i], exception_type(errors[i]), exception_message(errors[i]), errors[i]});
  if (failures.empty()) return;
  try {
    std::rethrow_exception(failures.front().error);
  } catch (...) {  // the handled exception becomes the nested one
    std::throw_with_nested(ReplicaError(std::move(failures)));
  }
}

}  // namespace braid::parallel::detail

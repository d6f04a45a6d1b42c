#pragma once
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include <braid/core/tree.hpp>
#include <braid/parallel/devices.hpp>

namespace braid::parallel {

namespace detail {

template <class T> inline constexpr bool is_tuple = false;
template <class... E> inline constexpr bool is_tuple<std::tuple<E...>> = true;

/// A tuple is the list of arguments; anything else is the only argument.
template <class M, class I> decltype(auto) call(const M& module, const I& input) {
  if constexpr (is_tuple<I>) return std::apply(module, input);
  else return module(input);
}
template <class M, class I>
using Output = std::decay_t<decltype(call(std::declval<const M&>(), std::declval<const I&>()))>;

/// True if all tensors are on the device.
[[nodiscard]] bool all_on(const tree::Flat& flat, Device device);
template <class T> [[nodiscard]] bool is_on(const T& t, Device device) {
  if constexpr (tree::IsTensor<T>) return !t.defined() || t.device() == device;
  else if constexpr (tree::detail::Holds<T>) return all_on(tree::flatten(t), device);
  else return true;
}

template <class T> [[nodiscard]] T moved_to(const T& t, Device device) {
  return tree::map(t, [device](const std::string&, const Tensor& x) { return x.to(device); });
}

/// Returns the device of the first defined tensor in the tree, if there is one.
[[nodiscard]] std::optional<Device> first_device(const tree::Flat& flat);
/// Checks the lengths, and resolves the devices if none are given: resolve(context, i) returns the
/// device of input i.
[[nodiscard]] std::vector<Device> apply_devices(
    std::size_t modules, std::size_t inputs, const std::vector<Device>& given,
    std::optional<Device> (*resolve)(const void* context, std::size_t i), const void* context);
/// Runs job(context, i) on devices[i]'s worker, all in parallel. Throws ReplicaError after all have
/// ended. `shards`: the replicas are virtual replicas of one batch. Several may be on one device,
/// which then runs one at a time.
void apply(std::span<const Device> devices, void (*job)(void* context, std::size_t i),
           void* context, bool shards);

/// Calls modules[i] with inputs[i] on on[i]. The object returned by within(i) lives on the thread
/// of replica i during the call. `move`: moves outputs on other devices to on[i].
template <class M, class I, class W>
auto apply_within(const std::vector<M>& modules, const std::vector<I>& inputs,
                  std::span<const Device> on, W within, bool move, bool shards) {
  using R = detail::Output<M, I>;
  if constexpr (std::is_void_v<R>) {
    auto job = [&](std::size_t i) {
      [[maybe_unused]] const auto scope = within(i);
      detail::call(modules[i], inputs[i]);
    };
    detail::apply(
        on, [](void* context, std::size_t i) { (*static_cast<decltype(job)*>(context))(i); }, &job,
        shards);
  } else {
    std::vector<std::optional<R>> slots(inputs.size());
    auto job = [&](std::size_t i) {
      [[maybe_unused]] const auto scope = within(i);
      slots[i].emplace(detail::call(modules[i], inputs[i]));
      if constexpr (tree::detail::Holds<R>)
        if (move && !is_on(*slots[i], on[i])) slots[i].emplace(moved_to(*slots[i], on[i]));
    };
    detail::apply(
        on, [](void* context, std::size_t i) { (*static_cast<decltype(job)*>(context))(i); }, &job,
        shards);
    std::vector<R> outputs;
    outputs.reserve(slots.size());
    for (std::optional<R>& slot : slots) outputs.push_back(std::move(*slot));
    return outputs;
  }
}

}  // namespace detail

/// Calls modules[i] with inputs[i] for all i in parallel and returns the outputs in order. Each
/// call runs on the worker thread of its device, the first one on the calling thread.
///
/// An input that is a std::tuple is the list of arguments; any other input is the only argument. If
/// the modules return void, so does parallel_apply. The workers use the caller's gradient mode.
/// With `devices`, output tensors on another device are moved to the replica's device. Without it,
/// each call uses the device of its input's first tensor.
///
/// After all calls have ended, throws ReplicaError if any of them threw: `Caught <Type> in replica
/// i on device d: …` for the lowest index, with the original exception nested. Throws ArgumentError
/// if the lengths differ, and DeviceError if a device does not exist, is listed twice, or cannot be
/// resolved.
template <class M, class I>
auto parallel_apply(const std::vector<M>& modules, const std::vector<I>& inputs,
                    const DeviceList& devices = {}) {
  const auto resolve = [](const void* context, std::size_t i) -> std::optional<Device> {
    if constexpr (tree::detail::Holds<I>)
      return detail::first_device(tree::flatten((*static_cast<const std::vector<I>*>(context))[i]));
    else return (void)context, (void)i, std::nullopt;
  };
  const std::vector<Device> on =
      detail::apply_devices(modules.size(), inputs.size(), devices.list(), resolve, &inputs);
  return detail::apply_within(
      modules, inputs, on, [](std::size_t) { return 0; }, !devices.list().empty(), false);
}

}  // namespace braid::parallel

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

/// A tuple is the list of arguments, anything else the one argument.
template <class M, class I> decltype(auto) call(const M& module, const I& input) {
  if constexpr (is_tuple<I>) return std::apply(module, input);
  else return module(input);
}
template <class M, class I>
using Output = std::decay_t<decltype(call(std::declval<const M&>(), std::declval<const I&>()))>;

/// All tensors are on the device.
[[nodiscard]] bool all_on(const tree::Flat& flat, Device device);
template <class T> [[nodiscard]] bool is_on(const T& t, Device device) {
  if constexpr (tree::IsTensor<T>) return !t.defined() || t.device() == device;
  else if constexpr (tree::detail::Holds<T>) return all_on(tree::flatten(t), device);
  else return true;
}

template <class T> [[nodiscard]] T moved_to(const T& t, Device device) {
  return tree::map(t, [device](const std::string&, const Tensor& x) { return x.to(device); });
}

/// Of the first tensor in the tree, if there is one.
[[nodiscard]] std::optional<Device> first_device(const tree::Flat& flat);
/// Checks the lengths, and finds the devices where none are given: resolve(context, i) gives that
/// of input i.
[[nodiscard]] std::vector<Device> apply_devices(
    std::size_t modules, std::size_t inputs, const std::vector<Device>& given,
    std::optional<Device> (*resolve)(const void* context, std::size_t i), const void* context);
/// job(context, i) on devices[i]'s worker, all at once; throws ReplicaError after all are done.
/// `shards`: they are shards of one batch, and several may be on one device, which then runs one at
/// a time.
void apply(std::span<const Device> devices, void (*job)(void* context, std::size_t i),
           void* context, bool shards);

/// modules[i] with inputs[i] on on[i]; what within(i) makes lives on the thread of replica i while
/// it runs. `move`: outputs that are elsewhere come there.
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

/// Calls modules[i] with inputs[i] for all i at the same time, each on the worker thread of its
/// device, the first on the calling thread, and gives the outputs in order. An input that is a
/// std::tuple is the list of arguments; any other is the one argument. Modules that return nothing
/// give nothing. The workers have the caller's gradient mode. With `devices`, what an output has
/// elsewhere is moved to its device; without them the device of an input's first tensor counts.
/// Throws ReplicaError if calls threw, after all have ended:
/// `Caught <Type> in replica i on device d: …` of the lowest index, the original nested;
/// ArgumentError if the lengths differ; DeviceError if a device does not exist, is there twice, or
/// cannot be resolved
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

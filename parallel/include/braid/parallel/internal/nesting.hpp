#pragma once
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <braid/core/check_model.hpp>
#include <braid/core/tree.hpp>

// Refuses a DataParallel inside a DataParallel, where the type of the model shows it, and a model
// that is not moved in.
namespace braid::parallel {
template <class M> struct DataParallel;
template <class M> struct DeterministicDataParallel;
template <class M> struct DistributedDataParallel;
}  // namespace braid::parallel

namespace braid::parallel::detail {

/// True if the type contains a DataParallel.
template <class T> constexpr bool holds_data_parallel();
template <class T> struct HoldsDataParallel {
  static constexpr bool elements() { return false; }
};
template <template <class...> class C, class... E> struct HoldsDataParallel<C<E...>> {
  static constexpr bool elements() {
    return (holds_data_parallel<std::remove_cvref_t<E>>() || ...);
  }
};
template <template <class, std::size_t> class Array, class E, std::size_t N>
struct HoldsDataParallel<Array<E, N>> : HoldsDataParallel<std::tuple<E>> {};
template <class T> inline constexpr bool is_data_parallel = false;
template <class M> inline constexpr bool is_data_parallel<DataParallel<M>> = true;
template <class M> inline constexpr bool is_data_parallel<DeterministicDataParallel<M>> = true;
template <class M> inline constexpr bool is_data_parallel<DistributedDataParallel<M>> = true;
template <class T> constexpr bool holds_data_parallel() {
  if constexpr (is_data_parallel<T>) return true;
  else if constexpr (tree::IsTensor<T> || tree::Erased<T> || !tree::detail::is_tree<T>())
    return false;
  else if constexpr (tree::Struct<T>)
    return HoldsDataParallel<decltype(std::declval<T&>().braid_fields())>::elements();
  else if constexpr (tree::Tuple<T>) return HoldsDataParallel<T>::elements();
  else if constexpr (tree::Map<T>) return holds_data_parallel<typename T::mapped_type>();
  else return holds_data_parallel<typename T::value_type>();
}
template <class M> constexpr void check_not_nested() {
  static_assert(
      !holds_data_parallel<M>(),
      "braid: a DataParallel inside a DataParallel: wrap the whole model, or only its parts");
}

/// Declared only. Called by constructors that are a compile error.
template <class M> M&& no_model();

}  // namespace braid::parallel::detail

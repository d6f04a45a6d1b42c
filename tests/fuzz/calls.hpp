#pragma once
// Tables of the calls that are made with random arguments: CALL(op, arguments), where `d` draws
// them. Arguments are drawn from left to right because clang evaluates them in that order.
#include <concepts>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "draw.hpp"

namespace braid::fuzz {

using List = std::vector<Tensor>;

struct Call {
  std::string_view op;
  /// Draws the arguments, makes the call, and returns all tensors of its result.
  List (*make)(Draw& d);
};

// Converts the result of a call to a list.
inline List list_of(Tensor t) { return {std::move(t)}; }
inline List list_of(List list) { return list; }
inline List list_of(bool /*answer*/) { return {}; }
inline List list_of(std::pair<Tensor, Tensor> both) { return {both.first, both.second}; }
template <class R>
  requires requires(const R& r) { r.values, r.indices; }
List list_of(const R& r) {
  return {r.values, r.indices};
}
template <class R>
  requires requires(const R& r) { r.sum, r.count; } && (!std::same_as<R, Tensor>)
List list_of(const R& r) {
  return {r.sum, r.count};
}
template <class R>
  requires requires(const R& r) { r.var, r.mean; } && (!std::same_as<R, Tensor>)
List list_of(const R& r) {
  return {r.var, r.mean};
}
template <class R>
  requires requires(const R& r) { r.output, r.h_n; }
List list_of(const R& r) {
  if constexpr (requires { r.c_n; }) return {r.output, r.h_n, r.c_n};
  else return {r.output, r.h_n};
}

#define CALL(op, ...) {#op, [](Draw& d) { return list_of(op(__VA_ARGS__)); }}
#define ONE(op) CALL(op, d.tensor())
#define TWO(op) CALL(op, d.tensor(), d.like())
#define REAL(op) CALL(op, d.tensor(), d.real())
#define OVER(op) CALL(op, d.tensor(), d.dims(), d.flag())

/// Like CALL, but the call is any expression, such as a member function.
#define MEMBER(op, ...) {#op, [](Draw& d) { return list_of(__VA_ARGS__); }}

inline std::vector<Call> joined(std::initializer_list<std::span<const Call>> parts) {
  std::vector<Call> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

[[nodiscard]] std::vector<Call> op_calls();      ///< what core/ops declares
[[nodiscard]] std::vector<Call> tensor_calls();  ///< members of Tensor, including in-place ones
[[nodiscard]] std::vector<Call> nn_calls();      ///< losses, and layers with a first batch

}  // namespace braid::fuzz

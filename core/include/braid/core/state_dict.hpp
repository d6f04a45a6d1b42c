#pragma once
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <braid/core/tensor.hpp>

namespace braid {

namespace detail {
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept;
};
/// Numbers by name. A std::string_view finds a name without a copy.
using NameIndex = std::unordered_map<std::string, std::size_t, NameHash, std::equal_to<>>;
}  // namespace detail

/// Named tensors in the order of insertion: what state_dict returns and files hold. A contiguous
/// range of pairs.
///
///     for (const auto& [name, tensor] : state_dict(model)) print(name, ' ', tensor.shape());
class StateDict {
 public:
  using value_type = std::pair<std::string, Tensor>;
  using const_iterator = std::vector<value_type>::const_iterator;

  StateDict() = default;
  /// Throws ArgumentError for a duplicate name.
  StateDict(std::initializer_list<value_type> entries);
  explicit StateDict(std::vector<value_type> entries);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] const value_type* data() const noexcept { return entries_.data(); }
  [[nodiscard]] const_iterator begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return entries_.end(); }

  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Returns null if there is none. The result points into this object.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
  /// Throws ArgumentError, with the name, if there is none.
  [[nodiscard]] const Tensor& at(std::string_view name) const;
  /// Appends the tensor, or replaces the one with this name.
  void set(std::string name, Tensor tensor);
  /// Removes a tensor; the order of the others stays. Returns true if there was one of this name.
  bool erase(std::string_view name);

 private:
  std::vector<value_type> entries_;
  detail::NameIndex index_;
};

}  // namespace braid

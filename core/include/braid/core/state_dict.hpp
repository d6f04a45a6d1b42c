#pragma once
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <braid/core/tensor.hpp>

namespace braid {

/// Tensors by name, in the order they were put in: what state_dict gives and files hold. A
/// contiguous range of pairs.
class StateDict {
 public:
  using value_type = std::pair<std::string, Tensor>;
  using const_iterator = std::vector<value_type>::const_iterator;

  StateDict() = default;
  /// Throws ArgumentError for a name given twice.
  StateDict(std::initializer_list<value_type> entries);
  explicit StateDict(std::vector<value_type> entries);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] const value_type* data() const noexcept { return entries_.data(); }
  [[nodiscard]] const_iterator begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return entries_.end(); }

  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Null if there is none. Points into this.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
  /// Throws ArgumentError, naming the key, if there is none.
  [[nodiscard]] const Tensor& at(std::string_view name) const;
  /// Puts it at the end, or in place of the one with this name.
  void set(std::string name, Tensor tensor);
  /// True if there was one. The order of the others stays.
  bool erase(std::string_view name);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const noexcept {
      return std::hash<std::string_view>()(s);
    }
  };
  std::vector<value_type> entries_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;
};

}  // namespace braid

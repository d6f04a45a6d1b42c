#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/core/error.hpp>

namespace braid::nn {

namespace detail {
[[noreturn]] void name_again(std::string_view name);
[[noreturn]] void no_such_name(std::string_view name);
}  // namespace detail

/// Values by name, in the order of insertion. It is a tree, as a map is. nn::ParameterDict is one
/// of parameters, nn::ModuleDict one of modules.
template <class T> class OrderedMap {
 public:
  using key_type = std::string;
  using mapped_type = T;
  using value_type = std::pair<std::string, T>;
  using allocator_type = std::allocator<value_type>;

  OrderedMap() noexcept = default;
  OrderedMap(std::initializer_list<value_type> items) {
    for (const value_type& item : items) insert(item.first, item.second);
  }

  /// Throws ArgumentError if the name exists already.
  void insert(std::string name, T value) {
    if (contains(name)) detail::name_again(name);
    items_.emplace_back(std::move(name), std::move(value));
  }
  /// Throws IndexError if the name does not exist.
  [[nodiscard]] T& at(std::string_view name) {
    return const_cast<T&>(std::as_const(*this).at(name));
  }
  [[nodiscard]] const T& at(std::string_view name) const {
    if (const T* const found = find(name)) return *found;
    detail::no_such_name(name);
  }
  [[nodiscard]] T& operator[](std::string_view name) { return at(name); }
  [[nodiscard]] const T& operator[](std::string_view name) const { return at(name); }
  [[nodiscard]] bool contains(std::string_view name) const noexcept {
    return find(name) != nullptr;
  }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] auto begin() noexcept { return items_.begin(); }
  [[nodiscard]] auto end() noexcept { return items_.end(); }
  [[nodiscard]] auto begin() const noexcept { return items_.begin(); }
  [[nodiscard]] auto end() const noexcept { return items_.end(); }

 private:
  [[nodiscard]] const T* find(std::string_view name) const noexcept {
    for (const value_type& item : items_)
      if (item.first == name) return &item.second;
    return nullptr;
  }
  std::vector<value_type> items_;
};

}  // namespace braid::nn

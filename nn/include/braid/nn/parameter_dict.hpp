#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/nn/parameter.hpp>

namespace braid::nn {

/// Parameters by name, in insertion order: for layers whose number of parameters is known only at
/// run time. It is a tree, as a map is. With BRAID_UNNAMED_FIELD its names appear in a layer's
/// state dict without a prefix.
class ParameterDict {
 public:
  using key_type = std::string;
  using mapped_type = Parameter;
  using value_type = std::pair<std::string, Parameter>;
  using allocator_type = std::allocator<value_type>;

  /// Throws ArgumentError if the name exists already.
  void insert(std::string name, Parameter parameter);
  /// Throws IndexError if the name does not exist.
  [[nodiscard]] Parameter& at(std::string_view name) {
    return const_cast<Parameter&>(std::as_const(*this).at(name));
  }
  [[nodiscard]] const Parameter& at(std::string_view name) const;
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
  [[nodiscard]] const Parameter* find(std::string_view name) const noexcept;
  std::vector<value_type> items_;
};

}  // namespace braid::nn

/// BRAID_FIELDS of one field, whose name is left out of the paths: `weight_ih_l0`, not
/// `weights.weight_ih_l0`.
#define BRAID_UNNAMED_FIELD(field)                                                       \
  auto braid_fields() -> decltype(::std::tie(field)) { return ::std::tie(field); }       \
  auto braid_fields() const -> decltype(::std::tie(field)) { return ::std::tie(field); } \
  static constexpr ::std::string_view braid_names() { return {}; }                       \
  void braid_owner() const {}

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree/concepts.hpp>
#include <braid/core/tree/type_name.hpp>

// A tree as flat lists. One template a type fills them (tree/walk.hpp); every algorithm is plain
// code over the lists.
namespace braid::tree {

/// One step of a path: a field or key, or an index. Text points into the tree (map keys) or into
/// static memory.
struct Name {
  std::string_view text;
  std::int64_t index = 0;
  bool is_index = false;

  constexpr Name() noexcept = default;
  constexpr Name(std::string_view t) noexcept : text(t) {}
  static constexpr Name number(std::int64_t i) noexcept {
    Name n;
    n.index = i;
    n.is_index = true;
    return n;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return !is_index && text.empty(); }
  friend constexpr bool operator==(const Name&, const Name&) noexcept = default;
};

enum class Form : std::uint8_t { structure, tuple, list, map, optional };

/// What modules above core hang on a struct type: nn specialises it for nn::Module.
template <class T> struct Hooks {
  // where the training flag is
  static constexpr bool* (*training)(void* object) = nullptr;
  // what printing puts into the brackets
  static constexpr std::string (*extra)(const void* object) = nullptr;
};

/// One a type.
struct NodeType {
  Form form;
  const char* signature;  // for short_type_name
  bool* (*training)(void* object);
  std::string (*extra)(const void* object);
};

/// A struct or container of the tree. `size` counts its children (all of them, plain ones too).
struct Node {
  const NodeType* type;
  void* object;
  Name name;
  std::int32_t parent;  // index of a node, -1 for the root
  std::int64_t size;
};

/// A tensor of the tree.
struct Leaf {
  Tensor* tensor;
  Kind kind;
  Name name;
  std::int32_t parent;
};

/// The lists, in order of the fields. Valid as long as the tree lives and its containers keep their
/// size.
class Flat {
 public:
  std::vector<Leaf> leaves;
  std::vector<Node> nodes;

  /// `fc1.weight`, `blocks.0.bias`; empty for a tree that is one tensor. A map's key is kept as it
  /// is, dots too.
  [[nodiscard]] std::string path(const Leaf& leaf) const { return path(leaf.parent, leaf.name); }
  [[nodiscard]] std::string path(const Node& node) const { return path(node.parent, node.name); }
  /// For each leaf the index of the first one that is the same tensor (itself, if it is not tied);
  /// undefined tensors are all themselves.
  [[nodiscard]] std::vector<std::size_t> first_of() const;
  /// Empty if the other tree has the same structure (names, sizes, kinds; not shapes), else
  /// `'heads.a' is missing` or the like, said of the other.
  [[nodiscard]] std::string difference(const Flat& other) const;

 private:
  [[nodiscard]] std::string path(std::int32_t parent, const Name& name) const;
};

}  // namespace braid::tree

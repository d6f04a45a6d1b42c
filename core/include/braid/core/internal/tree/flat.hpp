#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/internal/tree/concepts.hpp>
#include <braid/core/internal/tree/type_name.hpp>
#include <braid/core/tensor.hpp>

// A tree as flat lists. One template per type fills them (tree/walk.hpp); every algorithm is
// ordinary code over the lists.
namespace braid::tree {

/// One step of a path: the name of a field, a key of a map, or an index. The text points into the
/// tree (map keys) or into static memory.
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

/// Extension point for modules above core, per struct type: nn specialises it for nn::Module.
template <class T> struct Hooks {
  // false if T derives from such a base where other code cannot see it
  static constexpr bool is_public = true;
  // returns the address of the training flag
  static constexpr bool* (*training)(void* object) = nullptr;
  // returns the text that printing puts into the brackets
  static constexpr std::string (*extra)(const void* object) = nullptr;
  // returns where the path of the struct in its tree is kept
  static constexpr std::atomic<const std::string*>* (*path)(void* object) = nullptr;
};

/// What is known about a node's type; one object per type.
struct NodeType {
  Form form;
  const char* signature;  // for short_type_name
  bool* (*training)(void* object);
  std::string (*extra)(const void* object);
  std::atomic<const std::string*>* (*path)(void* object);
};

/// A struct or container of the tree. `size` is the number of its children (plain ones too).
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

class Flat;
/// Gives each struct that keeps its path, and has none yet, the path in this tree. If the root has
/// none, this is a new tree: then all get their path. `again`: all in any case.
void set_paths(const Flat& flat, bool again = false);

/// The lists, in the order of the fields. Valid as long as the tree exists and its containers keep
/// their size.
class Flat {
 public:
  std::vector<Leaf> leaves;
  std::vector<Node> nodes;

  /// `fc1.weight`, `blocks.0.bias`; empty for a tree that is one tensor. The key of a map is not
  /// changed, even if it contains dots.
  [[nodiscard]] std::string path(const Leaf& leaf) const { return path(leaf.parent, leaf.name); }
  [[nodiscard]] std::string path(const Node& node) const { return path(node.parent, node.name); }
  /// For each leaf, the index of the first leaf that is the same tensor (its own index, if it is
  /// not tied). An undefined tensor is only the same as itself.
  [[nodiscard]] std::vector<std::size_t> first_of() const;
  /// Empty if the other tree has the same structure (names, sizes, kinds, which tensors are
  /// defined; not shapes). Else it describes what is different in the other tree, as in
  /// `'heads.a' is missing`.
  [[nodiscard]] std::string difference(const Flat& other) const;

 private:
  [[nodiscard]] std::string path(std::int32_t parent, const Name& name) const;
};

}  // namespace braid::tree

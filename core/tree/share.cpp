#include <algorithm>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/core/internal/tree/listed.hpp>

namespace braid::tree {

namespace {
struct State {
  int depth = 0;
  Counts copied;
  bool checking = false;  // true while check_type makes a copy
};
thread_local State state;
}  // namespace

Sharing::Sharing() noexcept : before_(std::exchange(state.copied, Counts{})) { ++state.depth; }
Sharing::~Sharing() {
  --state.depth;
  state.copied = before_;
}
Counts Sharing::copied() const noexcept { return state.copied; }
bool Sharing::count_copy() noexcept {
  if (state.depth == 0) return false;
  ++state.copied.tensors;
  return true;
}
bool Sharing::count_module() noexcept {
  if (state.depth == 0) return false;
  ++state.copied.modules;
  return true;
}

Counts detail::listed(const Flat& flat, std::size_t first_leaf, std::size_t first_node) noexcept {
  Counts counts;
  for (std::size_t i = first_leaf; i < flat.leaves.size(); ++i)
    counts.tensors += flat.leaves[i].kind != Kind::tensor;
  for (std::size_t i = first_node; i < flat.nodes.size(); ++i)
    counts.modules += flat.nodes[i].type->training != nullptr;
  return counts;
}

void detail::check_listed(const Counts& copied, const Counts& listed, const char* signature) {
  if (copied.tensors <= listed.tensors && copied.modules <= listed.modules) return;
  throw ArgumentError(str(
      ::braid::detail::short_type_name(signature),
      ": expected every field that holds parameters or modules in its BRAID_FIELDS, got ",
      listed.tensors, " of ", std::max(copied.tensors, listed.tensors),
      " parameters and buffers and ", listed.modules, " of ",
      std::max(copied.modules, listed.modules),
      " modules (itself included): add the others; what is not listed is not trained, moved, saved "
      "or set to eval"));
}

void detail::check_type(std::atomic<bool>& checked, const void* object, void (*copy)(const void*),
                        const Counts& listed, const char* signature) {
  if (state.checking) return;  // called by the copy constructor of a type that is being checked
  struct Checking {
    Checking() noexcept { state.checking = true; }
    ~Checking() { state.checking = false; }
  };
  Counts copied;
  {
    const Checking guard;
    const Sharing scope;
    try {
      copy(object);
      copied = scope.copied();
    } catch (...) {  // the type rejects copies, or there was no memory for one
      copied = listed;
    }
  }
  check_listed(copied, listed, signature);
  checked.store(true, std::memory_order_relaxed);
}

}  // namespace braid::tree

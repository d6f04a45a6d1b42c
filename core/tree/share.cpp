#include <braid/core/error.hpp>
#include <braid/core/tree/share.hpp>

namespace braid::tree {

namespace {
struct State {
  int depth = 0;
  std::size_t copied = 0;
};
thread_local State state;
}  // namespace

Sharing::Sharing() noexcept : before_(state.copied) {
  ++state.depth;
  state.copied = 0;
}
Sharing::~Sharing() {
  --state.depth;
  state.copied = before_;
}
std::size_t Sharing::copied() const noexcept { return state.copied; }
bool Sharing::count_copy() noexcept {
  if (state.depth == 0) return false;
  ++state.copied;
  return true;
}

void detail::check_shared(const Flat& source, const char* signature, std::size_t copied) {
  std::size_t listed = 0;
  for (const Leaf& leaf : source.leaves) listed += leaf.kind != Kind::tensor;
  if (copied > listed) {
    throw ArgumentError(str("copy: expected every field that holds parameters in BRAID_FIELDS of ",
                            ::braid::detail::short_type_name(signature), ", got ", copied,
                            " parameters and buffers copied, ", listed, " listed"));
  }
}

}  // namespace braid::tree

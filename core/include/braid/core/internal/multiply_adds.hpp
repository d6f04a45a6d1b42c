#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

#include <braid/core/autograd.hpp>

// Counts the multiply-adds of matrix products, convolutions and attention, from the arguments of
// their kernels. Elementwise ops count nothing, as in other counters of this kind.
namespace braid {

struct AttentionArgs;
struct ConvArgs;
struct ConvDataArgs;
struct GemmArgs;
struct GemmPairArgs;

[[nodiscard]] std::int64_t multiply_adds_of(const GemmArgs& args) noexcept;
[[nodiscard]] std::int64_t multiply_adds_of(const GemmPairArgs& args) noexcept;
[[nodiscard]] std::int64_t multiply_adds_of(const ConvArgs& args) noexcept;
/// Of dx, which is also the forward of a transposed convolution.
[[nodiscard]] std::int64_t multiply_adds_of(const ConvDataArgs& args) noexcept;
/// Of sequences of several lengths as if all queries saw the most keys: the host does not know
/// more.
[[nodiscard]] std::int64_t multiply_adds_of(const AttentionArgs& args) noexcept;

namespace detail {

/// While it exists, the multiply-adds of ops on this thread are counted, and of workers that go on
/// with its work. It must outlive them.
class CountMultiplyAdds {
 public:
  CountMultiplyAdds() noexcept : outer_(std::exchange(thread_state().multiply_adds, &count_)) {}
  ~CountMultiplyAdds() { thread_state().multiply_adds = outer_; }
  CountMultiplyAdds(const CountMultiplyAdds&) = delete;
  CountMultiplyAdds& operator=(const CountMultiplyAdds&) = delete;
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }

 private:
  std::atomic<std::int64_t> count_{0};
  std::atomic<std::int64_t>* outer_;
};

}  // namespace detail
}  // namespace braid

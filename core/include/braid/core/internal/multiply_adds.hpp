#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

#include <braid/core/autograd.hpp>
#include <braid/core/internal/kernel_args/attention.hpp>
#include <braid/core/internal/kernel_args/conv.hpp>
#include <braid/core/internal/kernel_args/gemm.hpp>

// Counts the multiply-adds of matrix products, convolutions and attention, from the arguments of
// their kernels. Elementwise ops count nothing, as in other counters of this kind.
namespace braid {

[[nodiscard]] inline std::int64_t multiply_adds_of(const GemmArgs& a) noexcept {
  return a.batch * a.m * a.n * a.k;
}
[[nodiscard]] inline std::int64_t multiply_adds_of(const GemmPairArgs& a) noexcept {
  return multiply_adds_of(a.first) + multiply_adds_of(a.second);
}
[[nodiscard]] inline std::int64_t multiply_adds_of(const ConvShape& s) noexcept {
  return s.n * s.out * s.out_size[0] * s.out_size[1] * (s.in / s.groups) * s.kernel[0] *
         s.kernel[1];
}
[[nodiscard]] inline std::int64_t multiply_adds_of(const ConvArgs& a) noexcept {
  return multiply_adds_of(a.shape);
}
[[nodiscard]] inline std::int64_t multiply_adds_of(const ConvDataArgs& a) noexcept {
  return multiply_adds_of(a.shape);  // the forward of a transposed convolution
}
/// Of sequences of several lengths as if all queries saw the most keys: the host does not know
/// more.
[[nodiscard]] inline std::int64_t multiply_adds_of(const AttentionArgs& a) noexcept {
  const std::int64_t queries =
      a.sequences.q_starts == nullptr ? a.batch * a.queries : a.sequences.q_rows;
  return a.heads * queries * a.keys * (a.width + a.value_width);
}

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

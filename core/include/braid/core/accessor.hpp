#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include <braid/core/error.hpp>
#include <braid/core/tensor.hpp>

namespace braid {

/// Access to the elements of a tensor of N dims from the host, as in LibTorch: a[i][j]. It does not
/// check indices, and holds the memory no longer than the tensor does.
///
///     const Tensor x = arange(6, {.dtype = DType::float32}).view({2, 3});
///     auto a = x.accessor<float, 2>();
///     for (int i = 0; i < a.size(0); ++i) a[i][0] += 1;
template <class T, std::size_t N> class TensorAccessor {
 public:
  TensorAccessor(T* data, const std::int64_t* sizes, const std::int64_t* strides) noexcept
      : data_(data), sizes_(sizes), strides_(strides) {}
  [[nodiscard]] decltype(auto) operator[](std::int64_t i) const noexcept {
    T* const at = data_ + i * strides_[0];
    if constexpr (N == 1) return *at;
    else return TensorAccessor<T, N - 1>(at, sizes_ + 1, strides_ + 1);
  }
  [[nodiscard]] std::span<const std::int64_t> sizes() const noexcept { return {sizes_, N}; }
  [[nodiscard]] std::int64_t size(std::size_t dim) const noexcept { return sizes_[dim]; }
  [[nodiscard]] std::int64_t stride(std::size_t dim) const noexcept { return strides_[dim]; }
  [[nodiscard]] T* data() const noexcept { return data_; }

 private:
  T* data_;
  const std::int64_t *sizes_, *strides_;  // of the tensor
};

/// Throws ShapeError unless the tensor has N dims, and what data<T>() throws. The tensor must live
/// as long as the accessor: of a temporary it is a compile error.
template <class T, std::size_t N> TensorAccessor<T, N> Tensor::accessor() const& {
  static_assert(N > 0, "a tensor without dims has one element: item<T>() or *data<T>()");
  if (shape().rank() != static_cast<int>(N))
    throw ShapeError(str("accessor: expected a tensor of ", N, " dims, got shape ", shape()));
  return {data<T>(), shape().begin(), strides().begin()};
}

}  // namespace braid

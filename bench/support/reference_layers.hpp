#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

// The layers of the reference implementation: plain loops in double. Each backward also updates the
// layer's weights.
namespace bench::plain {

using Matrix = std::vector<double>;  // row-major

[[nodiscard]] Matrix widen(const std::vector<float>& v);

struct Layer {
  std::size_t in, out;
  // [out, in], [out]
  Matrix weight, bias;
  Matrix weight_mean = {}, weight_square = {}, bias_mean = {}, bias_square = {};  // of Adam
};
/// y[r, o] = x[r, :] · weight[o, :] + bias[o]
[[nodiscard]] Matrix forward(const Layer& layer, const Matrix& x, std::size_t rows);
/// Returns the gradient of the input and updates the layer: by step number `adam` of Adam, or, if
/// that is 0, by SGD.
[[nodiscard]] Matrix backward(Layer& layer, const Matrix& x, const Matrix& dy, std::size_t rows,
                              int adam = 0);

/// 3×3 kernels over [n, in, side, side], without padding.
struct Conv {
  std::size_t in, out, side;
  Matrix weight, bias;  // [out, in, 3, 3], [out]
};
[[nodiscard]] Matrix forward(const Conv& layer, const Matrix& x, std::size_t n);
[[nodiscard]] Matrix backward(Conv& layer, const Matrix& x, const Matrix& dy, std::size_t n);

/// Max pooling with 2×2 windows over `planes` images: the maxima and their indices. The last row
/// and column of an odd side are left out.
struct Pooled {
  Matrix y;
  std::vector<std::size_t> from;
};
[[nodiscard]] Pooled max_pool(const Matrix& x, std::size_t planes, std::size_t side);

/// Return the mean loss and overwrite `y` with the gradient.
[[nodiscard]] double squared_error(Matrix& y, const Matrix& target);
[[nodiscard]] double cross_entropy(Matrix& y, const std::vector<std::int64_t>& label);

}  // namespace bench::plain

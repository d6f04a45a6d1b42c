#pragma once
#include <concepts>
#include <optional>
#include <string_view>
#include <tuple>

#include <braid/core/ops/aliases.hpp>
#include <braid/core/ops/sort.hpp>

// Functions of PyTorch that are a few others in a row. Shapes, dtypes, gradients and errors follow
// from those that they call.
namespace braid {

// ---- elementwise
[[nodiscard]] Tensor deg2rad(const Tensor& x);
[[nodiscard]] Tensor rad2deg(const Tensor& x);
/// sign; a bool is its own sign.
[[nodiscard]] Tensor sgn(const Tensor& x);
/// b - alpha a.
[[nodiscard]] Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
/// √(a² + b²), without overflow. Infinite if a or b is, even if the other is NaN.
///
/// Gradient  dy a / y and dy b / y, 0 where y is 0
[[nodiscard]] Tensor hypot(const Tensor& a, const Tensor& b);
/// a 2^b. Whole exponents leave a floating point a in its dtype.
[[nodiscard]] Tensor ldexp(const Tensor& a, const Tensor& b);
/// log(e^a + e^b), without overflow.
///
/// Gradient  dy sigmoid(a - b) and dy sigmoid(b - a)
[[nodiscard]] Tensor logaddexp(const Tensor& a, const Tensor& b);
/// log2(2^a + 2^b), without overflow.
[[nodiscard]] Tensor logaddexp2(const Tensor& a, const Tensor& b);
/// 1 where x > 0, `values` where x is 0, else 0, also for NaN.
///
/// Types     one for both, else DTypeError
[[nodiscard]] Tensor heaviside(const Tensor& x, const Tensor& values);
/// x itself: Braid has no complex numbers.
[[nodiscard]] Tensor real(const Tensor& x);
/// pow in float64.
[[nodiscard]] Tensor float_power(const Tensor& x, const Tensor& exponent);
[[nodiscard]] Tensor float_power(const Tensor& x, const Scalar& exponent);
[[nodiscard]] Tensor xlogy(const Tensor& x, const Scalar& y);
[[nodiscard]] Tensor xlogy(const Scalar& x, const Tensor& y);
[[nodiscard]] Tensor isposinf(const Tensor& x);
[[nodiscard]] Tensor isneginf(const Tensor& x);
/// |a - b| <= atol + rtol |b|, elementwise; an infinity is close only to itself, and NaN to nothing
/// unless equal_nan is set. Integers and bools are compared in float64; without tolerances exactly.
///
/// Throws    ArgumentError for a tolerance below 0
[[nodiscard]] Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
                             double atol = 1e-8, bool equal_nan = false);
/// NaN becomes `nan`, infinities become the numbers given, by default the largest and the smallest
/// of x's dtype. A number that is too large for the dtype becomes infinite.
[[nodiscard]] Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                                std::optional<double> neginf = {});

/// a / b rounded: "floor" is floor_divide, "trunc" rounds towards 0.
///
/// Throws    ArgumentError for another mode
[[nodiscard]] Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode);
[[nodiscard]] Tensor div(const Tensor& a, const Scalar& b, std::string_view rounding_mode);
/// Rounded to a number of decimals, halves to the even neighbour.
[[nodiscard]] Tensor round(const Tensor& x, std::int64_t decimals);

// ---- activations
/// The first half of x along dim, times the sigmoid of the second.
///
/// Throws    ShapeError for an odd size
[[nodiscard]] Tensor glu(const Tensor& x, std::int64_t dim = -1);
/// 0 where -lambda <= x <= lambda, else x.
[[nodiscard]] Tensor hardshrink(const Tensor& x, double lambda = 0.5);
/// x moved by lambda towards 0; 0 where -lambda <= x <= lambda, and so is the gradient.
///
/// Throws    ArgumentError for lambda < 0
[[nodiscard]] Tensor softshrink(const Tensor& x, double lambda = 0.5);
[[nodiscard]] Tensor tanhshrink(const Tensor& x);
/// `value` where x <= threshold, else x.
[[nodiscard]] Tensor threshold(const Tensor& x, double threshold, double value);
/// x where x > 0, else weight x. The weight has one element, or one for each index of dim 1.
///
/// Throws    ShapeError for another weight
[[nodiscard]] Tensor prelu(const Tensor& x, const Tensor& weight);
[[nodiscard]] Tensor softmin(const Tensor& x, std::int64_t dim = -1);
[[nodiscard]] Tensor log_sigmoid(const Tensor& x);
/// Normalises each channel of each sample: group_norm with as many groups as channels.
[[nodiscard]] Tensor instance_norm(const Tensor& x, const Tensor& weight = {},
                                   const Tensor& bias = {}, double eps = 1e-5);

// ---- distances
/// x / max(‖x‖_p, eps) along dim.
[[nodiscard]] Tensor normalize(const Tensor& x, double p = 2, std::int64_t dim = 1,
                               double eps = 1e-12);
/// Σ a b / (max(‖a‖, eps) max(‖b‖, eps)) along dim, of a and b broadcast to one shape.
[[nodiscard]] Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim = 1,
                                       double eps = 1e-8);
/// ‖a - b + eps‖_p along the last dim.
[[nodiscard]] Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2,
                                       double eps = 1e-6, bool keepdim = false);
[[nodiscard]] Tensor dist(const Tensor& a, const Tensor& b, double p = 2);

// ---- reductions
/// The smallest element and the largest, over all elements or along dim.
[[nodiscard]] std::tuple<Tensor, Tensor> aminmax(const Tensor& x,
                                                 std::optional<std::int64_t> dim = {},
                                                 bool keepdim = false);
/// sum and mean of the elements that are not NaN.
[[nodiscard]] Tensor nansum(const Tensor& x, const IntList& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor nanmean(const Tensor& x, const IntList& dims = {}, bool keepdim = false);
[[nodiscard]] std::tuple<Tensor, Tensor> std_mean(const Tensor& x, const IntList& dims = {},
                                                  double correction = 1, bool keepdim = false);
/// std_mean of all elements; unbiased: with the correction 1, else 0.
template <std::same_as<bool> Unbiased>
[[nodiscard]] std::tuple<Tensor, Tensor> std_mean(const Tensor& x, Unbiased unbiased) {
  return std_mean(x, {}, unbiased ? 1 : 0);
}
/// norm with p = 2.
[[nodiscard]] Tensor frobenius_norm(const Tensor& x, const IntList& dims, bool keepdim = false);
/// Without an order the root of the sum of squares over the dims; with one the norm of vectors.
///
/// Throws    ArgumentError for an order over two dims, which PyTorch takes for the norm of a matrix
[[nodiscard]] Tensor linalg_norm(const Tensor& x, const std::optional<Scalar>& order = {},
                                 const IntList& dims = {}, bool keepdim = false);
/// The place of one number in a sorted sequence.
[[nodiscard]] Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& value,
                                  bool out_int32 = false, bool right = false,
                                  std::optional<std::string_view> side = {});
/// The differences of neighbours along dim, n times in a row; with n = 0 a copy.
///
/// Throws    ArgumentError for n < 0; ShapeError for a scalar
[[nodiscard]] Tensor diff(const Tensor& x, std::int64_t n = 1, std::int64_t dim = -1);
/// The k-th smallest element along dim and its index; k counts from 1. A scalar has one.
///
/// Throws    IndexError for another k
[[nodiscard]] ValuesIndices kthvalue(const Tensor& x, std::int64_t k, std::int64_t dim = -1,
                                     bool keepdim = false);
[[nodiscard]] Tensor msort(const Tensor& x);

// ---- products
/// beta x + alpha (a product of a and b): of matrices, of a matrix and a vector, the outer product
/// of vectors, of each pair of a batch, and the sum of these. With beta = 0 the values of x are
/// ignored, even NaN, and with alpha = 0 those of the product; their gradients are 0 then.
///
/// Shapes    x broadcasts to the product's shape, which is that of the result
/// Types     one for all three; addr promotes. With integers beta and alpha must be whole. float16
///           and bfloat16 are rounded once
/// Throws    ShapeError; DTypeError
[[nodiscard]] Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b,
                           const Scalar& beta = 1, const Scalar& alpha = 1);
[[nodiscard]] Tensor addmv(const Tensor& x, const Tensor& a, const Tensor& b,
                           const Scalar& beta = 1, const Scalar& alpha = 1);
[[nodiscard]] Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                          const Scalar& alpha = 1);
[[nodiscard]] Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b,
                             const Scalar& beta = 1, const Scalar& alpha = 1);
[[nodiscard]] Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b,
                            const Scalar& beta = 1, const Scalar& alpha = 1);
/// The product of all matrices, in the order that needs the fewest multiplications.
///
/// Throws    ArgumentError for none; ShapeError unless all are matrices that fit
[[nodiscard]] Tensor chain_matmul(std::span<const Tensor> matrices);
[[nodiscard]] Tensor chain_matmul(std::initializer_list<Tensor> matrices);
/// Sums of products over the last dims of both, which have one size; a scalar multiplies.
[[nodiscard]] Tensor inner(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor vdot(const Tensor& a, const Tensor& b);

// ---- other arrangements
[[nodiscard]] Tensor fliplr(const Tensor& x);
[[nodiscard]] Tensor flipud(const Tensor& x);
/// repeat; fewer numbers than dims count from the last dim.
[[nodiscard]] Tensor tile(const Tensor& x, const IntList& times);
/// x with at least `rank` dims; new ones are on the left.
[[nodiscard]] Tensor atleast_1d(const Tensor& x);
[[nodiscard]] Tensor atleast_2d(const Tensor& x);
[[nodiscard]] Tensor adjoint(const Tensor& x);
/// A diagonal matrix of all elements.
[[nodiscard]] Tensor diagflat(const Tensor& x, std::int64_t offset = 0);
[[nodiscard]] Tensor narrow_copy(const Tensor& x, std::int64_t dim, std::int64_t start,
                                 std::int64_t length);
/// The elements of x in row-major order, at the indices, which are int64.
[[nodiscard]] Tensor take(const Tensor& x, const Tensor& index);

/// nonzero.
[[nodiscard]] Tensor argwhere(const Tensor& x);
/// Whether the only element differs from 0. Throws ShapeError unless there is one.
[[nodiscard]] bool is_nonzero(const Tensor& x);
[[nodiscard]] bool is_same_size(const Tensor& a, const Tensor& b);

/// Along the last dim of matrices, and of vectors; along dim 0; along dim 2.
[[nodiscard]] Tensor hstack(std::span<const Tensor> list);
[[nodiscard]] Tensor hstack(std::initializer_list<Tensor> list);
[[nodiscard]] Tensor vstack(std::span<const Tensor> list);
[[nodiscard]] Tensor vstack(std::initializer_list<Tensor> list);

}  // namespace braid

// Functions that put tensors side by side, or their elements in another order, and other functions
// in LibTorch's spelling.
#include <cmath>
#include <utility>
#include <vector>

#include <braid/core/ops/arrange.hpp>
#include <braid/core/ops/special.hpp>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor of(const std::vector<double>& v) {
  return tensor(v, {.device = here(), .dtype = DType::float64});
}

}  // namespace

TEST_CASE("arrange: grids, products and indices", "[arrange]") {
  const Tensor a = of({1, 2}), b = of({3, 4, 5});
  const std::vector<Tensor> ij = meshgrid({a, b}), xy = meshgrid({a, b}, "xy");
  CHECK((ij[0].shape() == Shape{2, 3} && xy[1].shape() == Shape{3, 2}));
  check_lists({{ij[0], {1, 1, 1, 2, 2, 2}},
               {ij[1], {3, 4, 5, 3, 4, 5}},
               {xy[0], {1, 2, 1, 2, 1, 2}},
               {xy[1], {3, 3, 4, 4, 5, 5}},
               {meshgrid({a, b, of({7})})[1], {3, 4, 5, 3, 4, 5}},
               {meshgrid({a}, "xy")[0], {1, 2}},
               {cartesian_prod({a, b}), {1, 3, 1, 4, 1, 5, 2, 3, 2, 4, 2, 5}},
               {cartesian_prod({b}), {3, 4, 5}},
               {broadcast_tensors({a.reshape({2, 1}), b})[0], {1, 1, 1, 2, 2, 2}},
               {tril_indices(3, 3), {0, 1, 1, 2, 2, 2, 0, 0, 1, 0, 1, 2}},
               {tril_indices(2, 3, 1), {0, 0, 1, 1, 1, 0, 1, 0, 1, 2}},
               {triu_indices(2, 3), {0, 0, 0, 1, 1, 0, 1, 2, 1, 2}},
               {triu_indices(2, 3, 1, {.dtype = DType::int32}), {0, 0, 1, 1, 2, 2}}});
  CHECK((tril_indices(2, 2).dtype() == DType::int64 && tril_indices(0, 3).shape() == Shape{2, 0}));
  CHECK(triu_indices(2, 2, 0, DType::int32).dtype() == DType::int32);
  CHECK(gradient_at([](T x) { return meshgrid({x, x})[0] * x.reshape({3, 1}); }, {1, 2, 3}) ==
        List{6, 12, 18});
  CHECK_THROWS_TEXT(ArgumentError, "meshgrid: expected the indexing \"ij\" or \"xy\", got \"yx\"",
                    meshgrid({a}, "yx"));
  CHECK_THROWS_TEXT(ShapeError, "meshgrid: expected vectors", meshgrid({ones({2, 2})}));
  CHECK_THROWS_TEXT(ShapeError, "cartesian_prod: expected vectors", cartesian_prod({ones({})}));
  CHECK_THROWS_TEXT(ShapeError, "broadcast_tensors: ", broadcast_tensors({a, b}));
}

TEST_CASE("arrange: tensors side by side", "[arrange]") {
  const Tensor a = of({1, 2}), m = of({3, 4, 5, 6}).reshape({2, 2});
  check_lists({{column_stack({a, m}), {1, 3, 4, 2, 5, 6}},
               {column_stack({of({1}).reshape({}), of({2}).reshape({})}), {1, 2}},
               {row_stack({a, m}), {1, 2, 3, 4, 5, 6}},
               {dstack({a, a}), {1, 1, 2, 2}},
               {dstack({m, m * 2}), {3, 6, 4, 8, 5, 10, 6, 12}},
               {block_diag({a, m}), {1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 5, 6}},
               {block_diag({of({7}).reshape({}), a}), {7, 0, 0, 0, 1, 2}},
               {constant_pad_nd(a, {1, 2}, 9), {9, 1, 2, 9, 9}},
               {constant_pad_nd(a, {0, 1}), {1, 2, 0}}});
  CHECK((dstack({a, a}).shape() == Shape{1, 2, 2} && atleast_3d(a).shape() == Shape{1, 2, 1}));
  CHECK(
      (atleast_3d(m).shape() == Shape{2, 2, 1} && atleast_3d(ones({})).shape() == Shape{1, 1, 1}));
  CHECK(gradient_at([](T x) { return block_diag({x, x * 2}) * 3; }, {1, 2}) == List{9, 9});
  CHECK_THROWS_TEXT(ShapeError, "block_diag: expected matrices", block_diag({ones({1, 1, 1})}));
  CHECK_THROWS_TEXT(ArgumentError, "block_diag: expected at least one", block_diag({}));
}

TEST_CASE("arrange: pixels and channels", "[arrange]") {
  // each element in its place, by a plain loop
  const std::int64_t n = 2, c = 3, r = 2, h = 2, w = 3;
  const Tensor x = counting({n, c * r * r, h, w}), y = pixel_shuffle(x, r);
  REQUIRE(y.shape() == Shape{n, c, h * r, w * r});
  const List in = list(x), out = list(y);
  bool same = true;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < c; ++j)
      for (std::int64_t p = 0; p < h * r; ++p)
        for (std::int64_t q = 0; q < w * r; ++q) {
          const std::int64_t channel = (j * r + p % r) * r + q % r,
                             from = ((i * c * r * r + channel) * h + p / r) * w + q / r,
                             to = ((i * c + j) * h * r + p) * w * r + q;
          same = same && in[static_cast<std::size_t>(from)] == out[static_cast<std::size_t>(to)];
        }
  CHECK(same);
  CHECK(list(pixel_unshuffle(y, r)) == in);
  CHECK(pixel_shuffle(x[0], r).shape() == Shape{c, h * r, w * r});
  CHECK(pixel_shuffle(zeros({0, 4, 1, 1}), 2).shape() == Shape{0, 1, 2, 2});
  check_lists({{channel_shuffle(counting({1, 6, 1}), 2), {0, 3, 1, 4, 2, 5}}});
  // always separate memory, as PyTorch's
  const Tensor image = counting({1, 2, 3}), matrix = counting({2, 2});
  for (const auto& [copy, of] : std::vector<std::pair<Tensor, Tensor>>{
           {pixel_shuffle(image, 1), image},
           {pixel_unshuffle(image, 1), image},
           {channel_shuffle(image, 1), image},
           {channel_shuffle(image, 2), image},
           {pixel_shuffle(image.transpose(1, 2), 1), image},
           {chain_matmul({matrix}), matrix},
           {diag(matrix), matrix},
           {diag(matrix, 1), matrix},
           {repeat(matrix, {1, 1}), matrix},
           {repeat(counting({4}), {2, 3}), matrix},
           {repeat(matrix.t(), {1, 1, 1}), matrix},
           {repeat_interleave(counting({4}).reshape({4, 1}), 2, 1), matrix},
           {repeat_interleave(counting({1}), 3), matrix},
           {tile(counting({2, 1}), {1, 3}), matrix}}) {
    CHECK(copy.is_contiguous());
    CHECK(copy.storage() != of.storage());
    const Tensor before = copy.clone();
    copy.reshape({-1})[0] = 99;
    CHECK(sum(copy != before).item<std::int64_t>() == 1);
  }
  CHECK(list(image)[0] == 0);
  CHECK(gradient_at([](T a) { return diag(a.reshape({2, 2})).mul_(3); }, {1, 2, 3, 4}) ==
        List{3, 0, 0, 3});
  CHECK(gradient_at([](T a) { return repeat(a, {2, 3}).mul_(2); }, {1, 2}) == List{12, 12});
  CHECK(gradient_at([](T a) { return pixel_shuffle(a.reshape({1, 1, 2}), 1).mul_(a); }, {1, 2}) ==
        List{2, 4});
  CHECK_THROWS_TEXT(ShapeError, "pixel_shuffle: expected channels that 4 divides",
                    pixel_shuffle(ones({3, 1, 1}), 2));
  CHECK_THROWS_TEXT(ShapeError, "pixel_unshuffle: expected a height and a width that 2 divides",
                    pixel_unshuffle(ones({1, 3, 2}), 2));
  CHECK_THROWS_TEXT(ArgumentError, "pixel_shuffle: expected upscale_factor >= 1, got 0",
                    pixel_shuffle(ones({4, 1, 1}), 0));
  CHECK_THROWS_TEXT(ShapeError, "channel_shuffle: expected channels that 4 divides",
                    channel_shuffle(ones({1, 6, 1}), 4));
}

TEST_CASE("LibTorch's spelling of functions", "[arrange]") {
  const Tensor x = of({-1, 0, 2, NAN}), v = of({5, 6, 7, 8}), m = of({1, 2, 3, 4}).reshape({2, 2});
  check_lists({{heaviside(x, v), {0, 6, 1, 0}},
               {real(m), {1, 2, 3, 4}},
               {searchsorted(of({1, 3, 5}), 3), {1}},
               {searchsorted(of({1, 3, 5}), 3, true), {1}},
               {searchsorted(of({1, 3, 5}), 3, false, true), {2}},
               {searchsorted(of({1, 3, 5}), of({5, 0, 1}), true, false, "right"), {3, 0, 1}},
               {searchsorted(of({1, 3, 5}), of({5, 0, 1}), false, false, "left"), {2, 0, 0}},
               {where(of({0, 1, 0, 2}))[0], {1, 3}},
               {frobenius_norm(of({3, 4}), {0}), {5}},
               {linalg_norm(of({3, 4}), 1), {7}},
               {linalg_norm(m), {std::sqrt(30.0)}},
               {linalg_norm(m, 1, {0}), {4, 6}},
               {var_mean(of({1, 3}), true).var, {2}},
               {var_mean(of({1, 3}), false).var, {1}},
               {special::expit(of({0})), {0.5}},
               {logaddexp2(of({3, 1023}), of({3, 1023})), {4, 1024}},
               {std::get<1>(std_mean(of({1, 3}), true)), {2}},
               {std::get<0>(std_mean(of({1, 3}), false)), {1}},
               {chain_matmul({m, m, of({1, 1}).reshape({2, 1})}), {17, 37}},
               {chain_matmul({m}), {1, 2, 3, 4}}});
  CHECK(searchsorted(of({1, 3}), 3, true).dtype() == DType::int32);
  CHECK(searchsorted(of({1, 3}), of({3}), false, true).dtype() == DType::int64);
  CHECK_THROWS_TEXT(ArgumentError, "searchsorted: expected the side *, got \"up\"",
                    searchsorted(of({1, 3}), 3, false, false, "up"));
  CHECK_THROWS_TEXT(ArgumentError, "searchsorted: expected one side",
                    searchsorted(of({1, 3}), 3, false, true, "left"));
  CHECK(gradient_at([](T a) { return logaddexp2(a, a); }, {1, 2}) == List{1, 1});
  CHECK(gradient_at([](T a) { return logaddexp2(a, a.detach() + 2000); }, {1}) == List{0});
  // the gradient does not need the result, which may be changed in place
  CHECK(gradient_at([](T a) { return logaddexp2(a, a).mul_(3); }, {1, 2}) == List{3, 3});
  CHECK(gradient_at([](T a) { return logaddexp(a, a).add_(1); }, {1, 2}) == List{1, 1});
  CHECK(gradient_at([](T a) { return var(a, {0}, 0).mul_(2); }, {1, 2}) == List{-1, 1});
  CHECK(gradient_at([](T a) { return var_mean(a, {0}, 0).mean.mul_(2); }, {1, 3}) == List{1, 1});
  // the norm of a matrix is another number
  CHECK_THROWS_TEXT(ArgumentError, "linalg_norm: expected one dim with the order 2",
                    linalg_norm(m, 2));
  CHECK_THROWS_AS(linalg_norm(m, 1, {0, 1}), ArgumentError);
  CHECK_THROWS_AS(heaviside(x, ones({4})), DTypeError);
  CHECK_THROWS_TEXT(ShapeError, "chain_matmul: expected matrices that fit",
                    chain_matmul({m, ones({3, 3})}));
  CHECK_THROWS_AS(chain_matmul(std::initializer_list<Tensor>{}), ArgumentError);
  // the cheap order: two products of 10 · 100 · 5 and 10 · 5 · 50, not of 100 · 5 · 50
  const Tensor p = random_tensor({10, 100}, DType::float64, here(), 1),
               q = random_tensor({100, 5}, DType::float64, here(), 2),
               s = random_tensor({5, 50}, DType::float64, here(), 3);
  CHECK_SAME_BITS(chain_matmul({p, q, s}), matmul(matmul(p, q), s));
  CHECK_SAME_BITS(chain_matmul({s.t(), q.t(), p.t()}), matmul(s.t(), matmul(q.t(), p.t())));
}

TEST_CASE("InferenceMode and GradMode::set_enabled", "[autograd]") {
  const Tensor x = of({1}).requires_grad_();
  {
    const InferenceMode guard;
    CHECK_FALSE((x * 2).requires_grad());
    const InferenceMode off(false);
    CHECK_FALSE((x * 2).requires_grad());  // it turns nothing on
  }
  CHECK((x * 2).requires_grad());
  GradMode::set_enabled(false);
  CHECK_FALSE((x * 2).requires_grad());
  GradMode::set_enabled(true);
  CHECK((x * 2).requires_grad());
}

}  // namespace braid::test::on_device

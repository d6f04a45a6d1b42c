// Tests of losses, paddings and activations as modules, and of nn::functional with LibTorch's
// options: each is the function that it calls.
#include <braid/braid.hpp>

#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

namespace F = nn::functional;

/// Tensors that every loss of two, or of three, accepts.
struct Operands {
  Tensor a = random_tensor({4, 3}), b = random_tensor({4, 3}, DType::float32, {}, 2),
         c = random_tensor({4, 3}, DType::float32, {}, 3), sign = where(c > 0, 1.0, -1.0);
};

}  // namespace

TEST_CASE("loss layers: are the functions, also as sums", "[nn][layers]") {
  const Operands o;
#define CHECK_LOSS(Layer, function, Options)                    \
  {                                                             \
    INFO(#Layer);                                               \
    const nn::Layer loss;                                       \
    CHECK_SAME_BITS(loss(o.a, o.b), nn::function(o.a, o.b));    \
    const LossSum got = loss(sum_and_count, o.a, o.b),          \
                  want = nn::function(sum_and_count, o.a, o.b); \
    CHECK_SAME_BITS(got.sum, want.sum);                         \
    CHECK_SAME_BITS(got.count, want.count);                     \
    CHECK(str(loss) == #Layer "()");                            \
  }
  BRAID_LOSS_LAYERS_OF_TWO(CHECK_LOSS)
#undef CHECK_LOSS
#define CHECK_LOSS(Layer, function, Options)                                               \
  {                                                                                        \
    INFO(#Layer);                                                                          \
    const nn::Layer loss;                                                                  \
    const Tensor last =                                                                    \
        std::is_same_v<nn::Layer, nn::CosineEmbeddingLoss> ? o.sign.select(1, 0) : o.sign; \
    CHECK_SAME_BITS(loss(o.a, o.b, last), nn::function(o.a, o.b, last));                   \
    CHECK_SAME_BITS(loss(sum_and_count, o.a, o.b, last).sum,                               \
                    nn::function(sum_and_count, o.a, o.b, last).sum);                      \
  }
  BRAID_LOSS_LAYERS_OF_THREE(CHECK_LOSS)
#undef CHECK_LOSS
  CHECK_SAME_BITS(nn::MSELoss(Reduction::sum)(o.a, o.b), mse_loss(o.a, o.b, Reduction::sum));
  CHECK_SAME_BITS(nn::HuberLoss{{.delta = 0.5}}(o.a, o.b), huber_loss(o.a, o.b, {.delta = 0.5}));
  CHECK_SAME_BITS(nn::GaussianNLLLoss()(o.a, o.b, square(o.c)),
                  gaussian_nll_loss(o.a, o.b, square(o.c)));
}

TEST_CASE("losses: small probabilities and equal vectors", "[nn][functional]") {
  // log(1 - p) of a p that 1 - p rounds away
  const Tensor p = tensor({1e-8, 1e-6}), none = zeros({2});
  CHECK_CLOSE(nn::binary_cross_entropy(p, none, {.reduction = Reduction::none}), p,
              (Tolerance{1e-5, 0}));
  // the gradient of a distance of 0 is 0
  const Tensor a = ones({1, 4}).requires_grad_();
  nn::triplet_margin_loss(a, ones({1, 4}), zeros({1, 4}), {.margin = 5, .eps = 0}).backward();
  CHECK_CLOSE(a.grad(), full({1, 4}, -0.5), (Tolerance{1e-6, 0}));
}

TEST_CASE("loss layers: a weight is a buffer", "[nn][layers]") {
  const Operands o;
  const Tensor labels = tensor({0, 2, 1, 2}), weight = tensor({1.0, 2.0, 3.0}), p = sigmoid(o.a),
               t = sigmoid(o.b);
  const nn::CrossEntropyLoss plain, weighted({.weight = weight, .label_smoothing = 0.1});
  CHECK_SAME_BITS(plain(o.a, labels), cross_entropy(o.a, labels));
  CHECK_SAME_BITS(weighted(o.a, labels),
                  cross_entropy(o.a, labels, {.weight = weight, .label_smoothing = 0.1}));
  CHECK_SAME_BITS(weighted(sum_and_count, o.a, labels).count,
                  cross_entropy(sum_and_count, o.a, labels, {.weight = weight}).count);
  CHECK_SAME_BITS(nn::NLLLoss({.weight = weight})(log_softmax(o.a), labels),
                  nll_loss(log_softmax(o.a), labels, {.weight = weight}));
  CHECK_SAME_BITS(nn::BCELoss({.weight = weight})(p, t),
                  binary_cross_entropy(p, t, {.weight = weight}));
  nn::BCEWithLogitsLoss logits({.weight = weight, .pos_weight = weight});
  CHECK_SAME_BITS(logits(o.a, t), binary_cross_entropy_with_logits(
                                      o.a, t, {.weight = weight, .pos_weight = weight}));
  const auto state = state_dict(logits);
  CHECK((state.size() == 2 && state_dict(plain).empty()));
  to(logits, DType::float64);
  CHECK(logits(o.a.to(kFloat64), t.to(kFloat64)).dtype() == DType::float64);
}

TEST_CASE("pad layers: are pad with their mode", "[nn][layers]") {
  const Tensor image = random_tensor({2, 3, 4, 5, 6});
#define CHECK_PAD(Layer, dims, mode_)                                        \
  {                                                                          \
    INFO(#Layer);                                                            \
    std::vector<std::int64_t> all(2 * dims, 1);                              \
    CHECK_SAME_BITS(nn::Layer(1)(image), pad(image, all, PadMode::mode_));   \
    all[1] = 2;                                                              \
    CHECK_SAME_BITS(nn::Layer(all)(image), pad(image, all, PadMode::mode_)); \
    CHECK_THROWS_AS(nn::Layer({1, 2, 3}), ArgumentError);                    \
  }
  BRAID_PAD_LAYERS(CHECK_PAD)
#undef CHECK_PAD
  CHECK_SAME_BITS(nn::ConstantPad2d(1, 3.5)(image),
                  pad(image, {1, 1, 1, 1}, PadMode::constant, 3.5));
  CHECK(str(nn::ZeroPad2d(1)) == "ZeroPad2d(padding=[1, 1, 1, 1])");
  CHECK(str(nn::ConstantPad1d({1, 2}, 0.5)) == "ConstantPad1d(padding=[1, 2], value=0.5)");
  CHECK_THROWS_TEXT(ArgumentError, "ZeroPad2d: expected 1 or 4 numbers, got [1, 2, 3]",
                    nn::ZeroPad2d({1, 2, 3}));
  CHECK(nn::Sequential{nn::ZeroPad2d(1), nn::ReLU()}(ones({1, 2, 3, 3})).shape() ==
        Shape{1, 2, 5, 5});
}

TEST_CASE("activation layers: those of several ops", "[nn][layers]") {
  const Tensor x = random_tensor({4, 6});
  CHECK_SAME_BITS(nn::GLU()(x), glu(x));
  CHECK_SAME_BITS(nn::Hardshrink(0.3)(x), hardshrink(x, 0.3));
  CHECK_SAME_BITS(nn::Softshrink(0.3)(x), softshrink(x, 0.3));
  CHECK_SAME_BITS(nn::Threshold(0.1, 5)(x), threshold(x, 0.1, 5));
  CHECK_SAME_BITS(nn::Softmin(0)(x), softmax(-x, 0));
  CHECK_SAME_BITS(nn::Softmax2d()(x.reshape({2, 3, 2, 2})), softmax(x.reshape({2, 3, 2, 2}), 1));
  CHECK_SAME_BITS(nn::CosineSimilarity()(x, x + 1), cosine_similarity(x, x + 1));
  CHECK_SAME_BITS(nn::PairwiseDistance(1)(x, x * 2), pairwise_distance(x, x * 2, 1));
  CHECK(nn::Unflatten(1, {2, 3})(x).shape() == Shape{4, 2, 3});
  const nn::PReLU prelu_of_six = home(nn::PReLU(6, {.init = 0.5}));
  CHECK_SAME_BITS(prelu_of_six(x), prelu(x, full({6}, 0.5)));
  prelu_of_six(x).sum().backward();
  CHECK(prelu_of_six.weight.grad().shape() == Shape{6});
  CHECK(str(nn::PReLU(), nn::GLU(1)) == "PReLU(num_parameters=1)GLU(dim=1)");
  CHECK(str(nn::Threshold(1, 2)) == "Threshold(threshold=1.0, value=2.0)");
  CHECK_THROWS_TEXT(ArgumentError, "PReLU: expected num_parameters >= 1, got 0", nn::PReLU(0));
  CHECK_THROWS_TEXT(ArgumentError, "Softshrink: expected lambda >= 0, got -1", nn::Softshrink(-1));
  CHECK_THROWS_TEXT(ShapeError, "Softmax2d: expected 3 or 4 dimensions*", (void)nn::Softmax2d()(x));
}

TEST_CASE("functional: LibTorch's options are the function's own", "[nn][functional]") {
  const Operands o;
  const Tensor image = random_tensor({2, 2, 6, 6}), kernel = random_tensor({4, 2, 3, 3}),
               row = random_tensor({2, 2, 9}), row_kernel = random_tensor({4, 2, 3}),
               bias = ones({4}), labels = tensor({0, 2, 1, 2}), two = ones({2}) * 2;
  CHECK_SAME_BITS(F::conv2d(image, kernel, F::Conv2dFuncOptions().stride(2).padding(1).bias(bias)),
                  conv2d(image, kernel, bias, {.stride = 2, .padding = 1}));
  CHECK_SAME_BITS(conv2d(image, kernel, {}, 2, 1),
                  conv2d(image, kernel, {}, {.stride = 2, .padding = 1}));
  CHECK_SAME_BITS(conv1d(row, row_kernel, bias, 2, 1, 2),
                  conv1d(row, row_kernel, bias, {.stride = 2, .padding = 1, .dilation = 2}));
  CHECK_SAME_BITS(F::conv1d(row, row_kernel, F::Conv1dFuncOptions().dilation(2)),
                  conv1d(row, row_kernel, {}, {.dilation = 2}));
  CHECK_SAME_BITS(
      F::conv_transpose2d(image, random_tensor({2, 3, 3, 3}),
                          F::ConvTranspose2dFuncOptions().stride(2).output_padding(1)),
      conv_transpose2d(image, random_tensor({2, 3, 3, 3}), {}, {.stride = 2, .output_padding = 1}));
  CHECK_SAME_BITS(F::max_pool2d(image, F::MaxPool2dFuncOptions(3).stride(2).padding(1)),
                  max_pool2d(image, 3, {.stride = 2, .padding = 1}));
  CHECK_SAME_BITS(max_pool2d(image, 3, 2, 1), max_pool2d(image, 3, {.stride = 2, .padding = 1}));
  CHECK_SAME_BITS(max_pool1d(row, 3, 2), max_pool1d(row, 3, {.stride = 2}));
  CHECK_SAME_BITS(F::max_pool2d_with_indices(image, F::MaxPool2dFuncOptions(2)).second,
                  max_pool2d_with_indices(image, 2).second);
  CHECK_SAME_BITS(F::avg_pool2d(image, F::AvgPool2dFuncOptions(2).divisor_override(3)),
                  avg_pool2d(image, 2, {.divisor_override = 3}));
  CHECK_SAME_BITS(avg_pool2d(image, 3, 2, 1, false, false),
                  avg_pool2d(image, 3, {.stride = 2, .padding = 1, .count_include_pad = false}));
  CHECK_SAME_BITS(F::adaptive_avg_pool2d(image, F::AdaptiveAvgPool2dFuncOptions(2)),
                  adaptive_avg_pool2d(image, 2));
  CHECK_SAME_BITS(F::interpolate(image, F::InterpolateFuncOptions().size({3, 4}).mode(kNearest)),
                  interpolate(image, {.size = Size2(3, 4)}));
  CHECK_SAME_BITS(
      F::interpolate(image, F::InterpolateFuncOptions().scale_factor({1.5}).mode(kBilinear)),
      interpolate(image, {.scale_factor = 1.5, .mode = Interpolation::bilinear}));
  CHECK_SAME_BITS(
      F::interpolate(
          image,
          F::InterpolateFuncOptions().scale_factor({1.6}).mode(kBilinear).recompute_scale_factor(
              true)),
      interpolate(
          image,
          {.scale_factor = 1.6, .mode = Interpolation::bilinear, .recompute_scale_factor = true}));
  CHECK_THROWS_TEXT(ShapeError, "InterpolateFuncOptions: expected 1 or 2 numbers as size, got 3",
                    F::InterpolateFuncOptions().size({1, 2, 3}));
  const Tensor small = random_tensor({2, 8, 3, 4}, DType::float32, here(), 1);
  const Tensor large = F::pixel_shuffle(small, F::PixelShuffleFuncOptions(2));
  CHECK(large.shape() == Shape{2, 2, 6, 8});
  CHECK_SAME_BITS(F::pixel_unshuffle(large, F::PixelUnshuffleFuncOptions(2)), small);
  CHECK_SAME_BITS(F::pad(image, F::PadFuncOptions({1, 2}).mode(kReflect)),
                  pad(image, {1, 2}, PadMode::reflect));
  CHECK_SAME_BITS(F::batch_norm(image, two, two, F::BatchNormFuncOptions().weight(two).eps(0.1)),
                  batch_norm(image, two, two, two, {}, false, 0.1, 0.1));
  CHECK_SAME_BITS(F::group_norm(image, F::GroupNormFuncOptions(2).weight(two)),
                  group_norm(image, 2, two));
  CHECK_SAME_BITS(F::layer_norm(image, F::LayerNormFuncOptions({6}).eps(0.1)),
                  layer_norm(image, 6, {}, {}, 0.1));
  CHECK_SAME_BITS(F::instance_norm(image), group_norm(image, 2));
  CHECK_SAME_BITS(F::dropout(o.a, F::DropoutFuncOptions().training(false)), o.a);
  CHECK_SAME_BITS(F::normalize(o.a, F::NormalizeFuncOptions().p(1).dim(0)), normalize(o.a, 1, 0));
  CHECK_SAME_BITS(F::cosine_similarity(o.a, o.b, F::CosineSimilarityFuncOptions().dim(0)),
                  cosine_similarity(o.a, o.b, 0));
  CHECK_SAME_BITS(F::softmax(o.a, F::SoftmaxFuncOptions(0)), softmax(o.a, 0));
  CHECK_SAME_BITS(F::gelu(o.a, F::GELUFuncOptions().approximate("tanh")), gelu(o.a, "tanh"));
  CHECK_SAME_BITS(F::threshold(o.a, F::ThresholdFuncOptions(0.1, 3)), threshold(o.a, 0.1, 3));
  CHECK_SAME_BITS(F::elu(o.a, F::ELUFuncOptions().alpha(0.5)), elu(o.a, 0.5));
  CHECK_SAME_BITS(F::softplus(o.a, F::SoftplusFuncOptions().beta(2)), softplus(o.a, 2));
  const Tensor changed = o.a.clone();
  CHECK(F::relu(changed, F::ReLUFuncOptions().inplace(true)).is_same(changed));
  CHECK_SAME_BITS(changed, relu(o.a));
  F::leaky_relu(changed, F::LeakyReLUFuncOptions().negative_slope(0.2).inplace(true));
  CHECK_SAME_BITS(changed, leaky_relu(relu(o.a), 0.2));
  CHECK_SAME_BITS(
      F::cross_entropy(
          o.a, labels,
          F::CrossEntropyFuncOptions().ignore_index(2).reduction(kSum).label_smoothing(0.1)),
      cross_entropy(o.a, labels,
                    {.reduction = Reduction::sum, .ignore_index = 2, .label_smoothing = 0.1}));
  CHECK_SAME_BITS(F::kl_div(o.a, square(o.b), F::KLDivFuncOptions().reduction(kBatchMean)),
                  kl_div(o.a, square(o.b), {.batch_mean = true}));
  CHECK_SAME_BITS(
      F::kl_div(o.a, square(o.b), F::KLDivFuncOptions().reduction(kBatchMean).reduction(kSum)),
      kl_div(o.a, square(o.b), {.reduction = Reduction::sum}));
  CHECK_SAME_BITS(F::mse_loss(o.a, o.b, F::MSELossFuncOptions(kNone)), square(o.a - o.b));
  CHECK_SAME_BITS(F::smooth_l1_loss(o.a, o.b, F::SmoothL1LossFuncOptions().beta(0.5)),
                  smooth_l1_loss(o.a, o.b, {.beta = 0.5}));
  CHECK_SAME_BITS(
      F::triplet_margin_loss(o.a, o.b, o.c, F::TripletMarginLossFuncOptions().margin(2)),
      triplet_margin_loss(o.a, o.b, o.c, {.margin = 2}));
  CHECK_SAME_BITS(F::embedding(labels, o.a), embedding(o.a, labels));
}

TEST_CASE("functional: gumbel_softmax gives probabilities, or one-hot vectors",
          "[nn][functional]") {
  manual_seed(1);
  const Tensor logits = zeros({100, 4}).requires_grad_();
  const Tensor y = F::gumbel_softmax(logits), hard = F::gumbel_softmax(logits, 1, true);
  CHECK(allclose(y.sum(1), ones({100})));
  CHECK(all((hard == 0) | isclose(hard, ones({}))));
  CHECK(allclose(hard.sum(1), ones({100})));
  (hard * counting({4})).sum().backward();
  CHECK(any(logits.grad() != 0));
}

}  // namespace braid::test::on_device

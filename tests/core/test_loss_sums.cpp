// Tests of the sum form X_sum of every loss. Its sum is bitwise equal to the loss with
// Reduction::sum, its count is the divisor of the mean, and it rejects what the loss rejects.
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

using nn::LossSum;
using nn::Reduction;

struct Twins {
  const char* name;
  std::function<Tensor(T x, Reduction)> loss;
  std::function<LossSum(T x)> sum;
  double count = 12;  ///< for x [4, 3]
};

/// For functions whose last argument is a struct of options.
template <class Options, class F, class S>
Twins by_options(const char* name, F loss, S sum, double count = 12) {
  return {name, [loss](T x, Reduction r) { return loss(x, Options{.reduction = r}); },
          [sum](T x) { return sum(x, Options{}); }, count};
}

std::vector<Twins> all_twins(DType dtype) {
  const Tensor other = random_tensor({4, 3}, dtype, {}, 7, 0.1, 0.9),
               third = random_tensor({4, 3}, dtype, {}, 8, 0.1, 0.9);
  const Tensor signs = sign(random_tensor({4, 3}, dtype, {}, 9)),
               sign_of_row = sign(random_tensor({4}, dtype, {}, 10)), labels = tensor({0, 2, 1, 2});
  const auto two = [&](auto f) { return [=](T x, const auto& o) { return f(x, other, o); }; };
  const auto signed_two = [&](auto f) {
    return [=](T x, const auto& o) { return f(x, signs, o); };
  };
#define BRAID_TWINS(with, name)                     \
  with([](auto&&... a) { return nn::name(a...); }), \
      with([](auto&&... a) { return nn::name##_sum(a...); })
  const auto with_labels = [&](auto f) {
    return [=](T x, const auto& o) { return f(x, labels, o); };
  };
  const auto three = [&](auto f) {
    return [=](T x, const auto& o) { return f(x, other, third, o); };
  };
  const auto ranked = [&](auto f) {
    return [=](T x, const auto& o) { return f(x, other, signs, o); };
  };
  const auto rows = [&](auto f) {
    return [=](T x, const auto& o) { return f(x, other, sign_of_row, o); };
  };
  return {
      {"l1_loss", [=](T x, Reduction r) { return nn::l1_loss(x, other, r); },
       [=](T x) { return nn::l1_loss_sum(x, other); }},
      {"mse_loss", [=](T x, Reduction r) { return nn::mse_loss(x, other, r); },
       [=](T x) { return nn::mse_loss_sum(x, other); }},
      {"soft_margin_loss", [=](T x, Reduction r) { return nn::soft_margin_loss(x, signs, r); },
       [=](T x) { return nn::soft_margin_loss_sum(x, signs); }},
      by_options<nn::SmoothL1Options>("smooth_l1_loss", BRAID_TWINS(two, smooth_l1_loss)),
      by_options<nn::HuberOptions>("huber_loss", BRAID_TWINS(two, huber_loss)),
      by_options<nn::BceOptions>("binary_cross_entropy", BRAID_TWINS(two, binary_cross_entropy)),
      by_options<nn::BceWithLogitsOptions>("binary_cross_entropy_with_logits",
                                           BRAID_TWINS(two, binary_cross_entropy_with_logits)),
      by_options<nn::KlDivOptions>("kl_div", BRAID_TWINS(two, kl_div)),
      by_options<nn::PoissonNllOptions>("poisson_nll_loss", BRAID_TWINS(two, poisson_nll_loss)),
      by_options<nn::GaussianNllOptions>("gaussian_nll_loss",
                                         BRAID_TWINS(three, gaussian_nll_loss)),
      by_options<nn::HingeEmbeddingOptions>("hinge_embedding_loss",
                                            BRAID_TWINS(signed_two, hinge_embedding_loss)),
      by_options<nn::MarginRankingOptions>("margin_ranking_loss",
                                           BRAID_TWINS(ranked, margin_ranking_loss)),
      by_options<nn::CosineEmbeddingOptions>("cosine_embedding_loss",
                                             BRAID_TWINS(rows, cosine_embedding_loss), 4),
      by_options<nn::TripletMarginOptions>("triplet_margin_loss",
                                           BRAID_TWINS(three, triplet_margin_loss), 4),
      by_options<nn::CapsuleMarginOptions>("capsule_margin_loss",
                                           BRAID_TWINS(with_labels, capsule_margin_loss), 4),
      by_options<nn::CrossEntropyOptions>("cross_entropy", BRAID_TWINS(with_labels, cross_entropy),
                                          4),
      by_options<nn::NllOptions>("nll_loss", BRAID_TWINS(with_labels, nll_loss), 4),
  };
#undef BRAID_TWINS
}

}  // namespace

TEST_CASE("losses: the sum and the count of each", "[loss]") {
  for (const DType t : {DType::float32, DType::float64}) {
    const Tensor x = random_tensor({4, 3}, t, {}, 6, 0.1, 0.9);
    for (const Twins& twins : all_twins(t)) {
      INFO(twins.name << ", " << t);
      const Tensor a = x.clone().requires_grad_(), b = x.clone().requires_grad_();
      const LossSum got = twins.sum(a);
      const Tensor want = twins.loss(b, Reduction::sum);
      CHECK_SAME_BITS(got.sum.detach(), want.detach());
      CHECK(got.count.shape() == Shape{});
      CHECK(got.count.item<double>() == twins.count);
      CHECK_FALSE(got.count.requires_grad());
      CHECK_CLOSE((got.sum / got.count).detach(), array_of(twins.loss(x, Reduction::mean)),
                  tolerance(t));
      CHECK_SAME_BITS(grad(got.sum, {a})[0], grad(want, {b})[0]);
      CHECK(thrown<DTypeError>(twins.name, [&] {
              (void)twins.sum(zeros({2, 3, 4}, {.dtype = DType::bool_}));
            }) == "");
      CHECK(thrown<ArgumentError>("expected a defined tensor",
                                  [&] { (void)twins.sum(Tensor()); }) == "");
    }
  }
}

}  // namespace braid::test::on_device

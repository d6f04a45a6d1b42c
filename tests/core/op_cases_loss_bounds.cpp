// Cases of cross_entropy and mse_loss, with bounds of their errors.
#include <braid/core/ops/loss.hpp>

#include "softmax_bounds.hpp"

namespace braid::test {
namespace {

/// The error of the sum over the rows of -log softmax at the label, times scale.
Array cross_entropy_bound(A x, A labels, bool take_mean) {
  const I rows = reference::at(x.shape, 0), classes = reference::at(x.shape, 1);
  const Array y = reference::log_softmax(x, 1), bound = log_softmax_bound(x, 1);
  double errors = 0, sizes = 0;
  for (I i = 0; i < rows; ++i) {
    errors += bound[i * classes + static_cast<I>(labels[i])];
    sizes += std::fabs(y[i * classes + static_cast<I>(labels[i])]);
  }
  const double n = static_cast<double>(rows);
  return Array(Sizes{}, (errors + (log2_ceil(n) + 4) * sizes) / (take_mean ? n : 1));
}

}  // namespace

void add_loss_bound_cases(Cases& list) {
  for (const bool take_mean : {true, false}) {
    const Reduction r = take_mean ? Reduction::mean : Reduction::sum;
    const std::string name = take_mean ? "mean" : "sum", words = ", reduction='" + name + "')";
    OpCase& c = push(list, "cross_entropy", name, "F.cross_entropy(x0, x1" + words,
                     {{{4, 3}}, {{4}, Kind::index, 3, false}}, kFloats, Accuracy::bound);
    c.call = function_of([r](T x, T y) { return cross_entropy(x, y, r); });
    c.expected = expecting([=](A x, A y) { return reference::cross_entropy(x, y, take_mean); });
    c.bound = expecting([=](A x, A y) { return cross_entropy_bound(x, y, take_mean); });
    OpCase& m = push(list, "mse_loss", name, "F.mse_loss(x0, x1" + words, {{{2, 3}}, {{2, 3}}},
                     kFloats, Accuracy::bound);
    m.call = function_of([r](T x, T y) { return mse_loss(x, y, r); });
    m.expected = expecting([=](A x, A y) { return reference::mse_loss(x, y, take_mean); });
    // each term: the rounding of the difference counts twice in the product
    m.bound = expecting([=](A x, A y) {
      return times(reference::mse_loss(x, y, take_mean),
                   log2_ceil(static_cast<double>(x.size())) + 6);
    });
  }
  for (const bool left : {true, false}) {
    const auto f = [left](T x) {
      return left ? mse_loss(x, made({2, 3})) : mse_loss(made({2, 3}), x);
    };
    BadInputs bad(list, "mse_loss");
    bad.tensor(left ? "a" : "b", f, {2, 3});
    bad.shapes(f, {{3}, {3, 2}}, "equal shapes, got ")
        .types(f, {2, 3}, {DType::float64}, "one dtype, got ");
    if (left) bad.types(f, {2, 3}, {DType::int64});
  }
  BadInputs(list, "mse_loss").free("reduction", "an enumeration");
}

void add_loss_parameters(Cases& list) {
  parameters(
      list,
      "mse_loss(a b reduction) mse_loss(a b) cross_entropy(logits target options) "
      "cross_entropy(logits target reduction) "
      "nll_loss(log_probabilities labels options) binary_cross_entropy(p target options) "
      "binary_cross_entropy_with_logits(x target options) "
      "capsule_margin_loss(lengths labels options) cosine_embedding_loss(a b target options) "
      "gaussian_nll_loss(x target variance options) hinge_embedding_loss(x target options) "
      "huber_loss(a b options) kl_div(x target options) l1_loss(a b reduction) l1_loss(a b) "
      "margin_ranking_loss(a b target options) poisson_nll_loss(x target options) "
      "smooth_l1_loss(a b options) soft_margin_loss(x target reduction) "
      "soft_margin_loss(x target) triplet_margin_loss(anchor positive negative options)");
}

}  // namespace braid::test

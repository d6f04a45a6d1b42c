#include <braid/core/ops/statistics.hpp>

#include "terms.hpp"

namespace braid::nn {
namespace {

Tensor soft_margin_terms(const Tensor& x, const Tensor& t) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return soft_margin_terms(full(x), full(t));
  }
  detail::check_same("soft_margin_loss", "target", x, t);
  return detail::log1p_exp(neg(t * x));
}

Tensor hinge_terms(const Tensor& x, const Tensor& t, double margin) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return hinge_terms(full(x), full(t), margin);
  }
  detail::check_same("hinge_embedding_loss", "target", x, t);
  const Tensor zero = detail::number(x, 0);
  return where(eq(t, 1.0), zero, clamp(sub(margin, x), 0)) + where(eq(t, -1.0), zero, x);
}

Tensor cosine_terms(const Tensor& a, const Tensor& b, const Tensor& t, double margin) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return cosine_terms(full(a), full(b), full(t), margin);
  }
  constexpr const char* op = "cosine_embedding_loss";
  detail::check_same(op, "b", a, b);
  detail::check_alike(op, "target", a, t);
  if (a.dim() != 1 && a.dim() != 2)
    throw ShapeError(str(op, ": expected a [d] or [n, d], got ", a.shape()));
  const Shape expected = a.dim() == 1 ? Shape{} : Shape{a.size(0)};
  if (t.shape() != expected)
    throw ShapeError(str(op, ": expected target of shape ", expected, ", got ", t.shape()));
  if (size_of(a.dtype()) == 2) {  // in float32: float16 cannot hold eps
    const auto wide = [](const Tensor& x) { return x.to(DType::float32); };
    return cosine_terms(wide(a), wide(b), wide(t), margin).to(a.dtype());
  }
  constexpr double eps = 1e-12;  // as in PyTorch
  const Shape last{-1};
  const Tensor cosine = sum(a * b, last) /
                        sqrt(add(sum(square(a), last), eps) * add(sum(square(b), last), eps)),
               zero = detail::number(a, 0);
  return where(eq(t, 1.0), sub(1, cosine), zero) +
         where(eq(t, -1.0), clamp(sub(cosine, margin), 0), zero);
}

Tensor ranking_terms(const Tensor& a, const Tensor& b, const Tensor& t, double margin) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return ranking_terms(full(a), full(b), full(t), margin);
  }
  detail::check_same("margin_ranking_loss", "b", a, b);
  detail::check_same("margin_ranking_loss", "target", a, t);
  return clamp(sub(margin, t * (a - b)), 0);
}

Tensor triplet_terms(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                     const TripletMarginOptions& o) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return triplet_terms(full(anchor), full(positive), full(negative), o);
  }
  constexpr const char* op = "triplet_margin_loss";
  detail::check_same(op, "positive", anchor, positive);
  detail::check_same(op, "negative", anchor, negative);
  detail::check_option(op, "margin > 0", o.margin > 0, o.margin);
  detail::check_option(op, "eps >= 0", o.eps >= 0, o.eps);
  if (anchor.dim() < 1)
    throw ShapeError(str(op, ": expected vectors along the last dim, got a scalar"));
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return norm(add(a - b, o.eps), 2, -1);  // whose gradient at 0 is 0
  };
  Tensor far = distance(anchor, negative);
  if (o.swap) far = minimum(far, distance(positive, negative));
  return clamp(add(distance(anchor, positive) - far, o.margin), 0);
}

Tensor capsule_terms(const Tensor& lengths, const Tensor& labels, const CapsuleMarginOptions& o) {
  if (braid::detail::autocasting()) [[unlikely]] {
    const braid::detail::Autocasted full(braid::detail::Precision::full);
    return capsule_terms(full(lengths), full(labels), o);
  }
  constexpr const char* op = "capsule_margin_loss";
  detail::check_floating(op, lengths);
  if (lengths.dim() != 2)
    throw ShapeError(str(op, ": expected lengths [n, classes], got ", lengths.shape()));
  detail::check_option(op, "lambda >= 0", o.lambda >= 0, o.lambda);
  Tensor there = labels;
  if (labels.dtype() == DType::int64) {
    if (labels.device() != lengths.device())
      throw DeviceError(
          str(op, ": expected labels on ", lengths.device(), ", got ", labels.device()));
    if (labels.shape() != Shape{lengths.size(0)})
      throw ShapeError(str(op, ": expected labels [", lengths.size(0), "], got ", labels.shape()));
    there = eq(labels.unsqueeze(1), arange(lengths.size(1), {.device = lengths.device()}))
                .to(lengths.dtype());
  } else {
    detail::check_same(op, "labels", lengths, labels);
  }
  const Tensor too_short = square(relu(sub(o.present, lengths))),
               too_long = square(relu(sub(lengths, o.absent)));
  return sum(there * too_short + mul(sub(1, there) * too_long, o.lambda), {1});
}

}  // namespace

Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  return detail::joined(soft_margin_terms(x, target), reduction);
}
LossSum soft_margin_loss(SumAndCount, const Tensor& x, const Tensor& target) {
  return detail::counted(soft_margin_terms(x, target));
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, const HingeEmbeddingOptions& o) {
  return detail::joined(hinge_terms(x, target, o.margin), o.reduction);
}
LossSum hinge_embedding_loss(SumAndCount, const Tensor& x, const Tensor& target,
                             const HingeEmbeddingOptions& o) {
  return detail::counted(hinge_terms(x, target, o.margin));
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                             const CosineEmbeddingOptions& o) {
  return detail::joined(cosine_terms(a, b, target, o.margin), o.reduction);
}
LossSum cosine_embedding_loss(SumAndCount, const Tensor& a, const Tensor& b, const Tensor& target,
                              const CosineEmbeddingOptions& o) {
  return detail::counted(cosine_terms(a, b, target, o.margin));
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                           const MarginRankingOptions& o) {
  return detail::joined(ranking_terms(a, b, target, o.margin), o.reduction);
}
LossSum margin_ranking_loss(SumAndCount, const Tensor& a, const Tensor& b, const Tensor& target,
                            const MarginRankingOptions& o) {
  return detail::counted(ranking_terms(a, b, target, o.margin));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& o) {
  return detail::joined(triplet_terms(anchor, positive, negative, o), o.reduction);
}
LossSum triplet_margin_loss(SumAndCount, const Tensor& anchor, const Tensor& positive,
                            const Tensor& negative, const TripletMarginOptions& o) {
  return detail::counted(triplet_terms(anchor, positive, negative, o));
}

Tensor capsule_margin_loss(const Tensor& lengths, const Tensor& labels,
                           const CapsuleMarginOptions& o) {
  return detail::joined(capsule_terms(lengths, labels, o), o.reduction);
}
LossSum capsule_margin_loss(SumAndCount, const Tensor& lengths, const Tensor& labels,
                            const CapsuleMarginOptions& o) {
  return detail::counted(capsule_terms(lengths, labels, o));
}

}  // namespace braid::nn

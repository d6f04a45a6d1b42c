// Bad inputs of losses beside those that op_cases_loss.cpp has for every pair of tensors.
#include <cmath>

#include <braid/nn/losses.hpp>

#include "op_errors.hpp"

namespace braid::test::on_device {
namespace {

using T = const Tensor&;

void add_cross_entropy(std::vector<OpCase>& list) {
  const auto logits = [](T x) { return cross_entropy(x, tensor({0, 1})); };
  const auto labelled = [](T target) {
    return awaited(cross_entropy(random_tensor({2, 3}), target));
  };
  const auto weighted = [](T weight) {
    return cross_entropy(random_tensor({2, 3}), tensor({0, 1}), {.weight = weight});
  };
  const auto smoothed = [](double s) {
    return cross_entropy(random_tensor({2, 3}), tensor({0, 1}), {.label_smoothing = s});
  };
  BadInputs(list, "cross_entropy")
      .of("logits")
      .undefined(logits)
      .elsewhere(logits, {2, 3})
      .types(logits, {2, 3}, {DType::int64, DType::bool_}, "expected a floating point tensor, got ")
      .shapes(logits, {{2}},
              "expected logits \\[n, classes\\] or \\[n, classes, d1, …\\], got \\[2\\]")
      .shapes(logits, {{2, 3, 4}},
              "expected labels \\[2, 4\\] for logits \\[2, 3, 4\\], got \\[2\\]")
      .shapes(logits, {{2, 0}}, "expected at least one class, got logits ")
      .of("target")
      .undefined(labelled)
      .elsewhere(labelled, {2}, DType::int64)
      .types(labelled, {2}, {DType::int32, DType::float32}, "expected int64 labels, got ")
      .shapes(labelled, {{3}, {2, 1}, {}}, "expected labels \\[2\\] for logits \\[2, 3\\], got ",
              "ShapeError", DType::int64)
      .refused("IndexError", "cross_entropy: expected labels in \\[0, 3\\), got 3",
               [labelled] { return labelled(tensor({0, 3})); })
      .refused("IndexError", "cross_entropy: expected labels in \\[0, 3\\), got -1",
               [labelled] { return labelled(tensor({-1, 0})); })
      .of("weight")
      .elsewhere(weighted, {3})
      .shapes(weighted, {{2}, {1, 3}, {}}, "expected weight \\[3\\], got ")
      .types(weighted, {3}, {DType::float64, DType::int64},
             "expected weight to be float32 as the logits, got ")
      .of("label_smoothing")
      .values<double>(smoothed, {-0.1, 1.5, NAN}, "ArgumentError",
                      "expected 0 <= label_smoothing <= 1, got ")
      .free("ignore_index", "a number that no label has ignores none");
}

void add_nll(std::vector<OpCase>& list) {
  const auto rows = [](T x) { return nn::nll_loss(x, tensor({0, 1})); };
  const auto labelled = [](T labels) {
    return awaited(nn::nll_loss(random_tensor({2, 3}), labels));
  };
  const auto weighted = [](T weight) {
    return nn::nll_loss(random_tensor({2, 3}), tensor({0, 1}), {.weight = weight});
  };
  BadInputs(list, "nll_loss")
      .of("log_probabilities")
      .undefined(rows)
      .elsewhere(rows, {2, 3})
      .types(rows, {2, 3}, {DType::int64, DType::bool_}, "expected a floating point tensor, got ")
      .of("labels")
      .undefined(labelled)
      .elsewhere(labelled, {2}, DType::int64)
      .types(labelled, {2}, {DType::int32, DType::float32}, "expected int64 labels, got ")
      .shapes(labelled, {{3}, {2, 1}, {}}, "expected labels \\[2\\] for logits \\[2, 3\\], got ",
              "ShapeError", DType::int64)
      .of("weight")
      .elsewhere(weighted, {3})
      .shapes(weighted, {{2}, {1, 3}, {}}, "expected weight \\[3\\], got ")
      .free("ignore_index", "a number that no label has ignores none");
}

void add_binary(std::vector<OpCase>& list) {
  const auto in = [](auto loss) { return loss(random_tensor({2, 3}), random_tensor({2, 3})); };
  const auto of_p = [in](T w) {
    return in([&](T x, T t) { return nn::binary_cross_entropy(x, t, {.weight = w}); });
  };
  const auto of_x = [in](T w) {
    return in([&](T x, T t) { return nn::binary_cross_entropy_with_logits(x, t, {.weight = w}); });
  };
  const auto positive = [in](T w) {
    return in(
        [&](T x, T t) { return nn::binary_cross_entropy_with_logits(x, t, {.pos_weight = w}); });
  };
  const auto add = [&](const char* op, const char* parameter, const BadInputs::OfTensor& f) {
    BadInputs(list, op)
        .of(parameter)
        .shapes(f, {{2}, {4, 3}, {1, 2, 3}},
                str("expected ", parameter, " that broadcasts to \\[2, 3\\], got "))
        .types(f, {3}, {DType::float64, DType::int64},
               str("expected ", parameter, " to be float32, got "));
  };
  add("binary_cross_entropy", "weight", of_p);
  add("binary_cross_entropy_with_logits", "weight", of_x);
  add("binary_cross_entropy_with_logits", "pos_weight", positive);
}

void add_capsules(std::vector<OpCase>& list) {
  const auto capsules = [](T lengths) { return nn::capsule_margin_loss(lengths, tensor({0, 1})); };
  const auto weighing = [](double l) {
    return nn::capsule_margin_loss(random_tensor({2, 3}), tensor({0, 1}), {.lambda = l});
  };
  BadInputs(list, "capsule_margin_loss")
      .of("lengths")
      .undefined(capsules)
      .types(capsules, {2, 3}, {DType::int64, DType::bool_},
             "expected a floating point tensor, got ")
      .shapes(capsules, {{2}, {2, 3, 1}}, "expected lengths \\[n, classes\\], got ")
      .of("lambda")
      .values<double>(weighing, {-0.1, -INFINITY, NAN}, "ArgumentError",
                      "expected lambda >= 0, got ")
      .free("present", "every number is a length to be compared with")
      .free("absent", "every number is a length to be compared with");
}

}  // namespace

void add_loss_errors(std::vector<OpCase>& list) {
  add_cross_entropy(list);
  add_nll(list);
  add_binary(list);
  add_capsules(list);
  for (const char* op : {"hinge_embedding_loss", "cosine_embedding_loss", "margin_ranking_loss"})
    BadInputs(list, op).free("margin", "every number is one");
  BadInputs(list, "triplet_margin_loss").free("eps", "every number can be added");
}

}  // namespace braid::test::on_device

// Cases of the losses. Weights are made inside the call: an undefined one means "no weight".
#include <algorithm>
#include <functional>

#include <braid/core/ops/elementwise.hpp>
#include <braid/nn/losses.hpp>

#include "op_case_makers.hpp"
#include "reference/loss.hpp"

namespace braid::test {
namespace {

using reference::Classes;

constexpr Reduction kReductions[] = {Reduction::none, Reduction::mean, Reduction::sum};
const char* name_of(Reduction r) {
  return r == Reduction::none ? "none" : r == Reduction::mean ? "mean" : "sum";
}

std::string with(std::string text, Reduction r) {
  return text.replace(text.find("{r}"), 3, name_of(r));
}

/// Returns targets 1 and -1. Other dtypes stay, for the loss to reject.
Tensor signs(T x) { return is_floating(x.dtype()) ? sign(x) : x; }
Tensor weight_like(T x, const std::vector<double>& numbers) {
  return tensor(numbers, {.device = x.device(), .dtype = x.dtype()});
}

/// Adds a case whose terms are reduced by `r`; "{r}" in the PyTorch call is replaced by its name.
OpCase& reduced(Cases& list, const std::string& op, const std::string& variant, Reduction r,
                std::vector<Input> inputs, const std::string& words,
                std::function<Array(Arrays)> terms) {
  OpCase& c =
      push(list, op, variant, words.empty() ? "" : "torch.nn.functional." + with(op + words, r),
           std::move(inputs), kFloats, Accuracy::tolerance);
  c.expected = [terms = std::move(terms), r](Arrays a) {
    return std::vector<Array>{reference::joined(terms(a), name_of(r))};
  };
  return c;
}

/// Adds the bad inputs of a loss on two tensors of the same shape.
void refuse_pair(Cases& list, const char* op, const char* first, const char* second,
                 const std::function<void(T, T)>& f) {
  const auto with = [f](const Shape& a, const Shape& b, DType t = DType::float32,
                        DType u = DType::float32) {
    return [=] { f(ones_of(a, t), ones_of(b, u)); };
  };
  const char* const floats = "a floating point tensor, got ";
  if (first != nullptr)
    refuse(list, op,
           {{first, kType, str(floats, "int64"), with({2}, {2}, DType::int64, DType::int64)},
            {first, kType, str(floats, "bool"), with({2}, {2}, DType::bool_)},
            {first, kShape, ".* of shape \\[3\\], got \\[2\\]", with({3}, {2})}});
  refuse(list, op,
         {{second, kType, ".* to be float32, got float64",
           with({2}, {2}, DType::float32, DType::float64)},
          {second, kShape, ".* of shape \\[2, 3\\], got \\[3\\]", with({2, 3}, {3})},
          {second, "DeviceError", ".* on .*, got .*",
           [f] { f(ones_of({2}), on_device::ones({2}, {.device = there()})); }}});
}

/// Adds cases of a loss: each reduction, and shapes that are empty, have one element, or are
/// scalar.
void add_terms(Cases& list, const char* op, const std::string& variant,
               const std::vector<Kind>& kinds, const std::string& words,
               const std::function<Tensor(Tensors, Reduction)>& call,
               const std::function<Array(Arrays)>& terms) {
  const struct {
    Sizes shape;
    Reduction r;
    const char* what;
  } cases[] = {{{2, 3}, Reduction::none, ""},       {{2, 3}, Reduction::mean, ""},
               {{2, 3}, Reduction::sum, ""},        {{3, 1, 2}, Reduction::mean, ", three dims"},
               {{0, 3}, Reduction::sum, ", empty"}, {{1}, Reduction::none, ", one element"},
               {{}, Reduction::mean, ", scalar"}};
  for (const auto& [shape, r, what] : cases) {
    std::vector<Input> inputs;
    for (const Kind kind : kinds) inputs.push_back({shape, kind});
    OpCase& c = reduced(list, op, str(variant, variant.empty() ? "" : ", ", name_of(r), what), r,
                        inputs, words, terms);
    c.call = [call, r = r](Tensors t) { return std::vector<Tensor>{call(t, r)}; };
  }
}

/// An elementwise loss on two tensors.
struct Loss {
  const char *op, *variant, *first, *second;
  Kind kind_a, kind_b;
  const char* words;
  Tensor (*call)(T, T, Reduction);
  Of2 term;
};
const Loss kLosses[] = {
    {"l1_loss", "", "a", "b", Kind::distinct, Kind::distinct, "(x0, x1, reduction='{r}')",
     [](T a, T b, Reduction r) { return nn::l1_loss(a, b, r); },
     [](double a, double b) { return std::fabs(a - b); }},
    {"smooth_l1_loss", "", "a", "b", Kind::distinct, Kind::distinct,
     "(x0, x1, reduction='{r}', beta=0.77)",
     [](T a, T b, Reduction r) { return nn::smooth_l1_loss(a, b, {.reduction = r, .beta = 0.77}); },
     [](double a, double b) {
       const double d = std::fabs(a - b);
       return d < 0.77 ? d * d / 2 / 0.77 : d - 0.77 / 2;
     }},
    {"smooth_l1_loss", "beta 0", nullptr, nullptr, Kind::distinct, Kind::distinct,
     "(x0, x1, reduction='{r}', beta=0)",
     [](T a, T b, Reduction r) { return nn::smooth_l1_loss(a, b, {.reduction = r, .beta = 0}); },
     [](double a, double b) { return std::fabs(a - b); }},
    {"huber_loss", "", "a", "b", Kind::distinct, Kind::distinct,
     "(x0, x1, reduction='{r}', delta=1.3)",
     [](T a, T b, Reduction r) { return nn::huber_loss(a, b, {.reduction = r, .delta = 1.3}); },
     [](double a, double b) {
       const double d = std::fabs(a - b);
       return d < 1.3 ? d * d / 2 : 1.3 * (d - 0.65);
     }},
    {"binary_cross_entropy", "", "p", "target", Kind::probability, Kind::probability,
     "(x0, x1, reduction='{r}')",
     [](T a, T b, Reduction r) { return nn::binary_cross_entropy(a, b, {.reduction = r}); },
     [](double p, double t) { return -(t * std::log(p) + (1 - t) * std::log(1 - p)); }},
    {"binary_cross_entropy_with_logits", "", "x", "target", Kind::value, Kind::probability,
     "(x0, x1, reduction='{r}')",
     [](T a, T b, Reduction r) {
       return nn::binary_cross_entropy_with_logits(a, b, {.reduction = r});
     },
     [](double x, double t) { return (1 - t) * x + reference::softplus(-x); }},
    {"binary_cross_entropy_with_logits", "weights", nullptr, nullptr, Kind::value,
     Kind::probability,
     "(x0, x1, reduction='{r}', weight=torch.tensor(0.7, dtype=x0.dtype), "
     "pos_weight=torch.tensor(2.5, dtype=x0.dtype))",
     [](T a, T b, Reduction r) {
       const Tensor weight = weight_like(a, {0.7}).reshape({});
       return nn::binary_cross_entropy_with_logits(
           a, b,
           {.reduction = r, .weight = weight, .pos_weight = weight_like(a, {2.5}).reshape({})});
     },
     [](double x, double t) {
       return 0.7 * ((1 - t) * x + (1 + 1.5 * t) * reference::softplus(-x));
     }},
    {"kl_div", "", "x", "target", Kind::value, Kind::positive, "(x0, x1, reduction='{r}')",
     [](T a, T b, Reduction r) { return nn::kl_div(a, b, {.reduction = r}); },
     [](double x, double t) { return t * (std::log(t) - x); }},
    {"kl_div", "log target", nullptr, nullptr, Kind::value, Kind::value,
     "(x0, x1, reduction='{r}', log_target=True)",
     [](T a, T b, Reduction r) { return nn::kl_div(a, b, {.reduction = r, .log_target = true}); },
     [](double x, double t) { return std::exp(t) * (t - x); }},
    {"poisson_nll_loss", "", "x", "target", Kind::value, Kind::positive,
     "(x0, x1, reduction='{r}')",
     [](T a, T b, Reduction r) { return nn::poisson_nll_loss(a, b, {.reduction = r}); },
     [](double x, double t) { return std::exp(x) - t * x; }},
    {"poisson_nll_loss", "of rates, full", nullptr, nullptr, Kind::positive, Kind::positive,
     "(x0, x1, log_input=False, full=True, reduction='{r}')",
     [](T a, T b, Reduction r) {
       return nn::poisson_nll_loss(a, b, {.reduction = r, .log_input = false, .full = true});
     },
     [](double x, double t) {
       return x - t * std::log(x + 1e-8) +
              (t > 1 ? t * std::log(t) - t + 0.5 * std::log(2 * 3.14159265358979323846 * t) : 0);
     }},
    {"soft_margin_loss", "", "x", "target", Kind::value, Kind::value,
     "(x0, x1.detach(), reduction='{r}')",
     [](T a, T b, Reduction r) { return nn::soft_margin_loss(a, b, r); },
     [](double x, double t) { return reference::softplus(-t * x); }},
    {"hinge_embedding_loss", "", "x", "target", Kind::distinct, Kind::nonzero,
     "(x0, torch.sign(x1), margin=0.99, reduction='{r}')",
     [](T a, T b, Reduction r) {
       return nn::hinge_embedding_loss(a, signs(b), {.reduction = r, .margin = 0.99});
     },
     [](double x, double t) { return t > 0 ? x : reference::positive(0.99 - x); }},
};

/// An elementwise loss on three tensors.
struct Loss3 {
  const char *op, *variant;
  Kind a, b, c;
  const char* words;
  Tensor (*call)(T, T, T, Reduction);
  double (*term)(double, double, double);
};
const Loss3 kOfThree[] = {
    {"gaussian_nll_loss", "full", Kind::value, Kind::value, Kind::positive,
     "(x0, x1, x2, full=True, reduction='{r}')",
     [](T x, T t, T v, Reduction r) {
       return nn::gaussian_nll_loss(x, t, v, {.reduction = r, .full = true});
     },
     [](double x, double t, double v) {
       return 0.5 * (std::log(v) + (x - t) * (x - t) / v) +
              0.5 * std::log(2 * 3.14159265358979323846);
     }},
    {"margin_ranking_loss", "", Kind::distinct, Kind::distinct, Kind::nonzero,
     "(x0, x1, torch.sign(x2), margin=0.29, reduction='{r}')",
     [](T a, T b, T t, Reduction r) {
       return nn::margin_ranking_loss(a, b, signs(t), {.reduction = r, .margin = 0.29});
     },
     [](double a, double b, double t) {
       return reference::positive(0.29 - (t > 0 ? 1 : -1) * (a - b));
     }},
};

/// A numeric option of a loss.
struct Option {
  const char *op, *name;
  Tensor (*call)(T, double);
  const char* text;
  Doubles wrong;
};
const Option kOptions[] = {
    {"smooth_l1_loss", "beta", [](T x, double v) { return nn::smooth_l1_loss(x, x, {.beta = v}); },
     "beta >= 0, got ", Doubles{-1, kNan, kInf}},
    {"huber_loss", "delta", [](T x, double v) { return nn::huber_loss(x, x, {.delta = v}); },
     "delta > 0, got ", Doubles{-1, 0, kNan}},
    {"poisson_nll_loss", "eps",
     [](T x, double v) { return nn::poisson_nll_loss(x, x, {.eps = v}); }, "eps >= 0, got ",
     Doubles{-1, kNan, kInf}},
    {"gaussian_nll_loss", "eps",
     [](T x, double v) { return nn::gaussian_nll_loss(x, x, x, {.eps = v}); }, "eps > 0, got ",
     Doubles{-1, 0, kNan}},
    {"triplet_margin_loss", "margin",
     [](T x, double v) { return nn::triplet_margin_loss(x, x, x, {.margin = v}); },
     "margin > 0, got ", Doubles{-1, 0, kNan}},
    {"capsule_margin_loss", "lambda",
     [](T x, double v) { return nn::capsule_margin_loss(x, indices({0, 1}), {.lambda = v}); },
     "lambda >= 0, got ", Doubles{-0.1, -kInf, kNan}},
    {"cross_entropy", "label_smoothing",
     [](T x, double v) { return nn::cross_entropy(x, indices({0, 1}), {.label_smoothing = v}); },
     "0 <= label_smoothing <= 1, got ", Doubles{-0.1, 1.5, kNan}},
};

void add_of_terms(Cases& list) {
  for (const Loss& f : kLosses) {
    add_terms(
        list, f.op, f.variant, {f.kind_a, f.kind_b}, f.words,
        [call = f.call](Tensors t, Reduction r) { return call(t[0], t[1], r); },
        [term = f.term](Arrays a) { return reference::zip(a.at(0), a.at(1), term); });
    if (f.first != nullptr)
      refuse_pair(list, f.op, f.first, f.second,
                  [call = f.call](T a, T b) { (void)call(a, b, Reduction::mean); });
  }
  for (const Loss3& f : kOfThree)
    add_terms(
        list, f.op, f.variant, {f.a, f.b, f.c}, f.words,
        [call = f.call](Tensors t, Reduction r) { return call(t[0], t[1], t[2], r); },
        [term = f.term](Arrays a) {
          Array y(a.at(0).shape);
          for (I i = 0; i < y.size(); ++i) y[i] = term(a[0][i], a[1][i], a[2][i]);
          return y;
        });
  for (OpCase& c : list)
    if (c.op == "soft_margin_loss" && reference::count(c.inputs[0].shape) > 0)
      c.differs = {{"gradient of x1", "the target gets its gradient; PyTorch gives it none"}};
  refuse_pair(list, "gaussian_nll_loss", "x", "target",
              [](T a, T b) { (void)nn::gaussian_nll_loss(a, b, a); });
  refuse_pair(list, "margin_ranking_loss", "a", "b",
              [](T a, T b) { (void)nn::margin_ranking_loss(a, b, a); });
  refuse_pair(list, "margin_ranking_loss", nullptr, "target",
              [](T a, T t) { (void)nn::margin_ranking_loss(a, a, t); });
  BadInputs(list, "gaussian_nll_loss")
      .lists("variance", {Shape{2}, Shape{3}, Shape{1, 3}}, kShape,
             "variance of shape \\[2, 3\\] or \\[2, 1\\], got ",
             [](const Shape& s) {
               (void)nn::gaussian_nll_loss(ones_of({2, 3}), ones_of({2, 3}), ones_of(s));
             })
      .is(kArgument, "a variance >= 0, got a negative one", [] {
        return nn::gaussian_nll_loss(ones_of({2}), ones_of({2}), on_device::tensor({1.0, -1e-30}));
      });
}

void add_of_vectors(Cases& list) {
  for (const Reduction r : kReductions) {
    OpCase& c = reduced(list, "cosine_embedding_loss", name_of(r), r,
                        {{{4, 3}}, {{4, 3}}, {{4}, Kind::nonzero}},
                        "(x0, x1, torch.sign(x2), margin=0.1, reduction='{r}')", [](Arrays a) {
                          I row = 0;
                          return reference::over_vectors(a[0], [&](I begin, I d) {
                            const double cosine = reference::cosine(a[0], a[1], begin, d);
                            return a[2][row++] > 0 ? 1 - cosine : reference::positive(cosine - 0.1);
                          });
                        });
    c.call = function_of([r](T a, T b, T t) {
      return nn::cosine_embedding_loss(a, b, signs(t), {.reduction = r, .margin = 0.1});
    });
    const bool swap = r == Reduction::sum;
    OpCase& t = reduced(
        list, "triplet_margin_loss", name_of(r), r,
        {{{4, 3}, Kind::distinct}, {{4, 3}, Kind::distinct}, {{4, 3}, Kind::distinct}},
        str("(x0, x1, x2, margin=19, swap=", swap ? "True" : "False", ", reduction='{r}')"),
        [swap](Arrays a) {
          return reference::over_vectors(a[0], [&](I begin, I d) {
            double far = reference::distance(a[0], a[2], begin, d, 1e-6);
            if (swap) far = std::min(far, reference::distance(a[1], a[2], begin, d, 1e-6));
            return reference::positive(reference::distance(a[0], a[1], begin, d, 1e-6) - far + 19);
          });
        });
    t.call = function_of([r, swap](T a, T p, T n) {
      return nn::triplet_margin_loss(a, p, n, {.reduction = r, .margin = 19, .swap = swap});
    });
    OpCase& k = reduced(list, "capsule_margin_loss", name_of(r), r,
                        {{{4, 3}, Kind::distinct}, {{4}, Kind::index, 3, false}}, "", [](Arrays a) {
                          return reference::capsule_terms(a[0], a[1], 0.9, 0.1, 0.5);
                        });
    k.call = function_of(
        [r](T x, T labels) { return nn::capsule_margin_loss(x, labels, {.reduction = r}); });
  }
  refuse_pair(list, "cosine_embedding_loss", "a", "b",
              [](T a, T b) { (void)nn::cosine_embedding_loss(a, b, ones_of({})); });
  refuse_pair(list, "triplet_margin_loss", "anchor", "positive",
              [](T a, T b) { (void)nn::triplet_margin_loss(a, b, a); });
  refuse_pair(list, "triplet_margin_loss", nullptr, "negative",
              [](T a, T t) { (void)nn::triplet_margin_loss(a, a, t); });
  const auto labelled = [](const Shape& s) {
    return nn::capsule_margin_loss(ones_of({2, 3}), on_device::zeros(s, {.dtype = DType::int64}));
  };
  const auto capsules = [](T lengths) { return nn::capsule_margin_loss(lengths, indices({0, 1})); };
  BadInputs(list, "cosine_embedding_loss", "a")
      .shapes([](T a) { return nn::cosine_embedding_loss(a, a, ones_of({})); }, {{1, 2, 3}},
              "a \\[d\\] or \\[n, d\\]")
      .lists("target", {Shape{}, Shape{3}, Shape{2, 1}}, kShape, "target of shape \\[2\\], got ",
             [](const Shape& s) {
               return nn::cosine_embedding_loss(ones_of({2, 3}), ones_of({2, 3}), ones_of(s));
             });
  BadInputs(list, "capsule_margin_loss")
      .lists("labels", {Shape{3}, Shape{2, 1}, Shape{}}, kShape, "labels \\[2\\], got ", labelled)
      .tensor("lengths", capsules)
      .types(capsules, {2, 3}, {DType::int64, DType::bool_})
      .shapes(capsules, {{2}, {2, 3, 1}}, "lengths \\[n, classes\\], got ")
      .free("present", "every number is a length to be compared with")
      .free("absent", "every number is a length to be compared with");
}

struct Labelled {
  const char* variant;
  Sizes logits, labels;
  Classes classes;
  const char* torch;
};
const std::vector<double> kWeight{0.5, 2, 1.25};
const char* const kWeightOf = "weight=torch.tensor([0.5, 2, 1.25], dtype=x0.dtype), ";
const Labelled kLabelled[] = {
    {"plain", Sizes{4, 3}, Sizes{4}, Classes{}, ""},
    {"weight", Sizes{5, 3}, Sizes{5}, Classes{kWeight, 0, -100}, ""},
    {"label smoothing", Sizes{4, 3}, Sizes{4}, Classes{{}, 0.1, -100}, "label_smoothing=0.1, "},
    {"ignored", Sizes{7, 3}, Sizes{7}, Classes{{}, 0, 1}, "ignore_index=1, "},
    {"all options, two dims more", Sizes{2, 3, 2, 2}, Sizes{2, 2, 2}, Classes{kWeight, 0.2, 2},
     "label_smoothing=0.2, ignore_index=2, "},
    {"one class", Sizes{3, 1}, Sizes{3}, Classes{{}, 0.3, -100}, "label_smoothing=0.3, "},
    {"one dim more", Sizes{2, 3, 3}, Sizes{2, 3}, Classes{}, ""},
};

/// Computes the terms and reduces them; the mean divides by their total weight.
std::function<std::vector<Array>(Arrays)> of_labels(const Classes& k, const std::string& reduction,
                                                    bool softmax) {
  return expecting([=](A x, A y) {
    double divisor = 0;
    const Array terms =
        reference::label_terms(softmax ? reference::log_softmax(x, 1) : x, y, k, divisor);
    return reference::joined(terms, divisor, reduction);
  });
}

void add_labels(Cases& list) {
  for (const Labelled& l : kLabelled)
    for (const Reduction r : kReductions) {
      // NaN if all labels are equal and thus ignored, as in an expanded tensor
      if (r == Reduction::mean && std::string(l.variant) == "ignored") continue;
      const Classes k = l.classes;
      const std::string words =
          str("(x0, x1, ", k.weight.empty() ? "" : kWeightOf, l.torch, "reduction='{r}')");
      const auto weight = [k](T x) {
        return k.weight.empty() ? Tensor() : weight_like(x, k.weight);
      };
      for (const bool softmax : {true, false}) {
        if (!softmax && k.smoothing > 0) continue;
        OpCase& c =
            reduced(list, softmax ? "cross_entropy" : "nll_loss",
                    str(l.variant, ", ", name_of(r), ", by options"), r,
                    {{l.logits}, {l.labels, Kind::index, reference::at(l.logits, 1), false}}, words,
                    nullptr);
        c.call = function_of([=](T x, T y) {
          if (!softmax)
            return nn::nll_loss(x, y,
                                {.reduction = r, .weight = weight(x), .ignore_index = k.ignored});
          return nn::cross_entropy(x, y,
                                   {.reduction = r,
                                    .weight = weight(x),
                                    .ignore_index = k.ignored,
                                    .label_smoothing = k.smoothing});
        });
        c.expected = of_labels(k, name_of(r), softmax);
      }
    }
  const Types wide{DType::float32, DType::float64};
  for (const Reduction r : kReductions) {
    OpCase& c = reduced(list, "cross_entropy", str("probabilities, ", name_of(r)), r,
                        {{{2, 3, 2}}, {{2, 3, 2}, Kind::positive}},
                        str("(x0.transpose(1, 2).reshape(4, 3), x1.transpose(1, 2).reshape(4, 3), ",
                            kWeightOf, "label_smoothing=0.1, reduction='{r}')"),
                        [](Arrays a) {
                          Array terms = reference::probability_terms(
                              reference::log_softmax(a[0], 1), a[1], {kWeight, 0.1, -100});
                          terms.shape = {4};
                          return terms;
                        });
    c.call = function_of([r](T x, T y) {
      return nn::cross_entropy(
          x.transpose(1, 2).reshape({4, 3}), y.transpose(1, 2).reshape({4, 3}),
          {.reduction = r, .weight = weight_like(x, kWeight), .label_smoothing = 0.1});
    });
    c.dtypes = wide;
    OpCase& m = reduced(list, "mse_loss", str(name_of(r), ", by name"), r, {{{2, 3}}, {{2, 3}}},
                        "(x0, x1, reduction='{r}')", [](Arrays a) {
                          return reference::zip(
                              a[0], a[1], [](double x, double y) { return (x - y) * (x - y); });
                        });
    m.call = function_of([r](T a, T b) { return nn::mse_loss(a, b, r); });
    m.dtypes = wide;
  }
  // Sum and count: two results. The count is not a function of the logits.
  const auto sum_of = [&](const std::string& op, const std::vector<Input>& inputs,
                          Tensor (*f)(T, T)) -> OpCase& {
    OpCase& c = push(list, op, "with sum_and_count", "", inputs, wide, Accuracy::tolerance);
    c.call = function_of(f);
    return c;
  };
  const std::vector<Input> rows{{{5, 3}}, {{5}, Kind::index, 3, false}};
  sum_of("cross_entropy", rows, [](T x, T y) {
    return nn::cross_entropy(nn::sum_and_count, x, y,
                             {.weight = weight_like(x, kWeight), .ignore_index = 1})
        .sum;
  }).expected = of_labels({kWeight, 0, 1}, "sum", true);
  sum_of("nll_loss", rows, [](T x, T y) {
    return nn::nll_loss(nn::sum_and_count, x, y).sum;
  }).expected = of_labels({}, "sum", false);
  sum_of("mse_loss", {{{2, 3}}, {{2, 3}}}, [](T a, T b) {
    return nn::mse_loss(nn::sum_and_count, a, b).sum;
  }).expected = expecting([](A a, A b) { return reference::mse_loss(a, b, false); });
}

void add_label_errors(Cases& list) {
  for (const bool softmax : {true, false}) {
    const auto loss = [softmax](T x, T labels, T weight = {}) {
      return softmax ? nn::cross_entropy(x, labels, {.weight = weight})
                     : nn::nll_loss(x, labels, {.weight = weight});
    };
    const auto logits = [loss](T x) { return loss(x, indices({0, 1})); };
    const auto labelled = [loss](T labels) { return awaited(loss(made({2, 3}), labels)); };
    const auto weighted = [loss](T weight) { return loss(made({2, 3}), indices({0, 1}), weight); };
    BadInputs bad(list, softmax ? "cross_entropy" : "nll_loss");
    bad.tensor(softmax ? "logits" : "log_probabilities", logits, {2, 3})
        .types(logits, {2, 3}, {DType::int64, DType::bool_});
    if (softmax)
      bad.shapes(logits, {{2}}, "logits \\[n, classes\\] or \\[n, classes, d1, …\\], got \\[2\\]")
          .shapes(logits, {{2, 3, 4}}, "labels \\[2, 4\\] for logits \\[2, 3, 4\\], got \\[2\\]")
          .shapes(logits, {{2, 0}}, "at least one class, got logits ");
    const std::string within = str(softmax ? "labels" : "indices", " in \\[0, 3\\), got ");
    bad.tensor(softmax ? "target" : "labels", labelled, {2}, DType::int64)
        .types(labelled, {2}, {DType::int32, DType::float32}, "int64 labels, got ")
        .shapes(labelled, {{3}, {2, 1}, {}}, "labels \\[2\\] for logits \\[2, 3\\], got ", kShape,
                DType::int64)
        .is(kIndex, within + "3", [=] { return labelled(indices({0, 3})); })
        .is(kIndex, within + "-1", [=] { return labelled(indices({-1, 0})); });
    bad.of("weight")
        .elsewhere(weighted, {3})
        .shapes(weighted, {{2}, {1, 3}, {}}, "weight \\[3\\], got ")
        .types(weighted, {3}, {DType::float64, DType::int64},
               "weight to be float32 as the logits, got ")
        .free("ignore_index", "a number that no label has ignores none");
  }
  const auto weights = [&](const char* op, const char* name, Tensor (*f)(T x, T w)) {
    const auto with = [f](T w) { return f(made({2, 3}), w); };
    BadInputs(list, op, name)
        .shapes(with, {{2}, {4, 3}, {1, 2, 3}}, str(name, " that broadcasts to \\[2, 3\\], got "))
        .types(with, {3}, {DType::float64, DType::int64}, str(name, " to be float32, got "));
  };
  const char* const logits = "binary_cross_entropy_with_logits";
  weights("binary_cross_entropy", "weight",
          [](T x, T w) { return nn::binary_cross_entropy(x, x, {.weight = w}); });
  weights(logits, "weight",
          [](T x, T w) { return nn::binary_cross_entropy_with_logits(x, x, {.weight = w}); });
  weights(logits, "pos_weight",
          [](T x, T w) { return nn::binary_cross_entropy_with_logits(x, x, {.pos_weight = w}); });
}

}  // namespace

void add_loss_cases(Cases& list) {
  add_of_terms(list);
  add_of_vectors(list);
  add_labels(list);
  add_label_errors(list);
  for (const Option& o : kOptions)
    BadInputs(list, o.op).numbers(o.name, o.wrong, kArgument, o.text, [call = o.call](double v) {
      return call(ones_of({2, 3}), v);
    });
  for (const char* op : {"hinge_embedding_loss", "cosine_embedding_loss", "margin_ranking_loss"})
    BadInputs(list, op).free("margin", "every number is one");
  BadInputs(list, "triplet_margin_loss").free("eps", "every number can be added");
}

}  // namespace braid::test

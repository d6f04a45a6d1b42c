// The losses. Weights are made in the call: an undefined one means "none".
#include <functional>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/nn/losses.hpp>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/loss.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using T = const Tensor&;
using reference::Classes;

constexpr Reduction kReductions[] = {Reduction::none, Reduction::mean, Reduction::sum};
const char* name_of(Reduction r) {
  return r == Reduction::none ? "none" : r == Reduction::mean ? "mean" : "sum";
}

/// "… {r} …" with the reduction in place of {r}.
std::string with(std::string text, Reduction r) {
  const std::size_t at = text.find("{r}");
  return at == std::string::npos ? text : text.replace(at, 3, name_of(r));
}

/// Targets 1 and -1. Other types are the loss's to refuse.
Tensor signs(T x) { return is_floating(x.dtype()) ? sign(x) : x; }
Tensor weight_like(T x, const std::vector<double>& numbers) {
  return tensor(numbers, {.device = x.device(), .dtype = x.dtype()});
}

/// A loss of terms: each reduction, and shapes that are empty, of one element, or a scalar.
struct Loss {
  const char* op;
  std::string variant;
  std::vector<Kind> kinds;
  std::function<Function(Reduction)> call;
  std::function<Array(const std::vector<Array>&)> terms;
  const char* torch;
};

void add(std::vector<OpCase>& list, const Loss& loss, std::vector<BadInput> errors = {}) {
  const auto push = [&](const Sizes& shape, Reduction r, const char* what) {
    OpCase c;
    c.op = loss.op;
    c.variant = str(loss.variant, loss.variant.empty() ? "" : ", ", name_of(r), what);
    for (const Kind kind : loss.kinds) c.inputs.push_back({shape, kind});
    c.call = loss.call(r);
    c.expected = [terms = loss.terms, r](const std::vector<Array>& a) {
      return std::vector<Array>{reference::joined(terms(a), name_of(r))};
    };
    c.dtypes = floating_dtypes();
    c.accuracy = Accuracy::tolerance;
    c.torch = with(loss.torch, r);
    c.errors = errors;
    errors.clear();
    list.push_back(c);
  };
  for (const Reduction r : kReductions) push({2, 3}, r, "");
  push({3, 1, 2}, Reduction::mean, ", three dims");
  push({0, 3}, Reduction::sum, ", empty");
  push({1}, Reduction::none, ", one element");
  push({}, Reduction::mean, ", scalar");
}

/// Bad inputs of a loss of two tensors of one shape.
template <class F>
std::vector<BadInput> pair_errors(const std::string& op, const char* first, const char* second,
                                  F f) {
  const auto of = [](DType t) { return TensorOptions{.dtype = t}; };
  return {
      {first,
       [f, of] {
         (void)f(on_device::ones({2}, of(DType::int64)), on_device::ones({2}, of(DType::int64)));
       },
       "DTypeError", op + ": expected a floating point tensor, got int64"},
      {first, [f, of] { (void)f(on_device::ones({2}, of(DType::bool_)), on_device::ones({2})); },
       "DTypeError", op + ": expected a floating point tensor, got bool"},
      {first, [f] { (void)f(on_device::ones({3}), on_device::ones({2})); }, "ShapeError",
       op + ": expected .* of shape \\[3\\], got \\[2\\]"},
      {second, [f, of] { (void)f(on_device::ones({2}), on_device::ones({2}, of(DType::float64))); },
       "DTypeError", op + ": expected .* to be float32, got float64"},
      {second, [f] { (void)f(on_device::ones({2, 3}), on_device::ones({3})); }, "ShapeError",
       op + ": expected .* of shape \\[2, 3\\], got \\[3\\]"},
      {second, [f] { (void)f(on_device::ones({2}), on_device::ones({2}, {.device = there()})); },
       "DeviceError", op + ": expected .* on .*, got .*"}};
}
BadInput bad_option(const char* option, std::function<void()> call, const std::string& text) {
  return {option, std::move(call), "ArgumentError", text};
}

/// f(reduction) as a call of two tensors.
template <class F> std::function<Function(Reduction)> two(F f) {
  return [f](Reduction r) { return function_of([f, r](T a, T b) { return f(a, b, r); }); };
}
template <class F> std::function<Array(const std::vector<Array>&)> term(F f) {
  return [f](const std::vector<Array>& a) { return reference::zip(a.at(0), a.at(1), f); };
}

void add_distances(std::vector<OpCase>& list) {
  add(list,
      {"l1_loss",
       "",
       {Kind::distinct, Kind::distinct},
       two([](T a, T b, Reduction r) { return nn::l1_loss(a, b, r); }),
       term([](double a, double b) { return std::fabs(a - b); }),
       "torch.nn.functional.l1_loss(x0, x1, reduction='{r}')"},
      pair_errors("l1_loss", "a", "b", [](T a, T b) { return nn::l1_loss(a, b); }));
  auto errors =
      pair_errors("smooth_l1_loss", "a", "b", [](T a, T b) { return nn::smooth_l1_loss(a, b); });
  for (const double beta : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    errors.push_back(bad_option(
        "beta",
        [beta] {
          (void)nn::smooth_l1_loss(on_device::ones({2}), on_device::ones({2}), {.beta = beta});
        },
        "smooth_l1_loss: expected beta >= 0, got "));
  add(list,
      {"smooth_l1_loss",
       "",
       {Kind::distinct, Kind::distinct},
       two([](T a, T b, Reduction r) {
         return nn::smooth_l1_loss(a, b, {.reduction = r, .beta = 0.77});
       }),
       term([](double a, double b) {
         const double d = std::fabs(a - b);
         return d < 0.77 ? d * d / 2 / 0.77 : d - 0.77 / 2;
       }),
       "torch.nn.functional.smooth_l1_loss(x0, x1, reduction='{r}', beta=0.77)"},
      errors);
  add(list, {"smooth_l1_loss",
             "beta 0",
             {Kind::distinct, Kind::distinct},
             two([](T a, T b, Reduction r) {
               return nn::smooth_l1_loss(a, b, {.reduction = r, .beta = 0});
             }),
             term([](double a, double b) { return std::fabs(a - b); }),
             "torch.nn.functional.smooth_l1_loss(x0, x1, reduction='{r}', beta=0)"});
  errors = pair_errors("huber_loss", "a", "b", [](T a, T b) { return nn::huber_loss(a, b); });
  for (const double delta : {-1.0, 0.0, std::nan("")})
    errors.push_back(bad_option(
        "delta",
        [delta] {
          (void)nn::huber_loss(on_device::ones({2}), on_device::ones({2}), {.delta = delta});
        },
        "huber_loss: expected delta > 0, got "));
  add(list,
      {"huber_loss",
       "",
       {Kind::distinct, Kind::distinct},
       two([](T a, T b, Reduction r) {
         return nn::huber_loss(a, b, {.reduction = r, .delta = 1.3});
       }),
       term([](double a, double b) {
         const double d = std::fabs(a - b);
         return d < 1.3 ? d * d / 2 : 1.3 * (d - 0.65);
       }),
       "torch.nn.functional.huber_loss(x0, x1, reduction='{r}', delta=1.3)"},
      errors);
}

void add_probabilities(std::vector<OpCase>& list) {
  add(list,
      {"binary_cross_entropy",
       "",
       {Kind::probability, Kind::probability},
       two([](T a, T b, Reduction r) { return nn::binary_cross_entropy(a, b, {.reduction = r}); }),
       term([](double p, double t) { return -(t * std::log(p) + (1 - t) * std::log(1 - p)); }),
       "torch.nn.functional.binary_cross_entropy(x0, x1, reduction='{r}')"},
      pair_errors("binary_cross_entropy", "p", "target",
                  [](T a, T b) { return nn::binary_cross_entropy(a, b); }));
  add(list,
      {"binary_cross_entropy_with_logits",
       "",
       {Kind::value, Kind::probability},
       two([](T a, T b, Reduction r) {
         return nn::binary_cross_entropy_with_logits(a, b, {.reduction = r});
       }),
       term([](double x, double t) { return (1 - t) * x + reference::softplus(-x); }),
       "torch.nn.functional.binary_cross_entropy_with_logits(x0, x1, reduction='{r}')"},
      pair_errors("binary_cross_entropy_with_logits", "x", "target",
                  [](T a, T b) { return nn::binary_cross_entropy_with_logits(a, b); }));
  add(list, {"binary_cross_entropy_with_logits",
             "weights",
             {Kind::value, Kind::probability},
             two([](T a, T b, Reduction r) {
               return nn::binary_cross_entropy_with_logits(
                   a, b,
                   {.reduction = r,
                    .weight = weight_like(a, {0.7}).reshape({}),
                    .pos_weight = weight_like(a, {2.5}).reshape({})});
             }),
             term([](double x, double t) {
               return 0.7 * ((1 - t) * x + (1 + 1.5 * t) * reference::softplus(-x));
             }),
             "torch.nn.functional.binary_cross_entropy_with_logits(x0, x1, reduction='{r}', "
             "weight=torch.tensor(0.7, dtype=x0.dtype), "
             "pos_weight=torch.tensor(2.5, dtype=x0.dtype))"});
  add(list,
      {"kl_div",
       "",
       {Kind::value, Kind::positive},
       two([](T a, T b, Reduction r) { return nn::kl_div(a, b, {.reduction = r}); }),
       term([](double x, double t) { return t * (std::log(t) - x); }),
       "torch.nn.functional.kl_div(x0, x1, reduction='{r}')"},
      pair_errors("kl_div", "x", "target", [](T a, T b) { return nn::kl_div(a, b); }));
  add(list, {"kl_div",
             "log target",
             {Kind::value, Kind::value},
             two([](T a, T b, Reduction r) {
               return nn::kl_div(a, b, {.reduction = r, .log_target = true});
             }),
             term([](double x, double t) { return std::exp(t) * (t - x); }),
             "torch.nn.functional.kl_div(x0, x1, reduction='{r}', log_target=True)"});
  auto errors = pair_errors("poisson_nll_loss", "x", "target",
                            [](T a, T b) { return nn::poisson_nll_loss(a, b); });
  for (const double eps : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    errors.push_back(bad_option(
        "eps",
        [eps] {
          (void)nn::poisson_nll_loss(on_device::ones({2}), on_device::ones({2}), {.eps = eps});
        },
        "poisson_nll_loss: expected eps >= 0, got "));
  add(list,
      {"poisson_nll_loss",
       "",
       {Kind::value, Kind::positive},
       two([](T a, T b, Reduction r) { return nn::poisson_nll_loss(a, b, {.reduction = r}); }),
       term([](double x, double t) { return std::exp(x) - t * x; }),
       "torch.nn.functional.poisson_nll_loss(x0, x1, reduction='{r}')"},
      errors);
  add(list,
      {"poisson_nll_loss",
       "of rates, full",
       {Kind::positive, Kind::positive},
       two([](T a, T b, Reduction r) {
         return nn::poisson_nll_loss(a, b, {.reduction = r, .log_input = false, .full = true});
       }),
       term([](double x, double t) {
         return x - t * std::log(x + 1e-8) +
                (t > 1 ? t * std::log(t) - t + 0.5 * std::log(2 * 3.14159265358979323846 * t) : 0);
       }),
       "torch.nn.functional.poisson_nll_loss(x0, x1, log_input=False, full=True, "
       "reduction='{r}')"});
  errors = pair_errors("gaussian_nll_loss", "x", "target",
                       [](T a, T b) { return nn::gaussian_nll_loss(a, b, a); });
  for (const double eps : {-1.0, 0.0, std::nan("")})
    errors.push_back(bad_option(
        "eps",
        [eps] {
          (void)nn::gaussian_nll_loss(on_device::ones({2}), on_device::ones({2}),
                                      on_device::ones({2}), {.eps = eps});
        },
        "gaussian_nll_loss: expected eps > 0, got "));
  for (const Shape& shape : {Shape{2}, Shape{3}, Shape{1, 3}})
    errors.push_back(
        {"variance",
         [shape] {
           (void)nn::gaussian_nll_loss(on_device::ones({2, 3}), on_device::ones({2, 3}),
                                       on_device::ones(shape));
         },
         "ShapeError",
         "gaussian_nll_loss: expected variance of shape \\[2, 3\\] or \\[2, 1\\], got "});
  add(list,
      {"gaussian_nll_loss",
       "full",
       {Kind::value, Kind::value, Kind::positive},
       [](Reduction r) {
         return function_of([r](T x, T t, T v) {
           return nn::gaussian_nll_loss(x, t, v, {.reduction = r, .full = true});
         });
       },
       [](const std::vector<Array>& a) {
         Array y(a.at(0).shape);
         for (std::int64_t i = 0; i < y.size(); ++i) {
           const double d = a[0][i] - a[1][i], v = a[2][i];
           y[i] = 0.5 * (std::log(v) + d * d / v) + 0.5 * std::log(2 * 3.14159265358979323846);
         }
         return y;
       },
       "torch.nn.functional.gaussian_nll_loss(x0, x1, x2, full=True, reduction='{r}')"},
      errors);
}

void add_margins(std::vector<OpCase>& list) {
  add(list,
      {"soft_margin_loss",
       "",
       {Kind::value, Kind::value},
       two([](T a, T b, Reduction r) { return nn::soft_margin_loss(a, b, r); }),
       term([](double x, double t) { return reference::softplus(-t * x); }),
       "torch.nn.functional.soft_margin_loss(x0, x1.detach(), reduction='{r}')"},
      pair_errors("soft_margin_loss", "x", "target",
                  [](T a, T b) { return nn::soft_margin_loss(a, b); }));
  for (OpCase& c : list)
    if (c.op == "soft_margin_loss" && reference::count(c.inputs[0].shape) > 0)
      c.differs = {{"gradient of x1", "the target gets its gradient; PyTorch gives it none"}};
  add(list,
      {"hinge_embedding_loss",
       "",
       {Kind::distinct, Kind::nonzero},
       two([](T a, T b, Reduction r) {
         return nn::hinge_embedding_loss(a, signs(b), {.reduction = r, .margin = 0.99});
       }),
       term([](double x, double t) { return t > 0 ? x : reference::positive(0.99 - x); }),
       "torch.nn.functional.hinge_embedding_loss(x0, torch.sign(x1), margin=0.99, "
       "reduction='{r}')"},
      pair_errors("hinge_embedding_loss", "x", "target",
                  [](T a, T b) { return nn::hinge_embedding_loss(a, b); }));
  auto errors = pair_errors("margin_ranking_loss", "a", "b",
                            [](T a, T b) { return nn::margin_ranking_loss(a, b, a); });
  for (const BadInput& e : pair_errors("margin_ranking_loss", "a", "target",
                                       [](T a, T t) { return nn::margin_ranking_loss(a, a, t); }))
    if (e.argument == "target") errors.push_back(e);
  add(list,
      {"margin_ranking_loss",
       "",
       {Kind::distinct, Kind::distinct, Kind::nonzero},
       [](Reduction r) {
         return function_of([r](T a, T b, T t) {
           return nn::margin_ranking_loss(a, b, signs(t), {.reduction = r, .margin = 0.29});
         });
       },
       [](const std::vector<Array>& a) {
         Array y(a.at(0).shape);
         for (std::int64_t i = 0; i < y.size(); ++i)
           y[i] = reference::positive(0.29 - (a[2][i] > 0 ? 1 : -1) * (a[0][i] - a[1][i]));
         return y;
       },
       "torch.nn.functional.margin_ranking_loss(x0, x1, torch.sign(x2), margin=0.29, "
       "reduction='{r}')"},
      errors);
  for (const Reduction r : kReductions) {
    OpCase c;
    c.op = "cosine_embedding_loss";
    c.variant = name_of(r);
    c.inputs = {{{4, 3}}, {{4, 3}}, {{4}, Kind::nonzero}};
    c.call = function_of([r](T a, T b, T t) {
      return nn::cosine_embedding_loss(a, b, signs(t), {.reduction = r, .margin = 0.1});
    });
    c.expected = expecting([r](const Array& a, const Array& b, const Array& t) {
      return reference::joined(
          reference::over_vectors(a,
                                  [&](std::int64_t begin, std::int64_t d) {
                                    const double cosine = reference::cosine(a, b, begin, d);
                                    return t[begin / d] > 0 ? 1 - cosine
                                                            : reference::positive(cosine - 0.1);
                                  }),
          name_of(r));
    });
    c.dtypes = floating_dtypes();
    c.accuracy = Accuracy::tolerance;
    c.torch = with(
        "torch.nn.functional.cosine_embedding_loss(x0, x1, torch.sign(x2), margin=0.1, "
        "reduction='{r}')",
        r);
    if (r == Reduction::none) {
      c.errors = pair_errors("cosine_embedding_loss", "a", "b", [](T a, T b) {
        return nn::cosine_embedding_loss(a, b, on_device::ones({}));
      });
      c.errors.push_back({"a",
                          [] {
                            (void)nn::cosine_embedding_loss(on_device::ones({1, 2, 3}),
                                                            on_device::ones({1, 2, 3}),
                                                            on_device::ones({}));
                          },
                          "ShapeError", "expected a \\[d\\] or \\[n, d\\]"});
      for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 1}})
        c.errors.push_back(
            {"target",
             [shape] {
               (void)nn::cosine_embedding_loss(on_device::ones({2, 3}), on_device::ones({2, 3}),
                                               on_device::ones(shape));
             },
             "ShapeError", "cosine_embedding_loss: expected target of shape \\[2\\], got "});
    }
    list.push_back(c);
    c.errors = {};
    c.op = "triplet_margin_loss";
    c.inputs = {{{4, 3}, Kind::distinct}, {{4, 3}, Kind::distinct}, {{4, 3}, Kind::distinct}};
    const bool swap = r == Reduction::sum;
    c.call = function_of([r, swap](T a, T p, T n) {
      return nn::triplet_margin_loss(a, p, n, {.reduction = r, .margin = 19, .swap = swap});
    });
    c.expected = expecting([r, swap](const Array& a, const Array& p, const Array& n) {
      return reference::joined(
          reference::over_vectors(
              a,
              [&](std::int64_t begin, std::int64_t d) {
                double far = reference::distance(a, n, begin, d, 1e-6);
                if (swap) far = std::min(far, reference::distance(p, n, begin, d, 1e-6));
                return reference::positive(reference::distance(a, p, begin, d, 1e-6) - far + 19);
              }),
          name_of(r));
    });
    c.torch = with(str("torch.nn.functional.triplet_margin_loss(x0, x1, x2, margin=19, swap=",
                       swap ? "True" : "False", ", reduction='{r}')"),
                   r);
    if (r == Reduction::none) {
      c.errors = pair_errors("triplet_margin_loss", "anchor", "positive",
                             [](T a, T b) { return nn::triplet_margin_loss(a, b, a); });
      for (const BadInput& e : pair_errors("triplet_margin_loss", "a", "negative", [](T a, T t) {
             return nn::triplet_margin_loss(a, a, t);
           }))
        if (e.argument == "negative") c.errors.push_back(e);
      for (const double margin : {-1.0, 0.0, std::nan("")})
        c.errors.push_back(bad_option(
            "margin",
            [margin] {
              (void)nn::triplet_margin_loss(on_device::ones({2}), on_device::ones({2}),
                                            on_device::ones({2}), {.margin = margin});
            },
            "triplet_margin_loss: expected margin > 0, got "));
    }
    list.push_back(c);
    c.errors = {};
    c.op = "capsule_margin_loss";
    c.inputs = {{{4, 3}, Kind::distinct}, {{4}, Kind::index, 3, false}};
    c.call = function_of(
        [r](T x, T labels) { return nn::capsule_margin_loss(x, labels, {.reduction = r}); });
    c.expected = expecting([r](const Array& x, const Array& labels) {
      return reference::joined(reference::capsule_terms(x, labels, 0.9, 0.1, 0.5), name_of(r));
    });
    c.torch = {};
    if (r == Reduction::none)
      for (const Shape& shape : {Shape{3}, Shape{2, 1}, Shape{}})
        c.errors.push_back({"labels",
                            [shape] {
                              (void)nn::capsule_margin_loss(
                                  on_device::ones({2, 3}),
                                  on_device::zeros(shape, {.dtype = DType::int64}));
                            },
                            "ShapeError", "capsule_margin_loss: expected labels \\[2\\], got "});
    list.push_back(c);
  }
}

void add_labels(std::vector<OpCase>& list) {
  struct Labelled {
    const char* variant;
    Sizes logits, labels;
    Classes classes;
    const char* torch;
  };
  const std::vector<double> weight{0.5, 2, 1.25};
  const char* tensor_of_weight = "weight=torch.tensor([0.5, 2, 1.25], dtype=x0.dtype), ";
  for (const Labelled& l : std::vector<Labelled>{
           {"plain", {4, 3}, {4}, {}, ""},
           {"weight", {5, 3}, {5}, {weight, 0, -100}, "w"},
           {"label smoothing", {4, 3}, {4}, {{}, 0.1, -100}, "label_smoothing=0.1, "},
           {"ignored", {7, 3}, {7}, {{}, 0, 1}, "ignore_index=1, "},
           {"all options, two dims more",
            {2, 3, 2, 2},
            {2, 2, 2},
            {weight, 0.2, 2},
            "wlabel_smoothing=0.2, ignore_index=2, "},
           {"one class", {3, 1}, {3}, {{}, 0.3, -100}, "label_smoothing=0.3, "},
           {"one dim more", {2, 3, 3}, {2, 3}, {}, ""}})
    for (const Reduction r : kReductions) {
      // NaN where all labels are one, as in an expanded tensor
      if (r == Reduction::mean && std::string(l.variant) == "ignored") continue;
      std::string options = l.torch;
      if (options.rfind('w', 0) == 0) options = tensor_of_weight + options.substr(1);
      const Classes k = l.classes;
      OpCase c;
      c.op = "cross_entropy";
      c.variant = str(l.variant, ", ", name_of(r), ", by options");
      c.inputs = {{l.logits}, {l.labels, Kind::index, reference::at(l.logits, 1), false}};
      c.call = function_of([r, k](T x, T y) {
        return nn::cross_entropy(x, y,
                                 {.reduction = r,
                                  .weight = k.weight.empty() ? Tensor() : weight_like(x, k.weight),
                                  .ignore_index = k.ignored,
                                  .label_smoothing = k.smoothing});
      });
      c.expected = expecting([r, k](const Array& x, const Array& y) {
        double divisor = 0;
        const Array terms = reference::label_terms(reference::log_softmax(x, 1), y, k, divisor);
        return reference::joined(terms, divisor, name_of(r));
      });
      c.dtypes = floating_dtypes();
      c.accuracy = Accuracy::tolerance;
      c.torch =
          with("torch.nn.functional.cross_entropy(x0, x1, " + options + "reduction='{r}')", r);
      list.push_back(c);
      if (k.smoothing > 0) continue;
      c.op = "nll_loss";
      c.call = function_of([r, k](T x, T y) {
        return nn::nll_loss(x, y,
                            {.reduction = r,
                             .weight = k.weight.empty() ? Tensor() : weight_like(x, k.weight),
                             .ignore_index = k.ignored});
      });
      c.expected = expecting([r, k](const Array& x, const Array& y) {
        double divisor = 0;
        const Array terms = reference::label_terms(x, y, k, divisor);
        return reference::joined(terms, divisor, name_of(r));
      });
      c.torch = with("torch.nn.functional.nll_loss(x0, x1, " + options + "reduction='{r}')", r);
      list.push_back(c);
    }
  for (const Reduction r : kReductions) {
    OpCase c;
    c.op = "cross_entropy";
    c.variant = str("probabilities, ", name_of(r));
    c.inputs = {{{2, 3, 2}}, {{2, 3, 2}, Kind::positive}};
    const Classes k{weight, 0.1, -100};
    c.call = function_of([r, k](T x, T y) {
      return nn::cross_entropy(
          x.transpose(1, 2).reshape({4, 3}), y.transpose(1, 2).reshape({4, 3}),
          {.reduction = r, .weight = weight_like(x, k.weight), .label_smoothing = 0.1});
    });
    c.expected = expecting([r, k](const Array& x, const Array& y) {
      Array terms = reference::probability_terms(reference::log_softmax(x, 1), y, k);
      terms.shape = {4};
      return reference::joined(terms, name_of(r));
    });
    c.dtypes = {DType::float32, DType::float64};
    c.accuracy = Accuracy::tolerance;
    c.torch = with(std::string("torch.nn.functional.cross_entropy(x0.transpose(1, 2).reshape(4, "
                               "3), x1.transpose(1, 2).reshape(4, 3), ") +
                       tensor_of_weight + "label_smoothing=0.1, reduction='{r}')",
                   r);
    list.push_back(c);
    c.op = "mse_loss";
    c.variant = str(name_of(r), ", by name");
    c.inputs = {{{2, 3}}, {{2, 3}}};
    c.call = function_of([r](T a, T b) { return nn::mse_loss(a, b, r); });
    c.expected = expecting([r](const Array& a, const Array& b) {
      return reference::joined(
          reference::zip(a, b, [](double x, double y) { return (x - y) * (x - y); }), name_of(r));
    });
    c.torch = with("torch.nn.functional.mse_loss(x0, x1, reduction='{r}')", r);
    list.push_back(c);
  }
  // Sum and count: two results, of which the second is no function of the logits.
  OpCase c;
  c.op = "cross_entropy";
  c.variant = "the sum of cross_entropy_sum";
  c.inputs = {{{5, 3}}, {{5}, Kind::index, 3, false}};
  c.call = function_of([](T x, T y) {
    return nn::cross_entropy_sum(x, y,
                                 {.weight = weight_like(x, {0.5, 2, 1.25}), .ignore_index = 1})
        .sum;
  });
  c.expected = expecting([](const Array& x, const Array& y) {
    double divisor = 0;
    return reference::sum(
        reference::label_terms(reference::log_softmax(x, 1), y, {{0.5, 2, 1.25}, 0, 1}, divisor));
  });
  c.dtypes = {DType::float32, DType::float64};
  c.accuracy = Accuracy::tolerance;
  list.push_back(c);
  c.op = "nll_loss";
  c.variant = "the sum of nll_loss_sum";
  c.call = function_of([](T x, T y) { return nn::nll_loss_sum(x, y).sum; });
  c.expected = expecting([](const Array& x, const Array& y) {
    double divisor = 0;
    return reference::sum(reference::label_terms(x, y, {}, divisor));
  });
  list.push_back(c);
  c.op = "mse_loss";
  c.variant = "the sum of mse_loss_sum";
  c.inputs = {{{2, 3}}, {{2, 3}}};
  c.call = function_of([](T a, T b) { return nn::mse_loss_sum(a, b).sum; });
  c.expected =
      expecting([](const Array& a, const Array& b) { return reference::mse_loss(a, b, false); });
  list.push_back(c);
}

}  // namespace

void add_loss_cases(std::vector<OpCase>& list) {
  add_distances(list);
  add_probabilities(list);
  add_margins(list);
  add_labels(list);
  on_device::add_loss_errors(list);
}

}  // namespace braid::test

// Ops in LibTorch's form: autograd::Function, grad and backward.
#include <braid/core/function.hpp>

#include <braid/core/checkpoint.hpp>

#include "shorthand.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {
namespace {

using autograd::AutogradContext;
using autograd::variable_list;

/// x w f: saves both tensors and a number.
struct Product : autograd::Function<Product> {
  static Tensor forward(AutogradContext* ctx, Tensor x, const Tensor& w, double factor) {
    CHECK_FALSE((x * w).requires_grad());
    ctx->save_for_backward({x, w});
    ctx->saved_data["factor"] = factor;
    return x * w * factor;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const double factor = ctx->saved_data["factor"].toDouble();
    return {gradients[0] * saved[1] * factor,
            ctx->needs_input_grad(1) ? gradients[0] * saved[0] * factor : Tensor(), Tensor()};
  }
};

/// exp(x), which saves its output.
struct Exp : autograd::Function<Exp> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = exp(x);
    ctx->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    return {ctx->get_saved_variables()[0] * gradients[0]};
  }
};

/// x, 3 x, and the number of elements above 0, which has no gradient.
struct Several : autograd::Function<Several> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x,
                               const std::optional<Tensor>& shift, bool zeros) {
    const Tensor count = sum(x > 0).to(x.dtype());
    ctx->mark_non_differentiable({count});
    ctx->set_materialize_grads(zeros);
    ctx->saved_data["zeros"] = zeros;
    return {x, shift ? 3 * x + *shift : 3 * x, count};
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    for (const Tensor& g : gradients) {
      if (ctx->saved_data["zeros"].toBool()) CHECK(g.defined());
      else CHECK(g.defined() == g.is_same(gradients[1]));
    }
    const Tensor dx = gradients[0].defined() ? gradients[0] + 3 * gradients[1] : 3 * gradients[1];
    return {dx, gradients[1], Tensor()};
  }
};

/// x, without a gradient, and a view of x.
struct Views : autograd::Function<Views> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x) {
    ctx->mark_non_differentiable({x});
    return {x, x.view({2, 1})};
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[1].view({2}) * 5};
  }
};

/// Doubles its input in place.
struct Double : autograd::Function<Double> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0] * 2};
  }
};

/// Multiplies its first input in place.
struct Multiply : autograd::Function<Multiply> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w) {
    ctx->save_for_backward({w});
    x.mul_(w);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    return {gradients[0] * ctx->get_saved_variables()[0], gradients[0]};
  }
};

/// x, whose backward returns the second argument.
struct Returns : autograd::Function<Returns> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& gradient) {
    ctx->save_for_backward({gradient});
    return x.clone();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list&) {
    return {ctx->get_saved_variables()[0], Tensor()};
  }
};

enum class Wrong { few, many, number, none, unassigned };
/// x, with a backward that returns what it must not.
struct Bad : autograd::Function<Bad> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, Wrong how) {
    ctx->saved_data["how"] = how;
    return x.clone();
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor& g = gradients[0];
    switch (ctx->saved_data["how"].get<Wrong>()) {
      case Wrong::few: return {g};
      case Wrong::many: return {g, Tensor(), g};
      case Wrong::number: return {g, g};
      case Wrong::unassigned: return {g * ctx->saved_data["factor"].toDouble(), Tensor()};
      case Wrong::none: break;
    }
    return {g, Tensor(), Tensor()};
  }
};

Tensor of(const std::vector<double>& v) {
  return tensor(v, {.device = here(), .dtype = DType::float64}).requires_grad_();
}

}  // namespace

TEST_CASE("Function: first and second gradients", "[autograd]") {
  CHECK_GRAD([](const Tensor& x, const Tensor& w) { return Product::apply(x, w, 2.0); },
             of({1, -2, 3}), of({0.5, 4, -1}));
  CHECK_GRAD([](const Tensor& x) { return Exp::apply(x); }, of({0.5, -1}));
  CHECK_GRAD([](const Tensor& x) { return checkpoint([](T t) { return Exp::apply(sin(t)); }, x); },
             of({0.5, -1}));
  const Tensor x = of({1, 2}), y = Product::apply(x, of({3, 4}).detach(), 0.5);
  CHECK(std::string(y.grad_fn()->name()).ends_with("Product"));
  CHECK(y.output_nr() == 0);
  y.sum().backward();
  CHECK(list(x.grad()) == List{1.5, 2});
}

TEST_CASE("Function: several results, arguments that are none, undefined gradients", "[autograd]") {
  for (const bool zeros : {true, false}) {
    const Tensor x = of({1, -2}), shift = of({5, 5});
    const variable_list y = Several::apply(x, std::optional(shift), zeros);
    CHECK_FALSE(y[0].is_same(x));
    CHECK((y[0].requires_grad() && y[1].output_nr() == 1 && !y[2].requires_grad()));
    CHECK((list(y[1]) == List{8, -1} && y[2].item<double>() == 1));
    y[1].sum().backward();
    CHECK((list(x.grad()) == List{3, 3} && list(shift.grad()) == List{1, 1}));
    CHECK(x.is_leaf());
  }
  const Tensor x = of({1, -2});
  Several::apply(x, std::optional<Tensor>(), true)[1].sum().backward();
  CHECK(list(x.grad()) == List{3, 3});
}

TEST_CASE("Function: results that share the memory of an argument", "[autograd]") {
  const Tensor x = of({1, 2}), y = x * 2;
  const variable_list results = Views::apply(y);
  CHECK((!results[0].requires_grad() && y.requires_grad()));
  square(results[1]).sum().backward();
  CHECK(list(x.grad()) == List{40, 80});
}

TEST_CASE("Function: without gradients nothing is recorded", "[autograd]") {
  const Tensor x = of({1, 2}), constant = x.detach();
  CHECK_FALSE(Exp::apply(constant).requires_grad());
  const NoGrad guard;
  CHECK_FALSE(Exp::apply(x).requires_grad());
}

TEST_CASE("Function: a change in place", "[autograd][inplace]") {
  const Tensor x = of({1, 2}), y = x * 3, same = y;
  const Tensor z = Double::apply(y);
  CHECK((z.is_same(y) && list(same) == List{6, 12}));
  (z * z).sum().backward();
  CHECK(list(x.grad()) == List{72, 144});
  for (const Tensor& t : {x, (x * 3)[0]})
    CHECK_THROWS_TEXT(AutogradError,
                      "Double: mark_dirty: expected a tensor that is neither a view nor a leaf",
                      Double::apply(t));
  // the base of a view has to learn of the change, also if nothing required a gradient before
  const Tensor rows = ones({2, 2}, {.device = here()}), whole = ones({2}, {.device = here()});
  CHECK_THROWS_TEXT(AutogradError, "Multiply: mark_dirty: expected a tensor that is neither a view",
                    Multiply::apply(rows[0], x));
  Multiply::apply(whole, x);
  CHECK(whole.requires_grad());
}

TEST_CASE("Function: what backward must not return, and changed inputs", "[autograd]") {
  const Tensor x = of({1, 2});
  const auto refuse = [&]<class E = AutogradError>(Wrong how, const char* text, E* = nullptr) {
    CHECK_THROWS_TEXT(E, text, Bad::apply(x, how).sum().backward());
    CHECK_FALSE(x.grad().defined());
  };
  refuse(Wrong::few, "Bad::backward: expected 2 gradients, one for each argument*got 1");
  refuse(Wrong::many, "Bad::backward: expected 2 gradients, one for each argument*got 3");
  refuse(Wrong::number, "Bad::backward: expected an undefined Tensor() as gradient 1");
  refuse(Wrong::unassigned, "saved_data: expected a value of the type that is asked for, got none",
         static_cast<ArgumentError*>(nullptr));
  Bad::apply(x, Wrong::none).sum().backward();
  CHECK(list(x.grad()) == List{1, 1});
  const Tensor w = of({1, 1}).detach(), y = Product::apply(x, w, 1.0);
  w.add_(1);
  CHECK_THROWS_TEXT(AutogradError, "changed in place", y.sum().backward());
}

TEST_CASE("Function: gradients of another shape or dtype than the input", "[autograd]") {
  const auto gradient = [](const Shape& shape, DType dtype) {
    const Tensor x = of({1, 2}), whole = x * 2;  // no leaf: the gradient goes on to another node
    Returns::apply(whole, braid::full(shape, 3.0, {.device = here(), .dtype = dtype}))
        .sum()
        .backward();
    return list(x.grad());
  };
  CHECK(gradient({2}, DType::float32) == List{6, 6});
  CHECK(gradient({3, 2}, DType::float64) == List{18, 18});
  CHECK(gradient({2, 1, 2}, DType::int64) == List{12, 12});
  for (const Shape& wrong : {Shape{3}, Shape{1}, Shape{2, 1}, Shape{}})
    CHECK_THROWS_TEXT(AutogradError,
                      "Returns::backward: expected as gradient 0 a tensor on*of shape [2] or one",
                      gradient(wrong, DType::float64));
}

TEST_CASE("autograd::grad and backward: LibTorch's arguments", "[autograd]") {
  const Tensor x = of({1, 2}), w = of({3, 4}), y = x * x * w;
  const variable_list g = autograd::grad({y.sum()}, {x, w}, {}, /*retain_graph=*/true);
  CHECK((list(g[0]) == List{6, 16} && list(g[1]) == List{1, 4}));
  CHECK(list(autograd::grad({y}, {x}, {of({1, 0}).detach()}, {}, /*create_graph=*/true)[0]) ==
        List{6, 0});
  CHECK_FALSE(
      autograd::grad({y.sum()}, {of({1})}, {}, {}, false, /*allow_unused=*/true)[0].defined());
  autograd::backward({(x * w).sum(), x.sum()});
  CHECK(list(x.grad()) == List{4, 5});
}

}  // namespace braid::test::on_device

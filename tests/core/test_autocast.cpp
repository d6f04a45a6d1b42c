// Autocast: the dtype of each op's result, and of the gradients.
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor of_type(const std::vector<std::int64_t>& shape, DType dtype, std::uint64_t seed) {
  return random_tensor(shape, dtype, here(), seed, 0.25, 1);
}

struct Op {
  const char* name;
  std::function<Tensor(T x, T w)> call;  // of matrices [4, 4]
};

const std::vector<Op>& low_ops() {
  static const std::vector<Op> ops{
      {"matmul", [](T x, T w) { return matmul(x, w); }},
      {"mm", [](T x, T w) { return mm(x, w); }},
      {"bmm", [](T x, T w) { return bmm(x.unsqueeze(0), w.unsqueeze(0)); }},
      {"mv", [](T x, T w) { return mv(x, w[0]); }},
      {"dot", [](T x, T w) { return dot(x[0], w[0]); }},
      {"tensordot", [](T x, T w) { return tensordot(x, w, 1); }},
      {"tensordot over dims", [](T x, T w) { return tensordot(x, w, {0}, {0}); }},
      {"einsum", [](T x, T w) { return einsum("ij,jk->ik", {x, w}); }},
      {"einsum of a vector", [](T x, T w) { return einsum("ij,j->i", {x, w[0]}); }},
      {"addmm", [](T x, T w) { return addmm(x, x, w); }},
      {"addmv", [](T x, T w) { return addmv(x[0], x, w[0]); }},
      {"addr", [](T x, T w) { return addr(x, x[0], w[0]); }},
      {"baddbmm", [](T x, T w) { return baddbmm(x, x.unsqueeze(0), w.unsqueeze(0)); }},
      {"addbmm", [](T x, T w) { return addbmm(x, x.unsqueeze(0), w.unsqueeze(0)); }},
      {"inner", [](T x, T w) { return inner(x, w); }},
      {"linear", [](T x, T w) { return linear(x, w, w[0]); }},
      {"linear_relu", [](T x, T w) { return linear_relu(x, w, w[0]); }},
      {"linear_gelu", [](T x, T w) { return linear_gelu(x, w, w[0]); }},
      {"linear_add", [](T x, T w) { return linear_add(x, w, w[0], matmul(x, w)); }},
      {"conv1d", [](T x, T w) { return conv1d(x.unsqueeze(0), w.unsqueeze(2)); }},
      {"conv2d", [](T x, T w) { return conv2d(x.view({1, 4, 2, 2}), w.view({4, 4, 1, 1})); }},
      {"conv_transpose1d",
       [](T x, T w) { return conv_transpose1d(x.unsqueeze(0), w.unsqueeze(2)); }},
      {"conv_transpose2d",
       [](T x, T w) { return conv_transpose2d(x.view({1, 4, 2, 2}), w.view({4, 4, 1, 1})); }},
      {"attention", [](T x, T w) { return scaled_dot_product_attention(x, w, w); }},
      {"attention, groups",
       [](T x, T w) {
         const Tensor k = w.unsqueeze(0);
         return scaled_dot_product_attention(stack({x, x}), k, k, {}, 0, false, {}, true);
       }},
      {"varlen_attn",
       [](T x, T w) {
         const Tensor starts = tensor({0, 1, 4}, {.device = here(), .dtype = DType::int32}),
                      k = w.unsqueeze(1);
         return varlen_attn(x.unsqueeze(1), k, k, starts, starts, 3, 3);
       }},
  };
  return ops;
}

const std::vector<Op>& full_ops() {
  const auto labels = [] { return zeros({4}, {.device = here(), .dtype = DType::int64}); };
  static const std::vector<Op> ops{
      {"softmax", [](T x, T) { return softmax(x, -1); }},
      {"log_softmax", [](T x, T) { return log_softmax(x, 0); }},
      {"softplus", [](T x, T) { return softplus(x); }},
      {"cross_entropy", [=](T x, T) { return cross_entropy(x, labels()); }},
      {"cross_entropy, sum and count",
       [=](T x, T) { return cross_entropy(sum_and_count, x, labels()).sum; }},
      {"nll_loss", [=](T x, T) { return nll_loss(x, labels()); }},
      {"mse_loss", [](T x, T w) { return mse_loss(x, w); }},
      {"mse_loss, each", [](T x, T w) { return mse_loss(x, w, Reduction::none); }},
      {"layer_norm", [](T x, T w) { return layer_norm(x, {4}, w[0], w[0]); }},
      {"rms_norm", [](T x, T w) { return rms_norm(x, {4}, w[0]); }},
      {"group_norm", [](T x, T w) { return group_norm(x, 2, w[0], w[0]); }},
      {"batch_norm", [](T x, T w) { return batch_norm(x, Tensor(), Tensor(), w[0], w[0], true); }},
      {"exp", [](T x, T) { return exp(x); }},
      {"exp2", [](T x, T) { return exp2(x); }},
      {"expm1", [](T x, T) { return expm1(x); }},
      {"log", [](T x, T) { return log(x); }},
      {"log2", [](T x, T) { return log2(x); }},
      {"log10", [](T x, T) { return log10(x); }},
      {"log1p", [](T x, T) { return log1p(x); }},
      {"pow", [](T x, T) { return pow(x, 3); }},
      {"pow of tensors", [](T x, T w) { return pow(x, w); }},
      {"pow of a number", [](T x, T) { return pow(2.5, x); }},
      {"rsqrt", [](T x, T) { return rsqrt(x); }},
      {"reciprocal", [](T x, T) { return reciprocal(x); }},
      {"tan", [](T x, T) { return tan(x); }},
      {"acos", [](T x, T) { return acos(x); }},
      {"sinh", [](T x, T) { return sinh(x); }},
      {"erf", [](T x, T) { return erf(x); }},
      {"sum", [](T x, T) { return x.sum(); }},
      {"sum of a dim", [](T x, T) { return sum(x, 1); }},
      {"prod", [](T x, T) { return prod(x, {0}); }},
      {"cumsum", [](T x, T) { return cumsum(x, 0); }},
      {"cumprod", [](T x, T) { return cumprod(x, 0); }},
      {"norm", [](T x, T) { return norm(x, 2, {0}); }},
      {"logsumexp", [](T x, T) { return logsumexp(x, {0}); }},
  };
  return ops;
}

/// Calls the op for each pair of dtypes with which Autocast must give `want`.
void check_types(const Op& op, DType low, DType want) {
  for (const auto& [tx, tw] : {std::pair(DType::float32, DType::float32),
                               std::pair(low, DType::float32), std::pair(low, low)}) {
    INFO(op.name << " of " << str(tx) << " and " << str(tw) << ", " << str(low));
    const Tensor x = of_type({4, 4}, tx, 1).requires_grad_(),
                 w = of_type({4, 4}, tw, 2).requires_grad_();
    Tensor y;
    {
      const Autocast guard(low);
      y = op.call(x, w);
      CHECK(autocast_dtype() == low);
    }
    CHECK(y.dtype() == want);
    // what the op does to converted arguments
    CHECK_SAME_BITS(y.detach(), op.call(x.detach().to(want), w.detach().to(want)));
    y.sum().backward();
    CHECK(x.grad().dtype() == tx);
    if (w.grad().defined()) CHECK(w.grad().dtype() == tw);
  }
  const Tensor x = of_type({4, 4}, DType::float64, 1), w = of_type({4, 4}, DType::float64, 2);
  const Autocast guard(low);
  CHECK(op.call(x, w).dtype() == DType::float64);
}

}  // namespace

TEST_CASE("autocast: products in 16 bits, and what needs digits in float32", "[autocast]") {
  for (const DType low : {DType::bfloat16, DType::float16}) {
    for (const Op& op : low_ops()) check_types(op, low, low);
    for (const Op& op : full_ops()) check_types(op, low, DType::float32);
  }
}

TEST_CASE("autocast: all other ops keep the dtype, or take the wider one", "[autocast]") {
  const Tensor low = of_type({4, 4}, DType::bfloat16, 1), full = of_type({4, 4}, DType::float32, 2);
  const Autocast guard;
  CHECK(autocast_dtype() == DType::bfloat16);
  CHECK((low + low).dtype() == DType::bfloat16);
  CHECK((low + full).dtype() == DType::float32);
  CHECK(relu(low).dtype() == DType::bfloat16);
  CHECK(gelu(low).dtype() == DType::bfloat16);
  CHECK(tanh(low).dtype() == DType::bfloat16);
  CHECK(cat({low, full}).dtype() == DType::float32);
  CHECK(linear_add(full, full, {}, low).dtype() == DType::bfloat16);
  const Tensor sum = linear_add(full, full, low[0], full);
  CHECK(sum.dtype() == DType::float32);
  CHECK_SAME_BITS(sum, linear(full, full, low[0]) + full);
  CHECK_THROWS_AS((void)linear_add(full, full, {}, full[0]), ShapeError);
  const Tensor whole = ones({2, 2}, {.device = here(), .dtype = DType::int64});
  CHECK(matmul(whole, whole).dtype() == DType::int64);
}

TEST_CASE("autocast: einsum lowers products of matrices alone", "[autocast]") {
  const Tensor low = of_type({4, 4}, DType::bfloat16, 1), full = of_type({4, 4}, DType::float32, 2);
  const Autocast guard;
  for (const char* equation : {"ij->j", "ii->", "ij->ji"}) {
    INFO(equation);
    CHECK(einsum(equation, {full}).dtype() == DType::float32);
    CHECK(einsum(equation, {low}).dtype() == DType::bfloat16);
  }
  for (const char* equation : {"ij,ij->ij", "ij,kl->ijkl"}) {
    INFO(equation);
    CHECK(einsum(equation, {full, full}).dtype() == DType::float32);
    CHECK(einsum(equation, {low, full}).dtype() == DType::float32);
    CHECK(einsum(equation, {low, low}).dtype() == DType::bfloat16);
  }
  CHECK_THROWS_AS((void)einsum("ij,ij->ij", {full, full.to(DType::float64)}), DTypeError);
}

TEST_CASE("autocast: a dtype that the caller names is that of the result", "[autocast]") {
  const Tensor x = of_type({4, 4}, DType::float32, 1);
  const auto check = [&] {
    for (const DType t : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      INFO(str(t));
      CHECK(softmax(x, -1, t).dtype() == t);
      CHECK(log_softmax(x, 0, t).dtype() == t);
      CHECK(sum(x, t).dtype() == t);
      CHECK(sum(x, {0}, true, t).dtype() == t);
      CHECK(mean(x, t).dtype() == t);
      CHECK(norm(x, 2, t).dtype() == t);
      CHECK(norm(x, 2, {0}, false, t).dtype() == t);
    }
    for (const DType t : {DType::int32, DType::int64, DType::uint8, DType::bool_})
      CHECK(sum(x, t).dtype() == t);
    CHECK(sum(full({3}, 100, {.device = here()}), DType::uint8).item<std::int64_t>() == 44);
    CHECK(sum(ones({3}, {.device = here()}), DType::bool_).item<bool>());
  };
  check();
  const Autocast guard;
  check();
}

TEST_CASE("autocast: values that are written by index", "[autocast]") {
  const Tensor low = of_type({2, 2}, DType::bfloat16, 1), full = of_type({2, 2}, DType::float32, 2),
               index = zeros({2, 2}, {.device = here(), .dtype = DType::int64});
  const auto calls = [&] { (void)scatter_add(full, 0, index, low); };
  CHECK_THROWS_AS(calls(), DTypeError);
  const Autocast guard;
  const Tensor want = scatter_add(full, 0, index, low.to(DType::float32));
  CHECK_SAME_BITS(scatter_add(full, 0, index, low), want);
  CHECK(scatter_add(low, 0, index, full).dtype() == DType::float32);
  CHECK(scatter_add(low, 0, index, low).dtype() == DType::bfloat16);
  CHECK_THROWS_AS((void)scatter_add(full, 0, index, low.to(DType::float64)), DTypeError);
  const Tensor y = full.clone(), rows = index[0].slice(0, 0, 1);
  y.index_put_({rows}, low[1]);
  CHECK_SAME_BITS(y[0], low[1].to(DType::float32));
  CHECK(low.index_put({rows}, full[1]).dtype() == DType::bfloat16);
  CHECK_THROWS_AS(y.index_put_({rows}, low[1].to(DType::float64)), DTypeError);
}

TEST_CASE("autocast: guards nest, and end with their scope", "[autocast]") {
  CHECK_FALSE(autocast_dtype().has_value());
  const Tensor x = of_type({4, 4}, DType::float32, 1);
  {
    const Autocast outer(DType::float16);
    {
      const Autocast inner(DType::bfloat16);
      CHECK(matmul(x, x).dtype() == DType::bfloat16);
      const Autocast off(DType::bfloat16, false);
      CHECK(matmul(x, x).dtype() == DType::float32);
    }
    CHECK(matmul(x, x).dtype() == DType::float16);
    CHECK_THROWS_TEXT(ShapeError, "matmul", (void)matmul(x, x.slice(0, 0, 3)));
    CHECK(autocast_dtype() == DType::float16);
  }
  CHECK(matmul(x, x).dtype() == DType::float32);
  CHECK_THROWS_TEXT(DTypeError, "Autocast: expected float16 or bfloat16, got float32",
                    Autocast(DType::float32));
}

TEST_CASE("autocast: backward inside of it computes as outside", "[autocast]") {
  const Tensor x = of_type({4, 4}, DType::float32, 1), w = of_type({4, 4}, DType::float32, 2);
  std::vector<Tensor> gradients;
  for (const bool inside : {false, true}) {
    const Tensor leaf = w.detach().clone().requires_grad_();
    std::optional<Autocast> guard(std::in_place);
    const Tensor loss = mse_loss(matmul(matmul(x, leaf), leaf), x);
    if (!inside) guard.reset();
    loss.backward();
    gradients.push_back(leaf.grad());
  }
  CHECK_SAME_BITS(gradients[0], gradients[1]);
}

TEST_CASE("autocast: a checkpointed part computes again as it did", "[autocast][recompute]") {
  const Tensor x = of_type({4, 4}, DType::float32, 1);
  std::vector<Tensor> gradients;
  for (const bool again : {false, true}) {
    const Tensor w = of_type({4, 4}, DType::float32, 2).requires_grad_();
    const auto f = [&](T t) { return tanh(matmul(relu(matmul(t, w)), w)); };
    Tensor y;
    {
      const Autocast guard;
      y = again ? checkpoint(f, x) : f(x);
    }
    y.sum().backward();
    gradients.push_back(w.grad());
  }
  CHECK_SAME_BITS(gradients[0], gradients[1]);
}

}  // namespace braid::test::on_device

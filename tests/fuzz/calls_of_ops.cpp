// Calls of the ops in core/ops. An op that is in no list of core/internal (unary.def,
// binary.def, activation.def, kernels.def) gets a line here: core.op_symbols checks its name.
#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/attention.hpp>
#include <braid/core/ops/conv.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/dropout.hpp>
#include <braid/core/ops/einsum.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/index.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/loss.hpp>
#include <braid/core/ops/norm.hpp>
#include <braid/core/ops/pool.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/rnn.hpp>
#include <braid/core/ops/scan.hpp>
#include <braid/core/ops/shape.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/core/ops/sort.hpp>
#include <braid/core/random.hpp>

#include "calls.hpp"

namespace braid::fuzz {
namespace {

using T = Tensor;
constexpr DType kFloat = DType::float32;

// Arguments of a function, drawn by their types; a second tensor often fits the first.
struct Arguments {
  Draw& d;
  bool first = true;
  T draw(const T*) { return std::exchange(first, false) ? d.tensor() : d.like(); }
  [[nodiscard]] I draw(const I*) const { return d.one_in(2) ? d.integer() : d.dim(); }
  [[nodiscard]] bool draw(const bool*) const { return d.flag(); }
  [[nodiscard]] double draw(const double*) const { return d.real(); }
  [[nodiscard]] std::string_view draw(const std::string_view*) const {
    return d.flag() ? "none" : d.flag() ? "tanh" : "";
  }
  template <class A> std::optional<A> draw(const std::optional<A>*) {
    if (d.flag()) return std::nullopt;
    return draw(static_cast<const A*>(nullptr));
  }
};
template <class R, class... A> List drawn(Draw& d, R (*f)(A...)) {
  Arguments from{d};
  // braces: from left to right
  const std::tuple<std::remove_cvref_t<A>...> arguments{
      from.draw(static_cast<const std::remove_cvref_t<A>*>(nullptr))...};
  return list_of(std::apply(f, arguments));
}
#define DRAWN(op) {#op, [](Draw& d) { return drawn(d, &op); }}

constexpr Call kElements[] = {
    ONE(abs),
    ONE(sign),
    ONE(relu),
    ONE(exp),
    ONE(log),
    ONE(sqrt),
    ONE(rsqrt),
    ONE(reciprocal),
    ONE(square),
    ONE(neg),
    ONE(tanh),
    ONE(sigmoid),
    ONE(sin),
    ONE(cos),
#define BRAID_UNARY_FUNCTION(name, c, domain) ONE(name),
#define BRAID_UNARY_STEP(name, c) ONE(name),
#include <braid/core/internal/unary.def>
#define BRAID_ACTIVATION_OP(name) DRAWN(name),
#include <braid/core/internal/activation.def>
    ONE(frac),
    ONE(positive),
    ONE(logical_not),
    ONE(bitwise_not),
    ONE(isnan),
    ONE(isinf),
    ONE(isfinite),
    TWO(mul),
    TWO(div),
    TWO(maximum),
    TWO(minimum),
    TWO(eq),
    TWO(ne),
    TWO(lt),
    TWO(le),
    TWO(gt),
    TWO(ge),
    TWO(logical_and),
    TWO(logical_or),
    TWO(logical_xor),
    TWO(pow),
#define BRAID_BINARY_FLOATING(name, c) TWO(name),
#define BRAID_BINARY_DIVISION(name) TWO(name),
#define BRAID_BINARY_INTEGER(name) TWO(name), REAL(name),
#include <braid/core/internal/binary.def>
    TWO(xlogy),
    TWO(equal),
    REAL(add),
    REAL(sub),
    REAL(mul),
    REAL(div),
    REAL(eq),
    REAL(ne),
    REAL(lt),
    REAL(le),
    REAL(gt),
    REAL(ge),
    REAL(pow),
    REAL(fmod),
    REAL(remainder),
    REAL(floor_divide),
    CALL(sub, d.real(), d.tensor()),
    CALL(div, d.real(), d.tensor()),
    CALL(remainder, d.real(), d.tensor()),
    CALL(pow, d.real(), d.tensor()),
    CALL(add, d.tensor(), d.like(), d.real()),
    CALL(sub, d.tensor(), d.like(), d.real()),
    CALL(where, d.mask(), d.tensor(), d.like()),
    CALL(where, d.mask(), d.tensor(), d.real()),
    CALL(where, d.mask(), d.real(), d.tensor()),
    CALL(where, d.mask(), d.real(), d.real()),
    CALL(masked_fill, d.tensor(), d.mask(), d.real()),
    CALL(masked_fill, d.tensor(), d.mask(), d.like()),
    CALL(clamp, d.tensor(), d.real(), d.real()),
    CALL(clamp, d.tensor(), d.like(), d.like()),
    CALL(lerp, d.tensor(), d.like(), d.like()),
    CALL(lerp, d.tensor(), d.like(), d.real()),
    CALL(addcmul, d.tensor(), d.like(), d.like(), d.real()),
    CALL(addcdiv, d.tensor(), d.like(), d.like(), d.real()),
    CALL(allclose, d.tensor(), d.like(), d.real(), d.real()),
};

constexpr Call kReductions[] = {
#define BRAID_KERNEL_OP(name) DRAWN(name),
#include <braid/core/internal/kernels.def>
    OVER(sum),
    OVER(mean),
    OVER(amax),
    OVER(amin),
    ONE(max),
    ONE(min),
    OVER(any),
    OVER(all),
    OVER(count_nonzero),
    OVER(logsumexp),
    OVER(prod),
    ONE(argmax),
    ONE(argmin),
    CALL(cumsum, d.tensor(), d.dim()),
    CALL(cumprod, d.tensor(), d.dim()),
    CALL(softmax, d.tensor(), d.dim()),
    CALL(log_softmax, d.tensor(), d.dim()),
    CALL(argmax, d.tensor(), d.dim(), d.flag()),
    CALL(argmin, d.tensor(), d.dim(), d.flag()),
    CALL(var, d.tensor(), d.dims()),
    CALL(braid::std, d.tensor(), d.dims()),
    CALL(var_mean, d.tensor(), d.dims()),
    CALL(norm, d.tensor(), d.real(), d.dims(), d.flag()),
    CALL(topk, d.tensor(), d.count(), d.dim(), d.flag(), d.flag()),
    CALL(max, d.tensor(), d.dim(), d.flag()),
    CALL(min, d.tensor(), d.dim(), d.flag()),
};

std::vector<I> sizes(const Shape& shape) { return {shape.begin(), shape.end()}; }

constexpr Call kArrangements[] = {
    TWO(masked_select),
    ONE(nonzero),
    CALL(gather, d.tensor(), d.dim(), d.index()),
    CALL(scatter, d.tensor(), d.dim(), d.index(), d.like()),
    CALL(scatter, d.tensor(), d.dim(), d.index(), d.real()),
    CALL(scatter_add, d.tensor(), d.dim(), d.index(), d.like()),
    CALL(index_add, d.tensor(), d.dim(), d.index(), d.like(), d.real()),
    CALL(take_along_dim, d.tensor(), d.index(), d.dim()),
    CALL(one_hot, d.index(), d.integer()),
    CALL(index_select, d.tensor(), d.dim(), d.index(Shape{d.below(4)})),
    CALL(embedding, d.of_rank(2), d.index()),
    CALL(embedding, d.of_rank(2), d.index(), d.integer()),
    CALL(cat, d.tensors(), d.dim()),
    CALL(stack, d.tensors(), d.dim()),
    // No huge view where its size decides the number of views: a million views are slow, and more
    // than 2^24 are rejected (test_shape.cpp).
    CALL(split, d.tensor(), d.integer(), d.dim()),
    CALL(split, d.huge_view(), sizes(d.shape()), d.dim()),
    CALL(chunk, d.tensor(), d.integer(), d.dim()),
    CALL(unbind, d.tensor(), d.dim()),
    CALL(movedim, d.huge_view(), d.dims(), d.dims()),
    CALL(movedim, d.huge_view(), d.dim(), d.dim()),
    CALL(swapaxes, d.huge_view(), d.dim(), d.dim()),
    CALL(unflatten, d.huge_view(), d.dim(), d.shape()),
    CALL(expand_as, d.tensor(), d.huge_view()),
    TWO(view_as),
    TWO(reshape_as),
    CALL(broadcast_to, d.huge_view(), d.shape()),
    CALL(flip, d.tensor(), d.dims()),
    CALL(roll, d.tensor(), d.shape(), d.dims()),
    CALL(repeat, d.tensor(), d.shape()),
    CALL(repeat_interleave, d.tensor(), d.count()),
    CALL(repeat_interleave, d.tensor(), d.count(), d.dim()),
    CALL(pad, d.tensor(), d.shape(), d.any_of(PadMode::circular), d.real()),
    CALL(tril, d.tensor(), d.integer()),
    CALL(triu, d.tensor(), d.integer()),
    CALL(diagonal, d.huge_view(), d.integer(), d.dim(), d.dim()),
    CALL(diag, d.tensor(), d.integer()),
};

const char* equation(Draw& d) {
  constexpr const char* kWords[] = {
      "ij,jk->ik", "ij,jk", "i,i->",   "ii",  "...i,...i", "bij,bjk->bik", "ij->ji", "",
      "->",        "i",     "a,b->ba", "...", "ij,jk->iz", "iij,j->i",     ",",      "i.j,k"};
  return kWords[d.below(std::ssize(kWords))];
}

/// Matrices whose shapes usually match.
T matrix(Draw& d, I rows, I columns) {
  return d.one_in(8) ? d.tensor() : d.of_shape({rows, columns}, d.one_in(8) ? d.dtype() : kFloat);
}
T some_heads(Draw& d) {
  const I batch = 1 + d.below(2), count = d.below(5);
  return d.one_in(6) ? d.tensor() : d.of_shape({batch, count, 3, 4}, kFloat);
}
T heads(Draw& d) { return d.one_in(6) ? d.tensor() : d.of_shape({2, 3, 4}, kFloat); }
T some_tokens(Draw& d) {
  const I heads = 1 + d.below(2);
  return d.one_in(6) ? d.tensor() : d.of_shape({4, heads, 3}, kFloat);
}
T some_starts(Draw& d) {
  if (d.one_in(6)) return d.tensor();
  const I middle = d.one_in(6) ? d.integer() : d.below(5);
  return tensor({I{0}, middle, I{4}}).to(DType::int32);
}
double rarely(Draw& d) { return d.one_in(3) ? d.real() : 0; }

constexpr Call kProducts[] = {
    TWO(matmul),
    TWO(mm),
    TWO(bmm),
    TWO(mv),
    TWO(dot),
    TWO(outer),
    CALL(matmul, matrix(d, 3, 4), matrix(d, 4, 2)),
    CALL(mm, matrix(d, 5, 1), matrix(d, 1, 7)),
    CALL(mv, matrix(d, 5, 3), d.of_shape({3}, kFloat)),
    CALL(bmm, d.of_shape({2, 3, 4}, kFloat), d.of_shape({2, 4, 1}, kFloat)),
    CALL(tensordot, d.tensor(), d.like(), d.count()),
    CALL(tensordot, d.tensor(), d.like(), d.dims(), d.dims()),
    CALL(einsum, equation(d), d.tensors()),
    CALL(linear, d.tensor(), d.like(), d.like()),
    CALL(linear, matrix(d, 3, 4), matrix(d, 2, 4), d.maybe({2})),
    CALL(linear_relu, matrix(d, 3, 4), matrix(d, 2, 4), d.maybe({2})),
    CALL(linear_gelu, matrix(d, 3, 4), matrix(d, 2, 4), d.maybe({2}), d.flag() ? "tanh" : "none"),
    CALL(linear_gelu, d.tensor(), d.like(), d.like(), d.flag() ? "tanh" : "none"),
    CALL(linear_add, matrix(d, 3, 4), matrix(d, 2, 4), d.maybe({2}), matrix(d, 3, 2)),
    CALL(linear_add, d.tensor(), d.like(), d.like(), d.like()),
    CALL(scaled_dot_product_attention, heads(d), heads(d), heads(d), d.maybe({3, 3}), rarely(d),
         d.flag(), d.real()),
    CALL(scaled_dot_product_attention, some_heads(d), some_heads(d), some_heads(d), d.maybe({3, 3}),
         rarely(d), d.flag(), d.real(), d.flag()),
    CALL(varlen_attn, some_tokens(d), some_tokens(d), some_tokens(d), some_starts(d),
         some_starts(d), d.below(6), d.below(6),
         VarlenAttnOptions{.is_causal = d.flag(), .dropout_p = rarely(d), .enable_gqa = d.flag()}),
    CALL(packed_attention, d.of_rank(5), d.maybe({2, 2}), rarely(d), d.flag()),
};

T image(Draw& d, I channels) {
  const I batch = d.below(3), height = d.below(7);
  return d.one_in(8) ? d.of_rank(4) : d.of_shape({batch, channels, height, d.below(7)}, kFloat);
}
T sequence(Draw& d, I channels) {
  const I batch = d.below(3);
  return d.one_in(8) ? d.of_rank(3) : d.of_shape({batch, channels, d.below(9)}, kFloat);
}
T filter(Draw& d, I out, I in) {
  const I height = 1 + d.below(3);
  return d.one_in(8) ? d.of_rank(4) : d.of_shape({out, in, height, 1 + d.below(3)}, kFloat);
}
T filter1(Draw& d, I out, I in) {
  return d.one_in(8) ? d.of_rank(3) : d.of_shape({out, in, 1 + d.below(3)}, kFloat);
}
/// step: a stride or a dilation, usually 1. few: a padding, usually small.
I step(Draw& d) { return d.one_in(3) ? d.count() : 1; }
I few(Draw& d) { return d.one_in(10) ? d.integer() : d.below(3); }
Size2 kernel2(Draw& d) { return {d.count(), d.count()}; }
Size2 step2(Draw& d) { return {step(d), step(d)}; }
Size2 few2(Draw& d) { return {few(d), few(d)}; }
ConvPadding padding(Draw& d) {
  return d.one_in(4) ? ConvPadding("same") : ConvPadding(few(d), few(d));
}

constexpr Call kImages[] = {
    CALL(conv2d, image(d, 2), filter(d, 3, 2), d.maybe({3}),
         Conv2dOptions{step2(d), padding(d), step2(d), step(d)}),
    CALL(conv2d, image(d, 4), filter(d, 4, 1), d.maybe({4}),
         Conv2dOptions{step2(d), padding(d), step2(d), 4}),
    CALL(conv1d, sequence(d, 2), filter1(d, 3, 2), d.maybe({3}),
         Conv1dOptions{step(d), few(d), step(d), step(d)}),
    CALL(conv_transpose2d, image(d, 2), filter(d, 2, 3), d.maybe({3}),
         ConvTranspose2dOptions{.stride = step2(d),
                                .padding = few2(d),
                                .output_padding = few2(d),
                                .groups = step(d),
                                .dilation = step2(d)}),
    CALL(conv_transpose1d, sequence(d, 2), filter1(d, 2, 3), d.maybe({3}),
         ConvTranspose1dOptions{.stride = step(d),
                                .padding = few(d),
                                .output_padding = few(d),
                                .groups = step(d),
                                .dilation = step(d)}),
    CALL(max_pool2d, image(d, 2), kernel2(d),
         MaxPool2dOptions{step2(d), few2(d), step2(d), d.flag()}),
    CALL(max_pool1d, sequence(d, 2), d.count(),
         MaxPool1dOptions{step(d), few(d), step(d), d.flag()}),
    CALL(max_pool2d_with_indices, image(d, 2), kernel2(d),
         MaxPool2dOptions{step2(d), few2(d), step2(d), d.flag()}),
    CALL(max_pool1d_with_indices, sequence(d, 2), d.count(),
         MaxPool1dOptions{step(d), few(d), step(d), d.flag()}),
    CALL(avg_pool2d, image(d, 2), kernel2(d),
         AvgPool2dOptions{step2(d), few2(d), d.flag(), d.flag(), d.integer()}),
    CALL(avg_pool1d, sequence(d, 2), d.count(),
         AvgPool1dOptions{step(d), few(d), d.flag(), d.flag()}),
    CALL(adaptive_avg_pool2d, image(d, 2), kernel2(d)),
    CALL(adaptive_avg_pool1d, sequence(d, 2), d.count()),
    CALL(adaptive_max_pool2d, image(d, 2), kernel2(d)),
    CALL(interpolate, d.one_in(3) ? sequence(d, 2) : image(d, 2),
         InterpolateOptions{kernel2(d), {}, d.any_of(Interpolation::bilinear), d.flag()}),
    CALL(interpolate, d.one_in(3) ? sequence(d, 2) : image(d, 2),
         InterpolateOptions{
             {}, Factor2(d.real(), d.real()), d.any_of(Interpolation::bilinear), d.flag()}),
};

/// The normalized shape for a norm: the last size of the tensor drawn last, or any shape.
Shape last_size(Draw& d) { return d.one_in(6) ? d.shape() : d.last_size(); }
T labels(Draw& d) { return d.one_in(6) ? d.index() : d.index({4}); }
RnnWeights weights(Draw& d, I gates) {
  const Shape bias{gates * 2};
  return {matrix(d, gates * 2, 3), matrix(d, gates * 2, 2), d.maybe(bias), d.maybe(bias)};
}
T steps(Draw& d) { return d.one_in(8) ? d.of_rank(3) : d.of_shape({d.below(4), 2, 3}, kFloat); }
RnnOptions some(Draw& d) { return {d.flag(), d.one_in(3) ? d.index({2}) : T()}; }

constexpr Call kRest[] = {
    CALL(layer_norm, d.tensor(), last_size(d), d.maybe(d.last_size()), d.maybe(d.last_size()),
         d.real()),
    CALL(rms_norm, d.tensor(), last_size(d), d.maybe(d.last_size()), d.real()),
    CALL(group_norm, image(d, 4), d.count(), d.maybe({4}), d.maybe({4}), d.real()),
    CALL(batch_norm, image(d, 3), d.maybe({3}), d.maybe({3}), d.maybe({3}), d.maybe({3}), d.flag(),
         d.real(), d.real()),
    CALL(batch_norm, image(d, 3),
         RunningStatistics{d.maybe({3}), d.maybe({3}), d.one_in(3) ? d.index({}) : T(), d.real()},
         d.maybe({3}), d.maybe({3}), d.flag(), d.real()),
    CALL(dropout, d.tensor(), d.real(), d.flag()),
    CALL(dropout1d, d.of_rank(3), d.real(), d.flag()),
    CALL(dropout2d, d.of_rank(4), d.real(), d.flag()),
    CALL(cross_entropy, matrix(d, 4, 3), labels(d),
         CrossEntropyOptions{d.any_of(Reduction::none), d.maybe({3}), d.integer(), rarely(d)}),
    CALL(cross_entropy, d.tensor(), d.like()),
    CALL(nll_loss, matrix(d, 4, 3), labels(d),
         NllOptions{d.any_of(Reduction::none), d.maybe({3}), d.integer()}),
    CALL(mse_loss, d.tensor(), d.like(), d.any_of(Reduction::none)),
    CALL(lstm, steps(d), matrix(d, 2, 2), matrix(d, 2, 2), weights(d, 4), some(d)),
    CALL(gru, steps(d), matrix(d, 2, 2), weights(d, 3), some(d)),
    CALL(rnn_tanh, steps(d), matrix(d, 2, 2), weights(d, 1), some(d)),
    CALL(rnn_relu, steps(d), matrix(d, 2, 2), weights(d, 1), some(d)),
    CALL(zeros, d.shape(), {.dtype = d.dtype()}),
    CALL(ones, d.shape(), {.dtype = d.dtype()}),
    CALL(full, d.shape(), d.real(), {.dtype = d.dtype()}),
    CALL(arange, d.integer(), d.integer(), d.integer(), {.dtype = d.dtype()}),
    CALL(arange, d.integer()),
    CALL(logspace, d.real(), d.real(), d.count(), d.real(), {.dtype = d.dtype()}),
    CALL(normal, d.real(), d.real(), d.shape(), {.dtype = d.dtype()}),
    ONE(bernoulli),
    CALL(eye, d.count(), d.count(), {.dtype = d.dtype()}),
    CALL(linspace, d.real(), d.real(), d.count(), {.dtype = d.dtype()}),
    CALL(eye, d.count(), {.dtype = d.dtype()}),
    CALL(zeros_like, d.huge_view(), {.dtype = d.dtype()}),
    CALL(ones_like, d.huge_view()),
    CALL(full_like, d.huge_view(), d.real()),
    CALL(tensor, {{d.real(), 2.0}, {3.0, 4.0}}, {.dtype = d.dtype()}),
    CALL(tensor, {{d.real(), 2.0}, {3.0}}),
    CALL(randn, d.shape(), {.dtype = d.dtype()}),
    CALL(rand, d.shape(), {.dtype = d.dtype()}),
    CALL(uniform, d.shape(), d.real(), d.real(), {.dtype = d.dtype()}),
    CALL(randint, d.integer(), d.integer(), d.shape(), {.dtype = d.dtype()}),
    CALL(randperm, d.count(), {.dtype = d.dtype()}),
    CALL(multinomial, d.of_rank(1 + d.below(2)), d.count(), d.flag()),
};

}  // namespace

std::vector<Call> op_calls() {
  return joined({kElements, kReductions, kArrangements, kProducts, kImages, kRest});
}

}  // namespace braid::fuzz

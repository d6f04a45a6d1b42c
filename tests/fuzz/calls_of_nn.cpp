// Calls of Tensor's members, and of the losses and layers of nn.
#include <braid/core/autograd.hpp>
#include <braid/core/print.hpp>
#include <braid/nn/nn.hpp>

#include "calls.hpp"

namespace braid::fuzz {
namespace {

using T = Tensor;

/// The target of an in-place op: usually detached, so that it is not a leaf that requires a
/// gradient.
T target(Draw& d) {
  const T t = d.tensor();
  return d.one_in(8) || !t.defined() ? t : t.detach();
}

#define IN_PLACE(op, ...)               \
  {#op, [](Draw& d) {                   \
     const T t = target(d);             \
     return list_of(t.op(__VA_ARGS__)); \
   }}

constexpr Call kMembers[] = {
    IN_PLACE(copy_, d.like()),
    IN_PLACE(fill_, d.real()),
    IN_PLACE(zero_),
    IN_PLACE(add_, d.like(), d.real()),
    IN_PLACE(sub_, d.like(), d.real()),
    IN_PLACE(mul_, d.like()),
    IN_PLACE(div_, d.like()),
    IN_PLACE(add_, d.real()),
    IN_PLACE(sub_, d.real()),
    IN_PLACE(mul_, d.real()),
    IN_PLACE(div_, d.real()),
    IN_PLACE(clamp_, d.real(), d.real()),
    IN_PLACE(masked_fill_, d.mask(), d.real()),
    IN_PLACE(relu_),
    MEMBER(operator[], d.huge_view()[d.integer()]),
    MEMBER(operator[], d.tensor()[d.index()]),
    MEMBER(operator[], d.tensor()[d.mask()]),
    MEMBER(index, d.tensor().index({d.index()})),
    MEMBER(index, d.tensor().index({d.integer(), d.index(), indexing::None})),
    MEMBER(index, d.huge_view().index({indexing::Slice(d.integer(), d.integer(), d.integer()),
                                       "...", d.integer()})),
    MEMBER(index, d.tensor().index({d.index(), indexing::Slice(), d.index()})),
    MEMBER(index, d.tensor().index({d.flag(), d.mask()})),
    IN_PLACE(index_put_, {d.index()}, d.like(), d.flag()),
    IN_PLACE(index_put_, {d.mask()}, d.real(), d.flag()),
    IN_PLACE(index_put_, {indexing::Slice(d.integer(), d.integer(), d.integer()), d.index()},
             d.like(), d.flag()),
    MEMBER(at, d.huge_view().at(d.dims())),
    MEMBER(select, d.huge_view().select(d.dim(), d.integer())),
    MEMBER(slice, d.huge_view().slice(d.dim(), d.integer(), d.integer(), d.integer())),
    MEMBER(narrow, d.huge_view().narrow(d.dim(), d.integer(), d.integer())),
    MEMBER(transpose, d.huge_view().transpose(d.dim(), d.dim())),
    MEMBER(t, d.huge_view().t()),
    MEMBER(permute, d.huge_view().permute(d.dims())),
    MEMBER(reshape, d.tensor().reshape(d.shape())),
    MEMBER(view, d.huge_view().view(d.shape())),
    MEMBER(flatten, d.tensor().flatten(d.dim(), d.dim())),
    MEMBER(squeeze, d.huge_view().squeeze()),
    MEMBER(squeeze, d.huge_view().squeeze(d.dim())),
    MEMBER(unsqueeze, d.huge_view().unsqueeze(d.dim())),
    MEMBER(expand, d.huge_view().expand(d.shape())),
    MEMBER(to, d.huge_view().to(d.dtype())),
    MEMBER(clone, d.huge_view().clone()),
    MEMBER(contiguous, d.huge_view().contiguous()),
    MEMBER(detach, d.huge_view().detach()),
    MEMBER(requires_grad_, d.tensor().requires_grad_(d.flag())),
    MEMBER(size, d.tensor().size(d.dim()) >= 0),
    MEMBER(item, d.tensor().item<double>() > 0),
    MEMBER(item, d.tensor().item<I>() > 0),
    MEMBER(to_vector, !d.tensor().to_vector<float>().empty()),
    MEMBER(print, !str(d.huge_view()).empty()),
    MEMBER(backward, (d.tensor().backward(d.like()), false)),
};

constexpr Call kLosses[] = {
    CALL(nn::l1_loss, d.tensor(), d.like(), d.any_of(Reduction::none)),
    CALL(nn::smooth_l1_loss, d.tensor(), d.like(), {d.any_of(Reduction::none), d.real()}),
    CALL(nn::huber_loss, d.tensor(), d.like(), {d.any_of(Reduction::none), d.real()}),
    CALL(nn::binary_cross_entropy, d.tensor(), d.like(), {d.any_of(Reduction::none), d.like()}),
    CALL(nn::binary_cross_entropy_with_logits, d.tensor(), d.like(),
         {d.any_of(Reduction::none), d.like(), d.like()}),
    CALL(nn::kl_div, d.tensor(), d.like(), {d.any_of(Reduction::none), d.flag(), d.flag()}),
    CALL(nn::poisson_nll_loss, d.tensor(), d.like(),
         {d.any_of(Reduction::none), d.flag(), d.flag(), d.real()}),
    CALL(nn::gaussian_nll_loss, d.tensor(), d.like(), d.like(),
         {d.any_of(Reduction::none), d.flag(), d.real()}),
    CALL(nn::soft_margin_loss, d.tensor(), d.like(), d.any_of(Reduction::none)),
    CALL(nn::hinge_embedding_loss, d.tensor(), d.like(), {d.any_of(Reduction::none), d.real()}),
    CALL(nn::cosine_embedding_loss, d.of_rank(2), d.like(), d.signs(),
         {d.any_of(Reduction::none), d.real()}),
    CALL(nn::margin_ranking_loss, d.tensor(), d.like(), d.like(),
         {d.any_of(Reduction::none), d.real()}),
    CALL(nn::triplet_margin_loss, d.tensor(), d.like(), d.like(),
         {d.any_of(Reduction::none), d.real(), d.real(), d.flag()}),
    CALL(nn::capsule_margin_loss, d.of_rank(2), d.index(),
         {d.any_of(Reduction::none), d.real(), d.real(), d.real()}),
};

/// Returns n most of the time, else any integer.
I is(Draw& d, I n) { return d.one_in(12) ? d.integer() : n; }
Size2 two(Draw& d, I n) { return {is(d, n), is(d, n)}; }
T fit(Draw& d, const Shape& shape) {
  return d.one_in(8) ? d.tensor() : d.of_shape(shape, DType::float32);
}

constexpr Call kLayers[] = {
    MEMBER(Linear, nn::Linear(is(d, 3), is(d, 2), {.bias = d.flag()})(fit(d, {4, 3}))),
    MEMBER(Conv2d,
           nn::Conv2d(is(d, 2), is(d, 4), two(d, 3),
                      {.stride = two(d, 1), .padding = {is(d, 1), is(d, 0)}, .groups = is(d, 2)})(
               fit(d, {2, 2, 5, 5}))),
    MEMBER(Conv1d, nn::Conv1d(is(d, 2), is(d, 4), is(d, 3),
                              {.stride = is(d, 2), .padding = is(d, 1), .dilation = is(d, 1)})(
                       fit(d, {2, 2, 7}))),
    MEMBER(ConvTranspose2d, nn::ConvTranspose2d(is(d, 2), is(d, 3), two(d, 2),
                                                {.stride = two(d, 2)})(fit(d, {2, 2, 3, 3}))),
    MEMBER(Embedding, nn::Embedding(is(d, 6), is(d, 3))(d.index())),
    MEMBER(LayerNorm, nn::LayerNorm(Shape{is(d, 3)})(fit(d, {2, 3}))),
    MEMBER(RMSNorm, nn::RMSNorm(Shape{is(d, 2), is(d, 3)})(fit(d, {4, 2, 3}))),
    MEMBER(GroupNorm, nn::GroupNorm(is(d, 2), is(d, 4))(fit(d, {2, 4, 3}))),
    MEMBER(BatchNorm1d, nn::BatchNorm1d(is(d, 3))(fit(d, {2, 3}))),
    MEMBER(BatchNorm2d, nn::BatchNorm2d(is(d, 3))(fit(d, {2, 3, 2, 2}))),
    MEMBER(MultiheadAttention,
           nn::MultiheadAttention(is(d, 4), is(d, 2))(fit(d, {3, 2, 4}), fit(d, {5, 2, 4}),
                                                      fit(d, {5, 2, 4}), {.is_causal = d.flag()})),
    MEMBER(LSTM,
           nn::LSTM(is(d, 3), is(d, 2),
                    {.num_layers = is(d, 2), .batch_first = d.flag(), .bidirectional = d.flag()})(
               fit(d, {4, 2, 3}))
               .output),
    MEMBER(GRU, nn::GRU(is(d, 3), is(d, 2), {.num_layers = is(d, 1)})(fit(d, {4, 2, 3})).output),
    MEMBER(RNN, nn::RNN(is(d, 3), is(d, 2), {.num_layers = is(d, 1)})(fit(d, {4, 2, 3})).output),
    MEMBER(LSTMCell, nn::LSTMCell(is(d, 3), is(d, 2))(fit(d, {2, 3})).h),
    MEMBER(GRUCell, nn::GRUCell(is(d, 3), is(d, 2))(fit(d, {2, 3}))),
    MEMBER(TransformerEncoderLayer,
           nn::TransformerEncoderLayer(is(d, 4), is(d, 2),
                                       {.dim_feedforward = is(d, 8)})(fit(d, {3, 2, 4}))),
    MEMBER(PositionalEncoding,
           nn::PositionalEncoding(is(d, 4), {.max_len = is(d, 6)})(fit(d, {3, 2, 4}))),
    MEMBER(PrimaryCapsules,
           nn::PrimaryCapsules(is(d, 2), is(d, 3), is(d, 4), is(d, 3))(fit(d, {2, 2, 7, 7}))),
    MEMBER(DigitCapsules,
           nn::DigitCapsules(is(d, 6), is(d, 4), is(d, 3), is(d, 5),
                             {.iterations = static_cast<int>(d.below(4))})(fit(d, {2, 6, 4}))),
};

}  // namespace

std::vector<Call> tensor_calls() { return joined({kMembers}); }
std::vector<Call> nn_calls() { return joined({kLosses, kLayers}); }

}  // namespace braid::fuzz

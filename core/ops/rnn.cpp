// Fused recurrent layers over whole sequences: one product and one kernel per step. One tensor
// holds the initial state and the states of all steps, with the initial state first (last in
// reverse). So the states before all steps are one contiguous matrix, as the product for dW_hh
// needs it.
#include <braid/core/ops/rnn.hpp>

#include <array>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/gemm.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/scan.hpp>

#include "common.hpp"
#include "rnn.hpp"

namespace braid {
namespace ops {
namespace {

/// An operand of a product: a contiguous tensor as rows of `width`, from row `first` on.
struct Rows {
  Rows(const Tensor& t, std::int64_t w, std::int64_t first = 0)
      : data(static_cast<char*>(t.id()->data()) +
             first * w * static_cast<std::int64_t>(size_of(t.dtype()))),
        width(w) {}
  void* data;
  std::int64_t width;
};

enum class Into : std::uint8_t { set, add };

/// Computes the products of a layer: c [m, n] (+)= op(a) op(b) (+ bias).
struct Products {
  const char* op;
  DType dtype;
  Device device;
  void run(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, Rows a, Rows b, Rows c,
           Into into, const Tensor& bias = {}, const Tensor& sum_a = {}) const {
    GemmArgs args{};
    args.dtype = dtype;
    args.ta = ta, args.tb = tb, args.accumulate = into == Into::add;
    args.m = m, args.n = n, args.k = k, args.batch = 1;
    args.a = a.data, args.lda = a.width;
    args.b = b.data, args.ldb = b.width;
    args.c = c.data, args.ldc = c.width;
    args.bias = bias.defined() ? bias.id()->data() : nullptr;
    args.sum_a = sum_a.defined() ? sum_a.id()->data() : nullptr;
    launch(op, device, &KernelTable::gemm, args);
  }
};

/// What the forward keeps for the backward. All tensors are contiguous.
struct Kept {
  Tensor gates, hidden_gates;  // [T, B, G H]; hidden_gates only for a gru
  // [T + 1, B, H]: the initial state first (in reverse last), and the states of all steps
  Tensor h, c;
};

/// The inputs and sizes of a layer, and the positions of its steps in the tensors.
struct Layer {
  const char* op;
  RnnInputs in;
  std::int64_t steps, batch, inputs, hidden, width;
  Products products;

  Layer(const char* name, RnnInputs i)
      : op(name),
        in(std::move(i)),
        steps(in.x.shape()[0]),
        batch(in.x.shape()[1]),
        inputs(in.x.shape()[2]),
        hidden(in.h_0.shape()[1]),
        width(gates_of(in.kind) * hidden),
        products{name, in.x.dtype(), in.x.device()} {}

  [[nodiscard]] Tensor make(const Shape& shape) const {
    return make_tensor(shape, in.x.dtype(), in.x.device());
  }
  /// Returns 0 if a step has no elements, because there may be 2^60 such steps.
  [[nodiscard]] std::int64_t steps_with_numbers() const { return batch * hidden > 0 ? steps : 0; }
  /// Indices of the states before and after the step at time t.
  [[nodiscard]] std::int64_t before(std::int64_t t) const { return in.reverse ? t + 1 : t; }
  [[nodiscard]] std::int64_t after(std::int64_t t) const { return in.reverse ? t : t + 1; }
  [[nodiscard]] std::int64_t first() const { return in.reverse ? steps : 0; }
  [[nodiscard]] std::int64_t last() const { return in.reverse ? 0 : steps; }
  /// Returns the states from index `from` on in the given shape, as a tensor over the same storage.
  /// Not recorded.
  [[nodiscard]] Tensor part(const Tensor& states, std::int64_t from, const Shape& shape) const {
    return make_tensor_on(states.storage(), shape, contiguous_strides(shape),
                          states.storage_offset() + from * batch * hidden, states.dtype());
  }
  [[nodiscard]] Tensor after_steps(const Tensor& states) const {
    return part(states, in.reverse ? 0 : 1, {steps, batch, hidden});
  }
  [[nodiscard]] Tensor at(const Tensor& states, std::int64_t place) const {
    return part(states, place, {batch, hidden});
  }
  /// Returns the address of a step's elements in t, which has `per_row` of them per sequence. Null
  /// if t is undefined.
  [[nodiscard]] void* step_of(const Tensor& t, std::int64_t place, std::int64_t per_row) const {
    return t.defined() ? Rows(t, per_row, place * batch).data : nullptr;
  }
  [[nodiscard]] const std::int64_t* lengths() const {
    return in.lengths.defined() ? static_cast<const std::int64_t*>(in.lengths.id()->data())
                                : nullptr;
  }
};

Kept run_forward(const Layer& l) {
  const bool gru = l.in.kind == RnnKind::gru, lstm = l.in.kind == RnnKind::lstm;
  Kept kept;
  kept.gates = l.make({l.steps, l.batch, l.width});
  if (gru) kept.hidden_gates = l.make({l.steps, l.batch, l.width});
  kept.h = l.make({l.steps + 1, l.batch, l.hidden});
  if (lstm) kept.c = l.make({l.steps + 1, l.batch, l.hidden});
  copy_values(l.at(kept.h, l.first()), l.in.h_0);
  if (lstm) copy_values(l.at(kept.c, l.first()), l.in.c_0);
  const NoGrad guard;
  const Tensor x = l.in.x.contiguous(), w_ih = l.in.w_ih.contiguous();
  const Tensor b = !l.in.b_ih.defined() ? Tensor()
                   : gru                ? l.in.b_ih.contiguous()
                                        : l.in.b_ih + l.in.b_hh;
  const Tensor b_hh = gru && l.in.b_hh.defined() ? l.in.b_hh.contiguous() : Tensor();
  l.products.run(false, true, l.steps * l.batch, l.width, l.inputs, Rows(x, l.inputs),
                 Rows(w_ih, l.inputs), Rows(kept.gates, l.width), Into::set, b);
  const Tensor w_hh = l.in.w_hh.detach().t().contiguous();  // transposed once, not in every step
  for (std::int64_t s = 0; s < l.steps_with_numbers(); ++s) {
    const std::int64_t t = l.in.time(s);
    const Rows h(kept.h, l.hidden, l.before(t) * l.batch),
        target(gru ? kept.hidden_gates : kept.gates, l.width, t * l.batch);
    l.products.run(false, false, l.batch, l.width, l.hidden, h, Rows(w_hh, l.width), target,
                   gru ? Into::set : Into::add, b_hh);
    launch(l.op, l.in.x.device(), &KernelTable::rnn_cell,
           RnnCellArgs{l.in.kind, l.in.x.dtype(), l.batch, l.hidden,
                       l.step_of(kept.gates, t, l.width), l.step_of(kept.hidden_gates, t, l.width),
                       h.data, l.step_of(kept.h, l.after(t), l.hidden),
                       l.step_of(kept.c, l.before(t), l.hidden),
                       l.step_of(kept.c, l.after(t), l.hidden), l.lengths(), t});
  }
  return kept;
}

Grads run_backward(const Layer& l, const Kept& kept, const Tensor& dstates, const Tensor& dc_n,
                   Needs needs) {
  const bool gru = l.in.kind == RnnKind::gru, lstm = l.in.kind == RnnKind::lstm;
  const DType dtype = l.in.x.dtype();
  const Device device = l.in.x.device();
  const Tensor dy = dstates.defined() ? dstates.contiguous() : Tensor();
  const Tensor dh = filled({l.batch, l.hidden}, 0, dtype, device);
  Tensor dc;
  if (lstm) dc = dc_n.defined() ? dc_n.clone() : filled({l.batch, l.hidden}, 0, dtype, device);
  const Tensor dgates = l.make({l.steps, l.batch, l.width}),
               dhidden = gru ? l.make({l.steps, l.batch, l.width}) : dgates;
  const Tensor w_hh = l.in.w_hh.contiguous();
  for (std::int64_t s = l.steps_with_numbers() - 1; s >= 0; --s) {
    const std::int64_t t = l.in.time(s);
    launch(l.op, device, &KernelTable::rnn_cell_backward,
           RnnCellBackwardArgs{
               l.in.kind, dtype, l.batch, l.hidden, l.step_of(kept.gates, t, l.width),
               l.step_of(kept.hidden_gates, t, l.width), l.step_of(kept.h, l.before(t), l.hidden),
               l.step_of(kept.h, l.after(t), l.hidden), l.step_of(kept.c, l.before(t), l.hidden),
               l.step_of(kept.c, l.after(t), l.hidden), l.step_of(dy, t, l.hidden), dh.id()->data(),
               dc.defined() ? dc.id()->data() : nullptr, l.step_of(dgates, t, l.width),
               gru ? l.step_of(dhidden, t, l.width) : nullptr, l.lengths(), t});
    if (s > 0 || needs[1])
      l.products.run(false, false, l.batch, l.hidden, l.width, Rows(dhidden, l.width, t * l.batch),
                     Rows(w_hh, l.hidden), Rows(dh, l.hidden), Into::add);
  }
  const std::int64_t rows = l.steps * l.batch;
  const bool bias = l.in.b_ih.defined();
  Tensor dx, dw_ih, dw_hh, db_ih, db_hh;
  if (needs[0]) {
    dx = l.make(l.in.x.shape());
    const Tensor w_ih = l.in.w_ih.contiguous();
    l.products.run(false, false, rows, l.inputs, l.width, Rows(dgates, l.width),
                   Rows(w_ih, l.inputs), Rows(dx, l.inputs), Into::set);
  }
  if (needs[3]) {
    dw_ih = l.make(l.in.w_ih.shape());
    if (bias && l.inputs > 0) db_ih = l.make({l.width});
    const Tensor x = l.in.x.contiguous();
    l.products.run(true, false, l.width, l.inputs, rows, Rows(dgates, l.width), Rows(x, l.inputs),
                   Rows(dw_ih, l.inputs), Into::set, {}, db_ih);
  }
  if (needs[4]) {
    dw_hh = l.make(l.in.w_hh.shape());
    if (bias && l.hidden > 0) db_hh = l.make({l.width});
    const Rows h(kept.h, l.hidden, l.in.reverse ? l.batch : 0);
    l.products.run(true, false, l.width, l.hidden, rows, Rows(dhidden, l.width), h,
                   Rows(dw_hh, l.hidden), Into::set, {}, db_hh);
  }
  if (bias && !db_ih.defined()) db_ih = sum(dgates, {0, 1});
  if (bias && !db_hh.defined()) db_hh = sum(dhidden, {0, 1});
  return Grads(std::vector<Tensor>{dx, needs[1] ? dh : Tensor(), dc, dw_ih, dw_hh, db_ih, db_hh});
}

struct States {
  Tensor h, c_n;  // [T, B, H], [B, H]
};

/// Returns the states after every step. After the end of a sequence, its last state is repeated.
/// Recorded.
States states_of(const char* op, RnnInputs in) {
  const Layer l(op, std::move(in));
  const Kept kept = run_forward(l);
  States y{l.after_steps(kept.h), l.in.kind == RnnKind::lstm ? l.at(kept.c, l.last()) : Tensor()};
  if (!needs_grad({l.in.x, l.in.h_0, l.in.c_0, l.in.w_ih, l.in.w_hh, l.in.b_ih, l.in.b_hh}))
    return y;
  const std::array<Tensor, 7> inputs{l.in.x,    l.in.h_0,  l.in.c_0, l.in.w_ih,
                                     l.in.w_hh, l.in.b_ih, l.in.b_hh};
  const std::array<Tensor, 2> outputs{y.h, y.c_n};
  std::array<SavedTensor, 7> saved;
  for (std::size_t i = 0; i < inputs.size(); ++i) saved[i] = SavedTensor(inputs[i]);
  record_many(op, inputs, outputs, l.in.x.device(),
              [op, kind = l.in.kind, reverse = l.in.reverse, lengths = SavedTensor(l.in.lengths),
               saved, gates = SavedTensor(kept.gates),
               hidden_gates = SavedTensor(kept.hidden_gates), h = SavedTensor(kept.h),
               c = SavedTensor(kept.c)](std::span<const Tensor> dy, Needs needs) -> Grads {
                RnnInputs again{kind,           saved[0].get(), saved[1].get(), saved[2].get(),
                                saved[3].get(), saved[4].get(), saved[5].get(), saved[6].get(),
                                lengths.get(),  reverse};
                if (grad_enabled()) return rnn_recorded_grads(again, dy[0], dy[1]);
                return run_backward(Layer(op, std::move(again)),
                                    {gates.get(), hidden_gates.get(), h.get(), c.get()}, dy[0],
                                    dy[1], needs);
              });
  return y;
}

void check_like(const char* op, const char* name, const Tensor& x, const Tensor& t,
                const Shape& shape) {
  check_device(op, x, t);
  check_dtype(op, x, t);
  if (t.shape() != shape)
    throw ShapeError(
        str(op, ": expected ", name, " ", shape, " for x ", x.shape(), ", got ", t.shape()));
}

/// Returns the lengths, contiguous and on the device of x; undefined if there are none.
Tensor checked_lengths(const char* op, const Tensor& lengths, const Tensor& x) {
  if (!lengths.defined()) return {};
  if (lengths.dtype() != DType::int64)
    throw DTypeError(str(op, ": expected int64 lengths, got ", lengths.dtype()));
  if (lengths.shape() != Shape{x.shape()[1]})
    throw ShapeError(str(op, ": expected lengths [", x.shape()[1], "] for x ", x.shape(), ", got ",
                         lengths.shape()));
  if (lengths.device().type() != DeviceType::cpu) {
    check_device(op, x, lengths);
    return lengths.contiguous();
  }
  const std::vector<std::int64_t> values = lengths.to_vector<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] < 0 || values[i] > x.shape()[0])
      throw IndexError(str(op, ": expected lengths in [0, ", x.shape()[0], "], got ", values[i],
                           " at position ", i));
  return lengths.to(x.device()).contiguous();
}

LstmResult recurrent(const char* op, RnnKind kind, const Tensor& x, const Tensor& h_0,
                     const Tensor& c_0, const RnnWeights& w, const RnnOptions& options) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return recurrent(op, kind, full(x), full(h_0), full(c_0),
                     {full(w.w_ih), full(w.w_hh), full(w.b_ih), full(w.b_hh)}, options);
  }
  check_floating(op, x);
  if (x.dim() != 3)
    throw ShapeError(str(op, ": expected x [steps, batch, inputs], got ", x.shape()));
  if (x.shape()[0] == 0)
    throw ShapeError(str(op, ": expected at least one step, got x ", x.shape()));
  check_device(op, x, w.w_hh);
  if (w.w_hh.dim() != 2 || w.w_hh.shape()[0] != gates_of(kind) * w.w_hh.shape()[1])
    throw ShapeError(
        str(op, ": expected w_hh [", gates_of(kind), " * hidden, hidden], got ", w.w_hh.shape()));
  const std::int64_t batch = x.shape()[1], hidden = w.w_hh.shape()[1], width = w.w_hh.shape()[0];
  check_like(op, "w_hh", x, w.w_hh, {width, hidden});
  check_like(op, "w_ih", x, w.w_ih, {width, x.shape()[2]});
  check_like(op, "h_0", x, h_0, {batch, hidden});
  if (kind == RnnKind::lstm) check_like(op, "c_0", x, c_0, {batch, hidden});
  if (w.b_ih.defined() != w.b_hh.defined())
    throw ArgumentError(str(op, ": expected both biases or none, got one"));
  if (w.b_ih.defined()) {
    check_like(op, "b_ih", x, w.b_ih, {width});
    check_like(op, "b_hh", x, w.b_hh, {width});
  }
  const Tensor lengths = checked_lengths(op, options.lengths, x);
  if (size_of(x.dtype()) == 2) {  // in float32, so that the states are not rounded in every step
    const auto wide = [](const Tensor& t) { return t.defined() ? t.to(DType::float32) : t; };
    const LstmResult y = recurrent(op, kind, wide(x), wide(h_0), wide(c_0),
                                   {wide(w.w_ih), wide(w.w_hh), wide(w.b_ih), wide(w.b_hh)},
                                   {options.reverse, lengths});
    return {y.output.to(x.dtype()), y.h_n.to(x.dtype()),
            y.c_n.defined() ? y.c_n.to(x.dtype()) : Tensor()};
  }
  // What is past the end of a sequence, NaN too, reaches no state, and so no gradient of a weight.
  // The times 1, 2, … are made on the device: a captured step refuses copies from the host.
  Tensor has_step, none, own = x;
  if (lengths.defined()) {
    const Tensor times =
        cumsum(ones({x.shape()[0], 1}, {.device = x.device(), .dtype = DType::int64}), 0);
    has_step = le(times, lengths).unsqueeze(2);
    none = filled({}, 0, x.dtype(), x.device());
    own = where(has_step, x, none);
  }
  const States y = states_of(
      op, {kind, own, h_0, c_0, w.w_ih, w.w_hh, w.b_ih, w.b_hh, lengths, options.reverse});
  LstmResult result{y.h, y.h[options.reverse ? 0 : x.shape()[0] - 1], y.c_n};
  // after the end of a sequence y.h repeats its last state, but the output is 0
  if (lengths.defined()) result.output = where(has_step, y.h, none);
  return result;
}

}  // namespace
}  // namespace ops

LstmResult lstm(const Tensor& x, const Tensor& h_0, const Tensor& c_0, const RnnWeights& weights,
                const RnnOptions& options) {
  return ops::recurrent("lstm", RnnKind::lstm, x, h_0, c_0, weights, options);
}
RnnResult gru(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
              const RnnOptions& options) {
  const LstmResult y = ops::recurrent("gru", RnnKind::gru, x, h_0, {}, weights, options);
  return {y.output, y.h_n};
}
RnnResult rnn_tanh(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
                   const RnnOptions& options) {
  const LstmResult y = ops::recurrent("rnn_tanh", RnnKind::tanh, x, h_0, {}, weights, options);
  return {y.output, y.h_n};
}
RnnResult rnn_relu(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
                   const RnnOptions& options) {
  const LstmResult y = ops::recurrent("rnn_relu", RnnKind::relu, x, h_0, {}, weights, options);
  return {y.output, y.h_n};
}

BRAID_FIELDS_DEFINED(RnnWeights, w_ih, w_hh, b_ih, b_hh)
BRAID_FIELDS_DEFINED(RnnResult, output, h_n)
BRAID_FIELDS_DEFINED(LstmResult, output, h_n, c_n)

}  // namespace braid

// The gradient of a recurrent layer in recorded ops, so that it can be differentiated: the textbook
// form of backpropagation through time.
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"
#include "rnn.hpp"

namespace braid::ops {
namespace {

/// What a step saves for the backward.
struct Step {
  Tensor h_before, c_before, h, c;
  Tensor gate[4];         // activations
  Tensor hidden_product;  // gru: U h + b of the gate n
  // [B, 1]: 1 if the sequence has this step, else 0; undefined without lengths
  Tensor alive;
};

Tensor gate_of(const Tensor& product, std::int64_t number, std::int64_t hidden) {
  return product.narrow(1, number * hidden, hidden);
}

Step forward(const RnnInputs& in, const Tensor& from_x, const Tensor& h, const Tensor& c,
             std::int64_t time) {
  const std::int64_t n = h.shape()[1];
  const Tensor from_h = linear(h, in.w_hh, in.b_hh);
  Step s{.h_before = h,
         .c_before = c,
         .h = {},
         .c = {},
         .gate = {},
         .hidden_product = {},
         .alive = {}};
  if (in.lengths.defined()) s.alive = gt(in.lengths, time).to(h.dtype()).unsqueeze(1);
  if (in.kind == RnnKind::gru) {
    s.hidden_product = gate_of(from_h, 2, n);
    for (int k = 0; k < 2; ++k) s.gate[k] = sigmoid(gate_of(from_x, k, n) + gate_of(from_h, k, n));
    s.gate[2] = tanh(gate_of(from_x, 2, n) + s.gate[0] * s.hidden_product);
    s.h = s.gate[2] + s.gate[1] * (h - s.gate[2]);
  } else if (const Tensor sum = from_x + from_h; in.kind == RnnKind::lstm) {
    for (int k = 0; k < 4; ++k)
      s.gate[k] = k == 2 ? tanh(gate_of(sum, k, n)) : sigmoid(gate_of(sum, k, n));
    s.c = s.gate[1] * c + s.gate[0] * s.gate[2];
    s.h = s.gate[3] * tanh(s.c);
  } else {
    s.gate[0] = s.h = in.kind == RnnKind::tanh ? tanh(sum) : relu(sum);
  }
  return s;
}

/// Returns the state for the next step: the new one if the sequence has this step, else the old.
Tensor kept(const Step& s, const Tensor& fresh, const Tensor& old) {
  return s.alive.defined() ? s.alive * fresh + (1 - s.alive) * old : fresh;
}

/// The derivatives of sigmoid and tanh, computed from their values.
Tensor sigmoid_slope(const Tensor& y) { return y * (1 - y); }
Tensor tanh_slope(const Tensor& y) { return 1 - square(y); }

/// The gradients of the two products of a step, [B, G H]. backward() computes them from dh, the
/// gradient of the step's h. It sets dc to the gradient of c_before, and dh to the part of the
/// gradient of h_before that does not go through the products (undefined if there is none).
struct StepGrads {
  Tensor of_x, of_h;
};
StepGrads backward(const RnnInputs& in, const Step& s, Tensor& dh, Tensor& dc) {
  const Tensor alive = s.alive.defined() ? s.alive : Tensor();
  const Tensor d = alive.defined() ? alive * dh : dh;
  Tensor rest = alive.defined() ? (1 - alive) * dh : Tensor();
  const auto and_rest = [&](const Tensor& g) {
    return rest.defined() ? (g.defined() ? g + rest : rest) : g;
  };
  if (in.kind == RnnKind::lstm) {
    const Tensor squashed = tanh(s.c);
    const Tensor from_after = alive.defined() ? alive * dc : dc;
    const Tensor dstate = from_after + d * s.gate[3] * tanh_slope(squashed);
    const Tensor di = dstate * s.gate[2] * sigmoid_slope(s.gate[0]),
                 df = dstate * s.c_before * sigmoid_slope(s.gate[1]),
                 dg = dstate * s.gate[0] * tanh_slope(s.gate[2]),
                 output = d * squashed * sigmoid_slope(s.gate[3]);
    dc = alive.defined() ? dstate * s.gate[1] + (1 - alive) * dc : dstate * s.gate[1];
    dh = and_rest({});
    const Tensor all = cat({di, df, dg, output}, 1);
    return {all, all};
  }
  if (in.kind == RnnKind::gru) {
    const Tensor dn = d * (1 - s.gate[1]) * tanh_slope(s.gate[2]),
                 dz = d * (s.h_before - s.gate[2]) * sigmoid_slope(s.gate[1]);
    const Tensor dr = dn * s.hidden_product * sigmoid_slope(s.gate[0]);
    dh = and_rest(d * s.gate[1]);
    return {cat({dr, dz, dn}, 1), cat({dr, dz, dn * s.gate[0]}, 1)};
  }
  const Tensor slope = in.kind == RnnKind::tanh ? tanh_slope(s.h) : gt(s.h, 0).to(s.h.dtype());
  dh = and_rest({});
  return {d * slope, d * slope};
}

/// Returns the gradient of a product, dW = Σ dyᵀ x over steps and batch.
Tensor weight_grad(const Tensor& dy, const Tensor& x) {
  return matmul(dy.flatten(0, 1).t(), x.flatten(0, 1));
}

}  // namespace

Grads rnn_recorded_grads(const RnnInputs& in, const Tensor& dstates, const Tensor& dc_n) {
  const std::int64_t steps = in.steps();
  const Tensor from_x = linear(in.x, in.w_ih, in.b_ih);
  std::vector<Step> taken;
  Tensor h = in.h_0, c = in.c_0;
  for (std::int64_t k = 0; k < steps; ++k) {
    const std::int64_t t = in.time(k);
    taken.push_back(forward(in, from_x[t], h, c, t));
    const Step& s = taken.back();
    h = kept(s, s.h, h);
    if (in.kind == RnnKind::lstm) c = kept(s, s.c, c);
  }
  Tensor dh = zeros_like(in.h_0), dc = dc_n;
  if (in.kind == RnnKind::lstm && !dc.defined()) dc = zeros_like(in.c_0);
  std::vector<Tensor> of_x(static_cast<std::size_t>(steps)), of_h = of_x, before = of_x;
  for (std::int64_t k = steps - 1; k >= 0; --k) {
    const auto t = static_cast<std::size_t>(in.time(k));
    const Step& s = taken[static_cast<std::size_t>(k)];
    if (dstates.defined()) dh = dh + dstates[static_cast<std::int64_t>(t)];
    const StepGrads g = backward(in, s, dh, dc);
    const Tensor through = matmul(g.of_h, in.w_hh);
    dh = dh.defined() ? dh + through : through;
    of_x[t] = g.of_x, of_h[t] = g.of_h, before[t] = s.h_before;
  }
  const Tensor dx = stack(of_x), dhidden = stack(of_h);
  std::vector<Tensor> grads{matmul(dx, in.w_ih),
                            dh,
                            dc,
                            weight_grad(dx, in.x),
                            weight_grad(dhidden, stack(before)),
                            {},
                            {}};
  if (in.b_ih.defined()) grads[5] = dx.sum({0, 1}), grads[6] = dhidden.sum({0, 1});
  return Grads(std::move(grads));
}

}  // namespace braid::ops

// Tests of recurrent layers beyond the table of ops: sizes that are not multiples of tiles, numbers
// of threads, both forms of the gradient, in-place changes, lengths.
#include "reference/rnn.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

using Kind = reference::Recurrent;
const std::vector<Kind> kKinds{Kind::lstm, Kind::gru, Kind::tanh, Kind::relu};

/// A layer with its input and state; all require gradients.
struct Layer {
  Kind kind;
  Tensor x, h, c;
  RnnWeights w;

  Layer(Kind k, std::int64_t steps, std::int64_t batch, std::int64_t inputs, std::int64_t hidden,
        DType t)
      : kind(k) {
    const std::int64_t width = (k == Kind::lstm ? 4 : k == Kind::gru ? 3 : 1) * hidden;
    const double scale = 1 / std::sqrt(static_cast<double>(hidden));
    auto make = [t, seed = std::uint64_t{1}](const Sizes& shape, double size) mutable {
      return random_tensor(shape, t, here(), seed++, -size, size).requires_grad_();
    };
    x = make({steps, batch, inputs}, 1), h = make({batch, hidden}, 1), c = make({batch, hidden}, 1);
    w = {make({width, inputs}, scale), make({width, hidden}, scale), make({width}, scale),
         make({width}, scale)};
  }
  [[nodiscard]] LstmResult operator()(const RnnOptions& options = {}) const {
    if (kind == Kind::lstm) return lstm(x, h, c, w, options);
    const RnnResult y = kind == Kind::gru    ? gru(x, h, w, options)
                        : kind == Kind::tanh ? rnn_tanh(x, h, w, options)
                                             : rnn_relu(x, h, w, options);
    return {y.output, y.h_n, {}};
  }
  [[nodiscard]] std::vector<Tensor> leaves() const {
    std::vector<Tensor> list{x, h};
    if (kind == Kind::lstm) list.push_back(c);
    list.insert(list.end(), {w.w_ih, w.w_hh, w.b_ih, w.b_hh});
    return list;
  }
  /// Returns a weighted sum of all results.
  [[nodiscard]] Tensor loss(const RnnOptions& options = {}) const {
    const LstmResult y = (*this)(options);
    const auto weighted = [](const Tensor& t, std::uint64_t seed) {
      return (t * random_tensor(sizes_of(t.shape()), t.dtype(), here(), seed)).sum();
    };
    Tensor sum = weighted(y.output, 71) + weighted(y.h_n, 72);
    return y.c_n.defined() ? sum + weighted(y.c_n, 73) : sum;
  }
  [[nodiscard]] std::vector<Tensor> gradients(const RnnOptions& options,
                                              bool create_graph = false) const {
    return grad(std::vector<Tensor>{loss(options)}, leaves(), {}, false, create_graph);
  }
};

}  // namespace

TEST_CASE(
    "rnn: sizes that break tiles and vectors, in both directions, with lengths, for any number of "
    "threads",
    "[rnn]") {
  const std::vector<std::array<std::int64_t, 4>> sizes{{1, 1, 1, 1},
                                                       {3, 5, 7, 17},
                                                       {2, 33, 3, 31},
                                                       {2, 2, 5, cut(1025, 65)},
                                                       {4, cut(129, 9), 2, 8}};
  const KeepThreads keep;
  for (const Kind kind : kKinds)
    for (const auto& [steps, batch, inputs, hidden] : sizes)
      for (const bool reverse : {false, true})
        for (const bool with_lengths : {false, true}) {
          const Layer layer(kind, steps, batch, inputs, hidden, DType::float32);
          std::vector<std::int64_t> lengths;
          for (std::int64_t b = 0; with_lengths && b < batch; ++b)
            lengths.push_back((b * 7 + 1) % (steps + 1));
          const RnnOptions options{reverse, with_lengths ? braid::tensor(lengths) : Tensor()};
          INFO(static_cast<int>(kind)
               << ": " << steps << " x " << batch << " x " << inputs << " -> " << hidden
               << ", reverse " << reverse << ", lengths " << with_lengths);
          const reference::RecurrentResult want = reference::recurrent(
              kind, array_of(layer.x), array_of(layer.h), array_of(layer.c), array_of(layer.w.w_ih),
              array_of(layer.w.w_hh), array_of(layer.w.b_ih), array_of(layer.w.b_hh), reverse,
              lengths);
          const Tolerance allowed{2e-5, 1e-5};
          std::vector<Tensor> first;
          for (const int threads : thread_counts({1, 3})) {
            set_num_threads(threads);
            const LstmResult y = layer(options);
            CHECK_CLOSE(y.output, want.output, allowed);
            CHECK_CLOSE(y.h_n, want.h, allowed);
            if (kind == Kind::lstm) CHECK_CLOSE(y.c_n, want.c, allowed);
            std::vector<Tensor> grads = layer.gradients(options);
            grads.push_back(y.output.detach());
            for (std::size_t i = 0; i < first.size(); ++i) CHECK_SAME_BITS(grads[i], first[i]);
            if (first.empty()) first = grads;
          }
        }
}

TEST_CASE("rnn: the fused gradient and the one made of recorded ops are one", "[rnn][gradients]") {
  for (const Kind kind : kKinds)
    for (const bool reverse : {false, true})
      for (const bool with_lengths : {false, true}) {
        const Layer layer(kind, 5, 4, 3, 6, DType::float64);
        const RnnOptions options{reverse,
                                 with_lengths ? braid::tensor(Whole{2, 5, 0, 1}) : Tensor()};
        INFO(static_cast<int>(kind) << ", reverse " << reverse << ", lengths " << with_lengths);
        const std::vector<Tensor> fused = layer.gradients(options),
                                  recorded = layer.gradients(options, true);
        for (std::size_t i = 0; i < fused.size(); ++i) {
          CHECK_FALSE(fused[i].requires_grad());
          CHECK_CLOSE(fused[i], array_of(recorded[i]), tolerance(DType::float64));
        }
        if (kind != Kind::relu) CHECK(recorded[3].requires_grad());
      }
}

TEST_CASE("rnn: a third derivative", "[rnn][gradients]") {
  // The first three derivatives of h' = tanh(w x) by w, compared with explicit formulas.
  const Tensor w = tensor({{0.5}}, {.dtype = DType::float64}).requires_grad_(),
               x = tensor({{{0.8}}}, {.dtype = DType::float64});
  const Tensor zero = zeros({1, 1}, {.dtype = DType::float64});
  const Tensor y = rnn_tanh(x, zero, {w, zero, {}, {}}).h_n.sum();
  const Tensor first = grad(y, {w}, false, true)[0].sum(),
               second = grad(first, {w}, false, true)[0].sum(), third = grad(second, {w})[0].sum();
  const double t = std::tanh(0.4), s = 1 - t * t;
  CHECK(first.item<double>() == Approx(0.8 * s));
  CHECK(second.item<double>() == Approx(0.64 * -2 * t * s));
  CHECK(third.item<double>() == Approx(0.512 * (-2 * s * s + 4 * t * t * s)));
}

TEST_CASE("rnn: only what wants a gradient gets one; results that were changed are found",
          "[rnn][errors]") {
  const Layer layer(Kind::lstm, 3, 2, 2, 3, DType::float64);
  for (const Tensor& only : layer.leaves()) {
    for (const Tensor& leaf : layer.leaves()) leaf.requires_grad_(leaf.id() == only.id());
    const Tensor g = grad(layer.loss(), {only})[0];
    for (const Tensor& leaf : layer.leaves()) leaf.requires_grad_(true);
    CHECK_CLOSE(g, array_of(grad(layer.loss(), {only})[0]), tolerance(DType::float64));
  }
  const LstmResult y = layer();
  const Tensor sum = y.output.sum();
  {
    const NoGrad guard;
    y.output.zero_();
  }
  CHECK_THROWS_TEXT(AutogradError, "backward: expected a saved tensor*unchanged*saved by lstm",
                    (void)grad(sum, {layer.x}));
}

TEST_CASE("rnn: lengths beside x are taken as they are, and cut to [0, T]", "[rnn]") {
  const Layer layer(Kind::gru, 4, 3, 2, 5, DType::float32);
  const LstmResult checked = layer({.lengths = braid::tensor(Whole{0, 4, 2})});
  if (!on_cpu()) {
    const LstmResult beside = layer({.lengths = tensor(Whole{-3, 9, 2})});
    CHECK_SAME_BITS(beside.output.detach(), checked.output.detach());
    CHECK_SAME_BITS(beside.h_n.detach(), checked.h_n.detach());
  }
  CHECK_SAME_BITS(checked.h_n[0].detach(), layer.h[0].detach());
  CHECK(checked.output.detach().slice(0, 2, 4).select(1, 2).sum().item<double>() == 0);
  CHECK(awaited(checked.output.detach()[3][1][0]).item<double>() != 0);
}

TEST_CASE("rnn: NaN reaches what depends on it, and nothing else", "[rnn]") {
  for (const Kind kind : kKinds) {
    const Layer layer(kind, 3, 2, 2, 3, DType::float32);
    layer.x.detach()[1][0][1].fill_(kNan);
    const Array y = array_of(layer().output);  // [3, 2, 3]
    for (std::int64_t i = 0; i < y.size(); ++i)
      CHECK(std::isnan(y[i]) == (i / 6 >= 1 && i / 3 % 2 == 0));
  }
}

}  // namespace braid::test::on_device

// Recurrent layers: names and initial values of parameters, layers and directions compared with
// single steps, lengths, states, shapes that are rejected, trees.
#include <braid/braid.hpp>

#include "refused.hpp"
#include "support/on_device.hpp"
#include "trees.hpp"

namespace braid::test::on_device {
namespace {

const Tolerance kClose{1e-5, 1e-5};

/// Returns `cell` with those weights of `layer` whose names end in `end`.
template <class Cell> Cell cell_of(Cell cell, const nn::Recurrent& layer, const std::string& end) {
  const NoGrad guard;
  cell.weight_ih.copy_(layer.weights.at("weight_ih" + end));
  cell.weight_hh.copy_(layer.weights.at("weight_hh" + end));
  if (!layer.bias) return cell;
  cell.bias_ih.copy_(layer.weights.at("bias_ih" + end));
  cell.bias_hh.copy_(layer.weights.at("bias_hh" + end));
  return cell;
}

}  // namespace

TEST_CASE("rnn: parameters are named, ordered, shaped and started as PyTorch's", "[nn][rnn]") {
  const nn::LSTM lstm = home(nn::LSTM(3, 100, {.num_layers = 2, .bidirectional = true}));
  Names want;
  for (const char* layer : {"_l0", "_l0_reverse", "_l1", "_l1_reverse"})
    for (const char* which : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
      want.push_back(std::string(which) + layer);
  CHECK(keys(named_parameters(lstm)) == want);
  CHECK(lstm.weights.at("weight_ih_l0").shape() == Shape{400, 3});
  CHECK(lstm.weights.at("weight_ih_l1_reverse").shape() == Shape{400, 200});
  CHECK(lstm.weights.at("weight_hh_l1").shape() == Shape{400, 100});
  CHECK(lstm.weights.at("bias_hh_l0").shape() == Shape{400});
  for (const Tensor& t : parameters(lstm)) {
    CHECK(t.max().item<double>() < 0.1);
    CHECK(t.max().item<double>() > 0.09);
    CHECK(neg(t).max().item<double>() > 0.09);
    CHECK(t.requires_grad());
  }
  CHECK(keys(named_parameters(nn::GRU(2, 3, {.bias = false}))) ==
        Names{"weight_ih_l0", "weight_hh_l0"});
  CHECK(nn::GRU(2, 3).weights.at("weight_ih_l0").shape() == Shape{9, 2});
  CHECK(nn::RNN(2, 3).weights.at("weight_hh_l0").shape() == Shape{3, 3});
  CHECK(keys(named_parameters(nn::LSTMCell(2, 3))) ==
        Names{"weight_ih", "weight_hh", "bias_ih", "bias_hh"});
  CHECK_THROWS_TEXT(IndexError, "at: expected the name of an entry, got 'weight_ih_l2'",
                    lstm.weights.at("weight_ih_l2"));
}

TEST_CASE("rnn: printed as PyTorch prints them", "[nn][rnn][print]") {
  CHECK(str(nn::LSTM(10, 20)) == "LSTM(10, 20)");
  CHECK(str(nn::RNN(3, 4,
                    {.num_layers = 2,
                     .bias = false,
                     .batch_first = true,
                     .dropout = 0.25,
                     .bidirectional = true})) ==
        "RNN(3, 4, num_layers=2, bias=false, batch_first=true, dropout=0.25, bidirectional=true)");
  CHECK(str(nn::GRUCell(3, 4)) == "GRUCell(3, 4)");
  CHECK(str(nn::RNNCell(3, 4, {.bias = false, .nonlinearity = nn::Nonlinearity::relu})) ==
        "RNNCell(3, 4, bias=false, nonlinearity=relu)");
  nn::LSTM from(2, 3);
  const nn::LSTM to = std::move(from);
  CHECK(str(from, to) == "LSTM(moved from)LSTM(2, 3)");
}

TEST_CASE("rnn: two layers are cells, step by step", "[nn][rnn]") {
  const Tensor x = random_tensor({4, 3, 5}), h_0 = random_tensor({2, 3, 6}, DType::float32, {}, 2),
               c_0 = random_tensor({2, 3, 6}, DType::float32, {}, 3);
  for (const bool bias : {true, false}) {
    const nn::LSTM lstm = home(nn::LSTM(5, 6, {.num_layers = 2, .bias = bias}));
    const nn::LSTMCell first = cell_of(home(nn::LSTMCell(5, 6, {.bias = bias})), lstm, "_l0"),
                       second = cell_of(home(nn::LSTMCell(6, 6, {.bias = bias})), lstm, "_l1");
    nn::LSTMState a{h_0[0], c_0[0]}, b{h_0[1], c_0[1]};
    const auto [y, h_n, c_n] = lstm(x, {h_0, c_0});
    for (std::int64_t t = 0; t < 4; ++t) {
      a = first(x[t], a);
      b = second(a.h, b);
      CHECK_CLOSE(y[t], array_of(b.h), kClose);
    }
    CHECK_CLOSE(h_n, array_of(stack({a.h, b.h})), kClose);
    CHECK_CLOSE(c_n, array_of(stack({a.c, b.c})), kClose);
    const nn::GRU gru = home(nn::GRU(5, 6, {.bias = bias}));
    const nn::GRUCell cell = cell_of(home(nn::GRUCell(5, 6, {.bias = bias})), gru, "_l0");
    Tensor h;
    for (std::int64_t t = 0; t < 4; ++t) h = cell(x[t], h);
    CHECK_CLOSE(gru(x).h_n[0], array_of(h), kClose);
  }
  for (const nn::Nonlinearity f : {nn::Nonlinearity::tanh, nn::Nonlinearity::relu}) {
    const nn::RNN rnn = home(nn::RNN(5, 6, {.nonlinearity = f}));
    const nn::RNNCell cell = cell_of(home(nn::RNNCell(5, 6, {.nonlinearity = f})), rnn, "_l0");
    CHECK_CLOSE(rnn(x).output[1], array_of(cell(x[1], cell(x[0]))), kClose);
    const Tensor by_hand = linear(x[0], cell.weight_ih, cell.bias_ih) + cell.bias_hh;
    CHECK_CLOSE(cell(x[0]), array_of(f == nn::Nonlinearity::tanh ? tanh(by_hand) : relu(by_hand)),
                kClose);
  }
}

TEST_CASE("rnn: the state of a cell is no view, for one sequence too", "[nn][rnn]") {
  const nn::LSTMCell lstm = home(nn::LSTMCell(3, 4));
  const nn::GRUCell gru = home(nn::GRUCell(3, 4));
  const nn::RNNCell rnn = home(nn::RNNCell(3, 4));
  for (const Tensor& x : {random_tensor({2, 3}), random_tensor({3})})
    for (const bool detach : {true, false}) {
      const nn::LSTMState s = lstm(x);
      for (const Tensor& t : {s.h, s.c, gru(x), rnn(x)}) {
        REQUIRE(t.requires_grad());
        if (detach) t.detach_();
        else t.unsqueeze_(0).squeeze_(0);
        CHECK(t.requires_grad() != detach);
      }
    }
}

TEST_CASE("rnn: both directions, batch first, one sequence", "[nn][rnn]") {
  const nn::LSTM both = home(nn::LSTM(3, 4, {.bidirectional = true})), forth = home(nn::LSTM(3, 4)),
                 back = home(nn::LSTM(3, 4));
  for (const char* which : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
    forth.weights.at(which).detach().copy_(both.weights.at(which));
    back.weights.at(which).detach().copy_(both.weights.at(std::string(which) + "_reverse"));
  }
  const auto turned = [](const Tensor& t) { return index_select(t, 0, tensor({4, 3, 2, 1, 0})); };
  const Tensor x = random_tensor({5, 2, 3});
  const nn::LSTMOutput y = both(x), f = forth(x), b = back(turned(x));
  CHECK(y.output.shape() == Shape{5, 2, 8});
  CHECK_CLOSE(y.output, array_of(cat({f.output, turned(b.output)}, 2)), kClose);
  CHECK_CLOSE(y.h_n, array_of(cat({f.h_n, b.h_n}, 0)), kClose);
  CHECK_CLOSE(y.c_n, array_of(cat({f.c_n, b.c_n}, 0)), kClose);

  nn::LSTM first = clone(both);
  first.batch_first = true;
  const nn::LSTMOutput z = first(x.transpose(0, 1));
  CHECK(z.output.shape() == Shape{2, 5, 8});
  CHECK_SAME_BITS(z.output.transpose(0, 1).contiguous().detach(), y.output.detach());
  CHECK_SAME_BITS(z.h_n.detach(), y.h_n.detach());

  const nn::LSTMOutput one = both(x.select(1, 1));
  CHECK(one.output.shape() == Shape{5, 8});
  CHECK(one.h_n.shape() == Shape{2, 4});
  CHECK_CLOSE(one.output, array_of(y.output.select(1, 1)), kClose);
  CHECK_CLOSE(both(x.select(1, 1), one.state()).c_n, array_of(both(x, y.state()).c_n.select(1, 1)),
              kClose);
  const nn::GRUCell cell = home(nn::GRUCell(3, 4));
  CHECK_CLOSE(cell(x[0][1]), array_of(cell(x[0])[1]), kClose);
}

TEST_CASE("rnn: each sequence of its own length is as it is alone", "[nn][rnn]") {
  const std::vector<std::int64_t> lengths{2, 5, 1};
  const nn::LSTM lstm = home(nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true}));
  const nn::GRU gru = home(nn::GRU(3, 4, {.num_layers = 2, .bidirectional = true}));
  const Tensor x = random_tensor({5, 3, 3});
  const nn::LSTMOutput y = lstm(x, {}, braid::tensor(lengths));
  const nn::RNNOutput z = gru(x, {}, braid::tensor(lengths));
  CHECK(y.output.shape() == Shape{5, 3, 8});
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t n = lengths[static_cast<std::size_t>(b)];
    const nn::LSTMOutput alone = lstm(x.select(1, b).slice(0, 0, n));
    CHECK_CLOSE(y.output.select(1, b).slice(0, 0, n), array_of(alone.output), kClose);
    CHECK_CLOSE(y.h_n.select(1, b), array_of(alone.h_n), kClose);
    CHECK_CLOSE(y.c_n.select(1, b), array_of(alone.c_n), kClose);
    CHECK(abs(y.output.select(1, b).slice(0, n, 5)).sum().item<double>() == 0);
    CHECK_CLOSE(z.h_n.select(1, b), array_of(gru(x.select(1, b).slice(0, 0, n)).h_n), kClose);
  }
  CHECK_THROWS_TEXT(IndexError, "lstm: expected lengths in [0, 5], got 6 at position 0",
                    lstm(x, {}, braid::tensor(std::vector<std::int64_t>{6, 1, 1})));
}

TEST_CASE("rnn: what is past the lengths reaches no gradient, NaN too", "[nn][rnn][gradients]") {
  const Tensor lengths = braid::tensor(std::vector<std::int64_t>{2, 5, 1});
  const auto gradients = [&](const auto& layer, double padding, bool recorded) {
    const Tensor x = random_tensor({5, 3, 3});
    for (const auto& [b, n] : {std::pair{0, 2}, {2, 1}})
      x.select(1, b).slice(0, n, 5).fill_(padding);
    std::vector<Tensor> inputs = parameters(layer);
    inputs.push_back(x.requires_grad_());
    const Tensor sum = square(layer(x, {}, lengths).output).sum();
    std::vector<Tensor> all = grad(std::vector<Tensor>{sum}, inputs, {}, true, recorded);
    if (recorded) {
      Tensor squares = zeros({});
      for (const Tensor& g : all) squares = squares + square(g).sum();
      all = grad(std::vector<Tensor>{squares}, inputs);
    }
    return all;
  };
  const nn::LSTM lstm = home(nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true}));
  const nn::GRU gru = home(nn::GRU(3, 4));
  const auto check = [&](const auto& layer, bool recorded) {
    const std::vector<Tensor> want = gradients(layer, 0, recorded);
    for (const double padding : {std::nan(""), double{INFINITY}}) {
      const std::vector<Tensor> got = gradients(layer, padding, recorded);
      for (std::size_t i = 0; i < want.size(); ++i) CHECK_SAME_BITS(got[i], want[i]);
    }
  };
  for (const bool recorded : {false, true}) {
    INFO("second derivatives " << recorded);
    check(lstm, recorded);
    check(gru, recorded);
  }
}

TEST_CASE("rnn: dropout stands between the layers, while training", "[nn][rnn]") {
  nn::LSTM lstm = home(nn::LSTM(3, 4, {.num_layers = 2, .dropout = 1}));
  const Tensor x = random_tensor({5, 2, 3});
  // everything is dropped: the second layer's input is 0
  const nn::LSTMOutput y = lstm(x), twice = lstm(x * 2.0);
  CHECK_SAME_BITS(y.output.detach(), twice.output.detach());
  CHECK(test::same_bits(y.h_n[0].detach(), twice.h_n[0].detach()) != "");
  CHECK_FALSE(std::isnan(y.output.sum().item<double>()));
  eval(lstm);
  nn::LSTM plain = clone(lstm);
  plain.dropout = 0;
  CHECK_SAME_BITS(lstm(x).output.detach(), plain(x).output.detach());
  CHECK(test::same_bits(lstm(x).output.detach(), lstm(x * 2.0).output.detach()) != "");
  // there is no next layer, so nothing is dropped
  const nn::GRU one = home(nn::GRU(3, 4, {.dropout = 0.5}));
  CHECK_SAME_BITS(one(x).output.detach(), one(x).output.detach());
}

TEST_CASE("rnn: gradients reach every parameter, and agree with differences",
          "[nn][rnn][gradients]") {
  const nn::LSTM lstm =
      home(nn::LSTM(2, 3, {.num_layers = 2, .bidirectional = true, .dtype = DType::float64}));
  const Tensor x = random_tensor({3, 2, 2}, DType::float64),
               weight = random_tensor({3, 2, 6}, DType::float64, {}, 5);
  const auto loss = [&] {
    const nn::LSTMOutput y = lstm(x);
    return (y.output * weight).sum() + y.h_n.sum() + y.c_n.sum();
  };
  loss().backward();
  const NoGrad guard;
  for (const auto& [name, p] : named_parameters(lstm)) {
    INFO(name);
    REQUIRE(p.grad().defined());
    const Tensor at = p.flatten()[1];
    constexpr double step = 1e-5;
    at.add_(step);
    const double above = loss().item<double>();
    at.add_(-2 * step);
    const double below = loss().item<double>();
    at.add_(step);
    CHECK(p.grad().flatten()[1].item<double>() ==
          Approx((above - below) / (2 * step)).epsilon(1e-6).margin(1e-8));
  }
}

TEST_CASE("rnn: sizes, inputs and states that are refused", "[nn][rnn][errors]") {
  refuses<ArgumentError>("")({
      {"LSTM: expected input_size >= 0, got -1", [] { nn::LSTM(-1, 2); }},
      {"GRU: expected hidden_size >= 1, got 0", [] { nn::GRU(1, 0); }},
      {"RNN: expected num_layers >= 1, got 0", [] { nn::RNN(1, 1, {.num_layers = 0}); }},
      {"LSTM: expected num_layers <= 1000, got 1000000000",
       [] { nn::LSTM(1, 1, {.num_layers = 1'000'000'000}); }},
      {"LSTM: expected dropout in [0, 1], got 1.5", [] { nn::LSTM(1, 1, {.dropout = 1.5}); }},
      {"LSTMCell: expected hidden_size >= 1, got -1", [] { nn::LSTMCell(1, -1); }},
  });
  const std::int64_t huge = (std::int64_t{1} << 61) + 1;
  refuses<ShapeError>("")({
      {"LSTMCell: expected at most 2^63 - 1 bytes", [&] { nn::LSTMCell(0, huge); }},
      {"GRUCell: expected at most 2^63 - 1 bytes", [&] { nn::GRUCell(huge, 1); }},
      {"GRU: expected at most 2^63 - 1 bytes", [&] { nn::GRU(0, huge); }},
      {"RNN: expected at most 2^63 - 1 bytes", [&] { nn::RNN(huge, 1); }},
  });
  const nn::LSTM lstm = home(nn::LSTM(3, 4, {.num_layers = 2}));
  const nn::GRUCell cell = home(nn::GRUCell(3, 4));
  const Tensor x = zeros({5, 2, 3}), states = zeros({2, 2, 4});
  refuses<ShapeError>("")({
      {"LSTM: expected x [steps, batch, 3] or [steps, 3], got [5, 2, 4]",
       [&] { return lstm(zeros({5, 2, 4})); }},
      {"LSTM: expected x *got [3]", [&] { return lstm(zeros({3})); }},
      {"LSTM: expected h [2, 2, 4] for x [5, 2, 3], got [1, 2, 4]",
       [&] { return lstm(x, {zeros({1, 2, 4}), states}); }},
      {"LSTM: expected c [2, 4] for x [5, 3], got [2, 2, 4]",
       [&] { return lstm(zeros({5, 3}), {{}, states}); }},
      {"lstm: expected at least one step, got x [0, 2, 3]", [&] { return lstm(zeros({0, 2, 3})); }},
      {"GRUCell: expected x [batch, 3] or [3], got [2, 4]", [&] { return cell(zeros({2, 4})); }},
      {"GRUCell: expected h [2, 4] for x [2, 3], got [4]",
       [&] { return cell(zeros({2, 3}), zeros({4})); }},
  });
  CHECK_THROWS_TEXT(DTypeError, "lstm: expected one dtype, got float64 and float32",
                    lstm(zeros({5, 2, 3}, {.dtype = DType::float64})));
}

TEST_CASE("rnn: trees: state dicts, copies and the state of a step", "[nn][rnn]") {
  const nn::LSTM a = home(nn::LSTM(3, 4, {.num_layers = 2})),
                 b = home(nn::LSTM(3, 4, {.num_layers = 2}));
  const Tensor x = random_tensor({5, 2, 3});
  CHECK(test::same_bits(a(x).output.detach(), b(x).output.detach()) != "");
  load_state_dict(b, state_dict(a));
  CHECK_SAME_BITS(a(x).output.detach(), b(x).output.detach());
  const nn::LSTM copy = a;
  CHECK(copy.weights.at("bias_ih_l1").id() != a.weights.at("bias_ih_l1").id());
  CHECK_SAME_BITS(copy(x).h_n.detach(), a(x).h_n.detach());
  struct Model : nn::Module {
    nn::Embedding words{7, 3};
    nn::LSTM rnn{3, 4};
    BRAID_FIELDS(words, rnn)
  };
  CHECK(keys(named_parameters(Model())) == Names{"words.weight", "rnn.weight_ih_l0",
                                                 "rnn.weight_hh_l0", "rnn.bias_ih_l0",
                                                 "rnn.bias_hh_l0"});
  CHECK(str(Model()) == "Model(\n  (words): Embedding(7, 3)\n  (rnn): LSTM(3, 4)\n)");
}

TEST_CASE("rnn: split over devices along the batch", "[nn][rnn]") {
  if (devices().size() < 2) return;
  const parallel::DataParallel split(home(nn::LSTM(3, 4)), parallel::DeviceList{here(), there()},
                                     std::nullopt, 1);
  const Tensor x = random_tensor({5, 4, 3});
  const nn::LSTMOutput y = split(x), again = split(x, y.state()), whole = split.module(x),
                       after = split.module(x, whole.state());
  CHECK_CLOSE(y.output, array_of(whole.output), kClose);
  CHECK_CLOSE(again.c_n, array_of(after.c_n), kClose);
}

TEST_CASE("pad_sequence: sequences of their own lengths in one batch", "[nn][rnn]") {
  const auto of = [](const std::vector<float>& v) { return tensor(v).to(here()); };
  const std::vector<Tensor> list{of({1, 2, 3}), of({4}), of({})};
  const Tensor rows = nn::utils::rnn::pad_sequence(list, true, 9);
  CHECK(rows.shape() == Shape{3, 3});
  CHECK(rows.to_vector<float>() == std::vector<float>{1, 2, 3, 4, 9, 9, 9, 9, 9});
  CHECK(nn::utils::rnn::pad_sequence(list).to_vector<float>() ==
        std::vector<float>{1, 4, 0, 2, 0, 0, 3, 0, 0});
  const Tensor x = ones({2, 4}, {.device = here()}).requires_grad_();
  const Tensor y = nn::utils::rnn::pad_sequence({x, ones({5, 4}, {.device = here()})});
  CHECK(y.shape() == Shape{5, 2, 4});
  (y * 2).sum().backward();
  CHECK(x.grad().to_vector<float>() == std::vector<float>(8, 2));
  CHECK_THROWS_TEXT(ArgumentError, "pad_sequence: expected at least one sequence, got none",
                    nn::utils::rnn::pad_sequence({}));
  CHECK_THROWS_TEXT(ShapeError, "pad_sequence: expected sequences, got a scalar",
                    nn::utils::rnn::pad_sequence({ones({})}));
  CHECK_THROWS_AS(nn::utils::rnn::pad_sequence({ones({2, 3}), ones({2, 4})}), ShapeError);
  x.set_grad(full({2, 4}, 3, {.device = here(), .dtype = DType::float32}));
  nn::utils::clip_grad_value_({x}, 1.0);
  CHECK(x.grad().to_vector<float>() == std::vector<float>(8, 1));
}

TEST_CASE("Embedding: a padding row starts at zero and gets no gradient", "[nn][layers]") {
  const nn::Embedding table = home(nn::Embedding(5, 3, {.padding_idx = -2}));
  CHECK(str(table) == "Embedding(5, 3, padding_idx=3)");
  CHECK(abs(table.weight.detach()[3]).sum().item<double>() == 0);
  CHECK(abs(table.weight.detach()[2]).sum().item<double>() != 0);
  const Tensor words = tensor(std::vector<std::int64_t>{3, 1, 3, 1, 4});
  const Tensor twice = square(table(words) + 1.0).sum();
  const Tensor g = grad(twice, {table.weight}, true)[0],
               recorded = grad(twice, {table.weight}, false, true)[0];
  CHECK(abs(g[3]).sum().item<double>() == 0);
  CHECK_CLOSE(g[1], array_of((table.weight.detach()[1] + 1.0) * 4.0), kClose);
  const Tensor second = grad(square(recorded).sum(), {table.weight})[0];
  CHECK(abs(second[3]).sum().item<double>() == 0);
  CHECK(abs(second[1]).sum().item<double>() != 0);
  CHECK_THROWS_TEXT(IndexError, "Embedding: expected padding_idx in [-5, 5), got 5",
                    nn::Embedding(5, 3, {.padding_idx = 5}));
}

}  // namespace braid::test::on_device

// Capsules: the numbers of the paper's formulas, a tiny network compared with PyTorch's
// (goldens/capsules.txt), the full network's parameters, gradients at zero vectors, errors.
#include <braid/braid.hpp>

#include "refused.hpp"
#include "support/golden.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

using braid::testing::difference;
using braid::testing::Goldens;

const Goldens& goldens() {
  static const Goldens file("capsules.txt", here());
  return file;
}

struct TinyNet : nn::Module {
  nn::Conv2d conv{1, 3, 3};
  nn::PrimaryCapsules primary{3, 2, 4, 3};
  nn::DigitCapsules digits;
  nn::Linear decoder{15, 49};
  explicit TinyNet(bool detach) : digits(8, 4, 3, 5, {.detach_routing = detach, .bias = true}) {}
  BRAID_FIELDS(conv, primary, digits, decoder)
};

/// The paper's network.
struct FullNet : nn::Module {
  nn::Conv2d conv{1, 256, 9};
  nn::PrimaryCapsules primary{256, 32, 8, 9};
  nn::DigitCapsules digits{32 * 6 * 6, 8, 10, 16};
  nn::Sequential<nn::Linear, nn::ReLU, nn::Linear, nn::ReLU, nn::Linear, nn::Sigmoid> decoder{
      nn::Linear(160, 512),  nn::ReLU(),   nn::Linear(512, 1024), nn::ReLU(),
      nn::Linear(1024, 784), nn::Sigmoid()};
  BRAID_FIELDS(conv, primary, digits, decoder)
};

Tensor doubles(const Literal& numbers) {
  return on_device::tensor(numbers, {.dtype = DType::float64});
}

/// The votes of the specification, the same for each sample: 3 inputs, 2 outputs of 2 numbers.
Tensor votes_of_three(std::int64_t samples = 1) {
  const Tensor one = doubles({{{1, 0}, {0, 1}}, {{1, 0.5}, {0.5, -1}}, {{0.5, 1}, {-1, 0}}});
  return one.unsqueeze(0).expand({samples, 3, 2, 2});
}

}  // namespace

TEST_CASE("squash: keeps the direction, and a length below 1", "[nn][capsule]") {
  const double x = 0.57692307692307687, y = 0.76923076923076927;
  for (const DType dtype : {DType::float32, DType::float64})
    CHECK(difference(nn::squash(tensor({{3, 4}, {0, 0}}, {.dtype = dtype})),
                     tensor({{x, y}, {0, 0}}, {.dtype = dtype}), 1e-6, 0) == "");
  // |s| = 5 · 2^k, from very short vectors to very long ones. The result has the same direction and
  // the length (25 · 4^k) / (1 + 25 · 4^k).
  for (int k = -12; k <= 30; ++k) {
    const double scale = std::ldexp(1.0, k), square_length = 25 * scale * scale,
                 length = square_length / (1 + square_length);
    INFO("k = " << k);
    CHECK(difference(nn::squash(tensor({3 * scale, 4 * scale})),
                     tensor({0.6 * length, 0.8 * length}), 2e-6, 0) == "");
  }
  // 500² does not fit in float16
  const FactoryOptions half{.dtype = DType::float16};
  CHECK(difference(nn::squash(on_device::tensor({{3, 4}, {0, 0}, {1e-4, 0}, {300, 400}}, half)),
                   on_device::tensor({{x, y}, {0, 0}, {0, 0}, {0.6, 0.8}}, half), 1e-3,
                   1e-6) == "");
  CHECK(nn::squash(zeros({2, 0})).shape() == Shape{2, 0});
  CHECK(nn::squash(zeros({0, 3})).shape() == Shape{0, 3});
}

TEST_CASE("capsule_margin_loss: the paper's numbers", "[nn][capsule]") {
  const auto loss = [](const Literal& lengths) {
    return nn::capsule_margin_loss(doubles(lengths), tensor({0})).item<double>();
  };
  CHECK(loss({{.95, .05, .3}}) == Approx(0.02).epsilon(1e-12));
  CHECK(loss({{.5, .5}}) == Approx(0.24).epsilon(1e-12));
}

TEST_CASE("dynamic_routing: the numbers of one and of three iterations, each sample alone",
          "[nn][capsule]") {
  const auto check = [](int iterations, const std::vector<double>& expected, double tolerance) {
    for (const bool detach : {false, true}) {
      const Tensor v = nn::dynamic_routing(votes_of_three(3),
                                           {.iterations = iterations, .detach_routing = detach});
      REQUIRE(v.shape() == Shape{3, 2, 2});
      for (int i = 0; i < 3; ++i)
        CHECK(difference(v[i].flatten(), tensor(expected), 0, tolerance) == "");
    }
  };
  check(1, {0.583095, 0.349857, -0.058824, 0}, 5e-7);
  check(3, {0.726143, 0.434727, -0.021051, 0.010201}, 5e-7);
  CHECK(difference(nn::capsule_lengths(nn::dynamic_routing(votes_of_three())),
                   doubles({{0.846328, 0.023393}}), 0, 5e-7) == "");

  // Samples do not affect each other: the logits b are not summed over the batch.
  const Tensor votes = random_tensor({3, 4, 2, 5}, DType::float64, {}, 7);
  const Tensor together = nn::dynamic_routing(votes);
  for (int i = 0; i < 3; ++i)
    CHECK(difference(nn::dynamic_routing(votes.narrow(0, i, 1)), together.narrow(0, i, 1)) == "");
  // With a single output capsule, all coupling coefficients c are 1.
  const Tensor one = random_tensor({2, 4, 1, 5}, DType::float64, {}, 8);
  CHECK(difference(nn::dynamic_routing(one), nn::squash(sum(one, {1}))) == "");
  CHECK(nn::dynamic_routing(zeros({0, 3, 2, 4})).shape() == Shape{0, 2, 4});
  CHECK(difference(nn::dynamic_routing(votes_of_three().to(DType::float16)),
                   nn::dynamic_routing(votes_of_three()).to(DType::float16), 2e-3, 1e-4) == "");
}

TEST_CASE("Capsules: a network as PyTorch's, with its gradients", "[nn][capsule]") {
  for (const bool detach : {false, true}) {
    INFO("detach_routing " << detach);
    TinyNet net(detach);
    to(net, here(), DType::float64);
    StateDict state;
    for (const auto& [name, t] : goldens().tensors())
      if (name.rfind("state.", 0) == 0) state.set(name.substr(6), goldens().tensor(name));
    CHECK(load_state_dict(net, state).loaded == 8);
    const Tensor images = goldens().tensor("images").requires_grad_(),
                 labels = goldens().tensor("labels");
    const Tensor primary = net.primary(relu(net.conv(images))), digits = net.digits(primary),
                 lengths = nn::capsule_lengths(digits);
    const Tensor image = sigmoid(net.decoder(nn::mask_capsules(digits, labels).flatten(1)));
    const Tensor error =
        mul(nn::mse_loss(image, images.flatten(1), nn::Reduction::sum), 0.0005 / 2);
    const Tensor loss = nn::capsule_margin_loss(lengths, labels) + error;
    const auto check = [](const std::string& name, const Tensor& got) {
      INFO(name);
      CHECK(difference(got.detach(), goldens().tensor(name)) == "");
    };
    check("primary", primary);
    check("digits", digits);
    check("lengths", lengths);
    check("image", image);
    check("loss", loss);
    loss.backward();
    const std::string kind = detach ? "detached." : "grad.";
    int compared = 0;
    for (const auto& [path, p] : named_parameters(net)) {
      if (!goldens().has(kind + path)) continue;
      check(kind + path, p.grad());
      ++compared;
    }
    CHECK(compared == (detach ? 2 : 4));
    check(kind + "images", images.grad());
  }
}

TEST_CASE("Capsules: the full network has the paper's parameters", "[nn][capsule]") {
  const FullNet net;
  const auto count = [](const auto& m) { return training::summary(m).parameters; };
  CHECK(count(net.conv) == 20'992);
  CHECK(count(net.primary) == 5'308'672);
  CHECK(count(net.digits) == 1'474'560);
  CHECK(count(net.decoder) == 1'411'344);
  CHECK(count(net) == 8'215'568);
  CHECK(count(net) - count(net.decoder) == 6'804'224);
  CHECK(count(nn::DigitCapsules(1152, 8, 10, 16, {.bias = true})) == 1'474'560 + 160);
  CHECK(str(net.digits) == "DigitCapsules(1152, 8, 10, 16, iterations=3)");
  if (emulated()) return;
  const NoGrad guard;
  const FullNet there = home(clone(net));
  const Tensor u = there.primary(relu(there.conv(uniform({1, 1, 28, 28}, 0, 1))));
  CHECK(u.shape() == Shape{1, 1152, 8});
  const Tensor v = there.digits(u);
  CHECK(v.shape() == Shape{1, 10, 16});
  CHECK(there.decoder(nn::mask_capsules(v).flatten(1)).shape() == Shape{1, 784});
}

TEST_CASE("PrimaryCapsules: a capsule has the channels of one place", "[nn][capsule]") {
  // 1×1 kernel: channel k at a position is k + 1 times its pixel
  nn::PrimaryCapsules primary(1, 3, 2, 1, {.stride = 1});
  primary.conv.weight.detach().copy_(braid::arange(1, 7).reshape({6, 1, 1, 1}));
  primary.conv.bias.detach().zero_();
  primary = home(std::move(primary));
  const Tensor x = tensor({{{{1, 2, 3}, {4, 5, 6}}}}, {.dtype = DType::float32});
  const Tensor u = primary(x).detach();
  REQUIRE(u.shape() == Shape{1, 18, 2});
  for (int type = 0; type < 3; ++type)
    for (int place = 0; place < 6; ++place) {
      const double pixel = place + 1;
      const Tensor s = tensor({pixel * (2 * type + 1), pixel * (2 * type + 2)});
      CHECK(difference(u[0][type * 6 + place], nn::squash(s)) == "");
    }
}

TEST_CASE("mask_capsules: keeps the label's, or the longest", "[nn][capsule]") {
  const Tensor capsules =
      doubles({{{1, 0}, {0, -2}, {1, 1}}, {{3, 0}, {0, 1}, {0, 0}}}).requires_grad_();
  const auto check = [&](const Tensor& got, const Literal& expected) {
    CHECK(difference(got.detach(), doubles(expected)) == "");
  };
  check(nn::mask_capsules(capsules), {{{0, 0}, {0, -2}, {0, 0}}, {{3, 0}, {0, 0}, {0, 0}}});
  check(nn::mask_capsules(capsules, tensor({2, 1})),
        {{{0, 0}, {0, 0}, {1, 1}}, {{0, 0}, {0, 1}, {0, 0}}});
  check(nn::mask_capsules(capsules, tensor({-1, 3})),
        {{{0, 0}, {0, 0}, {0, 0}}, {{0, 0}, {0, 0}, {0, 0}}});
  nn::mask_capsules(capsules, tensor({2, 1})).sum().backward();
  check(capsules.grad(), {{{0, 0}, {0, 0}, {1, 1}}, {{0, 0}, {1, 1}, {0, 0}}});
}

TEST_CASE("Capsules: gradients against differences, at zero vectors too",
          "[nn][capsule][gradients]") {
  const Tensor s = doubles({{0.3, -0.4, 1.2}, {0, 0, 0}, {2, 0, -0.1}}).requires_grad_();
  CHECK(gradient_difference(function_of([](const Tensor& x) { return nn::squash(x); }), {s}) == "");
  CHECK(gradient_difference(function_of([](const Tensor& x) { return nn::capsule_lengths(x); }),
                            {s}) == "");
  const Tensor away = random_tensor({2, 3}, DType::float64, {}, 3).requires_grad_();
  CHECK_GRAD([](const Tensor& x) { return nn::squash(x); }, away);
  CHECK_GRAD([](const Tensor& x) { return nn::capsule_lengths(x); }, away);
  const Tensor zero = zeros({2, 3}, {.dtype = DType::float64}).requires_grad_();
  nn::capsule_lengths(nn::squash(zero)).sum().backward();  // the gradient has no 0 / 0
  CHECK(difference(zero.grad(), zeros({2, 3}, {.dtype = DType::float64}), 0, 0) == "");

  Tensor votes = random_tensor({2, 3, 2, 2}, DType::float64, {}, 4, -1, 1);
  votes[0][1].zero_();  // a capsule whose votes are 0
  const Tensor bias = random_tensor({2, 2}, DType::float64, {}, 5, -1, 1).requires_grad_();
  const auto route = [](const Tensor& x, const Tensor& b) {
    return nn::dynamic_routing(x, {.bias = b});
  };
  CHECK(gradient_difference(function_of(route), {votes.requires_grad_(), bias}) == "");
  if (emulated()) return;
  CHECK(second_gradient_difference(function_of(route), {votes, bias}) == "");
  // All votes are 0, for example if ReLU sets all inputs to 0.
  const Tensor nothing = zeros({1, 3, 2, 2}, {.dtype = DType::float64}).requires_grad_();
  CHECK(gradient_difference(function_of([](const Tensor& x) { return nn::dynamic_routing(x); }),
                            {nothing}) == "");

  nn::DigitCapsules digits = home(nn::DigitCapsules(3, 2, 2, 2, {.dtype = DType::float64}));
  Tensor u = random_tensor({2, 3, 2}, DType::float64, {}, 6, -1, 1);
  u[1][2].zero_();
  const auto layer = [&](const Tensor& x, const Tensor& w) {
    nn::DigitCapsules with = clone(digits);
    static_cast<Tensor&>(with.weight) = w;
    return with(x);
  };
  CHECK(gradient_difference(function_of(layer),
                            {u.requires_grad_(), digits.weight.detach().requires_grad_()}) == "");
}

TEST_CASE("Capsules: bad inputs", "[nn][capsule][errors]") {
  const Tensor whole = zeros({2, 3, 2, 4}, {.dtype = DType::int64}), votes = zeros({2, 3, 2, 4}),
               capsules = zeros({2, 3, 4}), wide = zeros({2, 4}, {.dtype = DType::float64});
  const nn::DigitCapsules digits = home(nn::DigitCapsules(3, 4, 2, 5));
  refuses<DTypeError>("")({
      {"squash: expected s of a floating point dtype, got int64",
       [&] { return nn::squash(whole); }},
      {"capsule_lengths: expected capsules of a floating point dtype, got int64",
       [&] { return nn::capsule_lengths(whole); }},
      {"dynamic_routing: expected votes of a floating point dtype, got int64",
       [&] { return nn::dynamic_routing(whole); }},
      {"dynamic_routing: expected bias to be float32, got float64",
       [&] { return nn::dynamic_routing(votes, {.bias = wide}); }},
      {"mask_capsules: expected labels of int64, got float32",
       [&] { return nn::mask_capsules(capsules, zeros({2})); }},
  });
  refuses<ShapeError>("")({
      {"squash: expected s with vectors along the last dim, got a scalar",
       [&] { return nn::squash(zeros({})); }},
      {"capsule_lengths: expected capsules with vectors along the last dim, got a scalar",
       [&] { return nn::capsule_lengths(zeros({})); }},
      {"dynamic_routing: expected votes [n, in, out, size], got [2, 3, 4]",
       [&] { return nn::dynamic_routing(zeros({2, 3, 4})); }},
      {"dynamic_routing: expected bias [2, 4], got [4, 2]",
       [&] { return nn::dynamic_routing(votes, {.bias = zeros({4, 2})}); }},
      {"mask_capsules: expected capsules [n, classes, size], got [2, 3]",
       [&] { return nn::mask_capsules(zeros({2, 3})); }},
      {"mask_capsules: expected labels [2], got [3]",
       [&] { return nn::mask_capsules(capsules, tensor({0, 1, 2})); }},
      {"PrimaryCapsules: expected x [n, in, h, w], got [1, 28, 28]",
       [&] { return home(nn::PrimaryCapsules(1, 2, 2, 9))(zeros({1, 28, 28})); }},
      {"DigitCapsules: expected u [n, 3, 4], got [2, 4, 3]",
       [&] { return digits(zeros({2, 4, 3})); }},
      {"DigitCapsules: expected u [n, 3, 4], got [3, 4]", [&] { return digits(zeros({3, 4})); }},
  });
  refuses<ArgumentError>("")({
      {"dynamic_routing: expected iterations >= 1, got 0",
       [&] { return nn::dynamic_routing(votes, {.iterations = 0}); }},
      {"PrimaryCapsules: expected types >= 1, got 0", [] { nn::PrimaryCapsules(1, 0, 8, 9); }},
      {"PrimaryCapsules: expected size >= 1, got -1", [] { nn::PrimaryCapsules(1, 8, -1, 9); }},
      {"Conv2d: expected in_channels >= 1, got 0", [] { nn::PrimaryCapsules(0, 8, 8, 9); }},
      {"PrimaryCapsules: expected types · size below 2^63, got 2305843009213693953 and 8",
       [] { nn::PrimaryCapsules(3, (std::int64_t{1} << 61) + 1, 8, 3); }},
  });
  refuses<ArgumentError>("DigitCapsules: expected ")({
      {"in_capsules >= 1, got 0", [] { nn::DigitCapsules(0, 8, 10, 16); }},
      {"in_size >= 1, got 0", [] { nn::DigitCapsules(8, 0, 10, 16); }},
      {"out_capsules >= 1, got -1", [] { nn::DigitCapsules(8, 8, -1, 16); }},
      {"out_size >= 1, got 0", [] { nn::DigitCapsules(8, 8, 10, 0); }},
      {"out_capsules · out_size below 2^63, got 2305843009213693953 and 8",
       [] { nn::DigitCapsules(1, 1, (std::int64_t{1} << 61) + 1, 8); }},
      {"iterations >= 1, got 0", [] { nn::DigitCapsules(8, 8, 10, 16, {.iterations = 0}); }},
  });
  if (there() != here())
    CHECK_THROWS_TEXT(DeviceError, "dynamic_routing: expected bias on ",
                      nn::dynamic_routing(votes, {.bias = zeros({2, 4}, {.device = there()})}));
}

}  // namespace braid::test::on_device

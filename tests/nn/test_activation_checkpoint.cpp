// checkpoint(f, x): the same bits as without it, in less memory.
#include <braid/braid.hpp>

#include "layer_here.hpp"
#include "refused.hpp"
#include "support/gradcheck.hpp"
#include "trees.hpp"

namespace braid::test::on_device {
namespace {

/// A block with everything that has a state: random numbers and running statistics.
struct Block : nn::Module {
  nn::Linear in, out;
  nn::BatchNorm1d norm;
  nn::Dropout drop{0.3};
  explicit Block(std::int64_t width)
      : in(layer(width, 2 * width)),
        out(layer(2 * width, width)),
        norm(home(nn::BatchNorm1d(width))) {}
  Tensor operator()(const Tensor& x) const { return x + drop(out(gelu(in(norm(x))))); }
  BRAID_FIELDS(in, out, norm, drop)
};

struct Net : nn::Module {
  std::vector<Block> blocks;
  explicit Net(std::int64_t width, int depth) {
    for (int i = 0; i < depth; ++i) blocks.emplace_back(width);
  }
  enum class How { plain, parts, nested };
  Tensor operator()(Tensor x, How how) const {
    if (how == How::plain)
      for (const Block& block : blocks) x = block(x);
    else if (how == How::parts)
      for (const Block& block : blocks) x = checkpoint(block, x);
    else
      for (std::size_t i = 0; i < blocks.size(); i += 2)
        x = checkpoint(
            [this, i](const Tensor& t) { return blocks[i + 1](checkpoint(blocks[i], t)); }, x);
    return x;
  }
  BRAID_FIELDS(blocks)
};

/// The loss, all gradients, that of the input, and the state after a step.
std::vector<Tensor> step(Net::How how, bool input_gradient, bool scope) {
  manual_seed(5);
  Net net(6, 4);
  const Tensor x = random_tensor({8, 6}, DType::float32, here(), 1).requires_grad_(input_gradient);
  std::vector<Tensor> all;
  {
    std::optional<RandomScope> replica;
    if (scope) replica.emplace(7, RandomScope::Part{1, 0, 16, 8});
    (void)rand({3});  // the numbers do not start at 0
    all.push_back(net(x, how).sum());
  }
  manual_seed(6);  // what is drawn between forward and backward does not matter
  (void)rand({4});
  all[0].backward();
  for (const Tensor& p : parameters(net)) all.push_back(p.grad());
  if (input_gradient) all.push_back(x.grad());
  for (const Tensor& b : buffers(net)) all.push_back(b);
  return all;
}

Tensor wide(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  return random_tensor(shape, DType::float64, here(), seed).requires_grad_();
}

}  // namespace

TEST_CASE("checkpoint: within a checkpoint, each function runs once for each around it",
          "[nn][recompute]") {
  int outer = 0, middle = 0, inner = 0;
  const Tensor x = wide({3}, 1);
  const auto run = [&] {
    return checkpoint(
        [&](const Tensor& a) {
          ++outer;
          return a * checkpoint(
                         [&](const Tensor& b) {
                           ++middle;
                           return b * checkpoint(
                                          [&](const Tensor& c) {
                                            ++inner;
                                            return c * c;
                                          },
                                          b * 2);
                         },
                         a * 3);
        },
        x);
  };
  run().sum().backward();
  CHECK((outer == 2 && middle == 3 && inner == 4));
  CHECK(allclose(x.grad(), 4 * 108 * x * x * x));  // of a 3 a (6 a)²
}

TEST_CASE("checkpoint: the bits of a step without it", "[nn][recompute]") {
  for (const bool input_gradient : {false, true})
    for (const bool scope : {false, true}) {
      const std::vector<Tensor> plain = step(Net::How::plain, input_gradient, scope);
      for (const Net::How how : {Net::How::parts, Net::How::nested}) {
        const std::vector<Tensor> got = step(how, input_gradient, scope);
        REQUIRE(got.size() == plain.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          INFO("tensor " << i);
          CHECK_SAME_BITS(got[i].detach(), plain[i].detach());
        }
      }
    }
}

TEST_CASE("checkpoint: the generator goes on as without it", "[nn][recompute]") {
  manual_seed(3);
  (void)checkpoint([](const Tensor& x) { return dropout(x, 0.5) + rand({4}, {.device = here()}); },
                   wide({4}, 1).detach().to(DType::float32).requires_grad_());
  CHECK(random_state() == RandomState{3, 2});
}

TEST_CASE("checkpoint: first and second gradients, several arguments and results",
          "[nn][recompute]") {
  const auto f = [](const Tensor& x, const Tensor& w) {
    return checkpoint(
        [](const Tensor& a, const Tensor& b, double factor) {
          const Tensor h = tanh(matmul(a, b)) * factor;
          return softmax(h, -1) * exp(a.sum());
        },
        x, w, 0.5);
  };
  CHECK_GRAD(f, wide({3, 4}, 1), wide({4, 2}, 2));
  const auto nested = [](const Tensor& x) {
    return checkpoint(
        [](const Tensor& a) {
          return sin(checkpoint([](const Tensor& b) { return exp(b * b); }, a)) * a;
        },
        x);
  };
  CHECK_GRAD(nested, wide({5}, 3));
  const Tensor x = wide({3}, 4);
  const auto [a, b] =
      checkpoint([](const std::vector<Tensor>& t) { return std::pair(exp(t[0]), t[0] * t[1]); },
                 std::vector<Tensor>{x, x});
  CHECK_SAME_BITS(grad((a + b).sum(), {x})[0], exp(x.detach()) + x.detach() + x.detach());
}

TEST_CASE("checkpoint: a retained graph serves again, also for gradients of gradients",
          "[nn][recompute]") {
  const Tensor x = wide({4}, 1);
  int calls = 0;
  const Tensor y = checkpoint(
      [&](const Tensor& t) {
        ++calls;
        return exp(t) * sin(t);
      },
      x);
  const Tensor first = grad(y.sum(), {x}, true)[0], again = grad(y.sum(), {x}, true)[0];
  CHECK_SAME_BITS(first, again);
  CHECK(calls == 2);  // what was computed again stays in the retained graph
  const Tensor second = grad(grad(y.sum(), {x}, true, true)[0].sum(), {x})[0];
  const Tensor want = 2 * exp(x.detach()) * cos(x.detach());
  CHECK_CLOSE(second, want, (Tolerance{1e-12, 1e-12}));
}

TEST_CASE("checkpoint: without gradients it is a call", "[nn][recompute]") {
  int calls = 0;
  const auto f = [&](const Tensor& t) {
    ++calls;
    return t * t;
  };
  const Tensor x = wide({4}, 1);
  {
    const NoGrad guard;
    CHECK_SAME_BITS(checkpoint(f, x), x.detach() * x.detach());
  }
  CHECK_FALSE(checkpoint(f, x.detach()).requires_grad());
  CHECK(calls == 2);
}

TEST_CASE("checkpoint: what cannot be computed again is an error, and no gradient is added",
          "[nn][recompute]") {
  const Tensor x = wide({4}, 1), w = wide({4}, 2);
  const auto refuse = [&]<class E = AutogradError>(const Tensor& y, const char* what,
                                                   E* = nullptr) {
    CHECK_THROWS_TEXT(E, what, y.backward());
    CHECK_FALSE(x.grad().defined());
  };
  int calls = 0;
  refuse(checkpoint([&](const Tensor& t) { return calls++ ? exp(t) : exp(sin(t)); }, x).sum(),
         "expected the function to save 2 tensors again, got 1");
  calls = 0;
  refuse(checkpoint([&](const Tensor& t) { return exp(calls++ ? t.slice(0, 0, 2).sum() : t); }, x)
             .sum(),
         "as tensor 0 again, got");
  const Tensor y = checkpoint([&](const Tensor& t) { return t * w; }, x).sum();
  {
    const NoGrad guard;
    w.add_(1);
  }
  refuse(y, "changed in place");
  calls = 0;
  refuse(checkpoint(
             [&](const Tensor& t) {
               if (calls++) throw ArgumentError("second call");
               return exp(t);
             },
             x)
             .sum(),
         "second call", static_cast<ArgumentError*>(nullptr));
}

TEST_CASE("checkpoint: arguments that change before backward are an error", "[nn][recompute]") {
  const Tensor x = wide({2, 6}, 1).detach().to(DType::float32).requires_grad_();
  const auto refuse = [&](const Tensor& y, const Tensor& changed) {
    {
      const NoGrad guard;
      changed.add_(1);
    }
    CHECK_THROWS_TEXT(AutogradError,
                      "checkpoint: expected arguments and parameters unchanged until backward, "
                      "got one of shape*changed in place (version 0 before, 1 now)",
                      y.sum().backward());
    CHECK_FALSE(x.grad().defined());
  };
  const Block block(6);
  refuse(checkpoint(block, x), block.out.bias);
  const std::vector<Tensor> both{x, ones({2, 6}, {.device = here()})};
  // no op saves this argument
  refuse(checkpoint([](const std::vector<Tensor>& t) { return exp(t[0] + t[1]); }, both), both[1]);
  // statistics change with every forward
  Block norms(6);
  (checkpoint(norms, x) + checkpoint(norms, x)).sum().backward();
  CHECK(x.grad().defined());
}

TEST_CASE("checkpoint: gradients inside of the function are refused", "[nn][recompute]") {
  const Tensor x = wide({3}, 1);
  CHECK_THROWS_TEXT(
      AutogradError,
      "checkpoint: expected a function that computes no gradients of its own results",
      (void)checkpoint([](const Tensor& t) { return grad(exp(t).sum(), {t}, true, true)[0]; }, x));
}

TEST_CASE("checkpoint: between the calls no memory is kept", "[nn][recompute]") {
  constexpr std::int64_t kSide = 128;
  constexpr std::size_t kBytes = sizeof(float) * kSide * kSide;
  const Tensor x = random_tensor({1, 1, kSide, kSide}, DType::float32, here(), 1).requires_grad_(),
               factor = random_tensor(x.shape().vec(), DType::float32, here(), 2).requires_grad_();
  const auto kept = [&](auto f) {
    const std::size_t before = memory_stats(here()).in_use;
    const Tensor y = checkpoint(f, x);
    const std::size_t after = memory_stats(here()).in_use;
    y.backward();
    return after - before;
  };
  // indices of the largest elements
  CHECK(kept([](const Tensor& t) { return max_pool2d(t, 2).sum(); }) < kBytes / 8);
  // the product of the old values with both gradients
  CHECK(kept([&](const Tensor& t) {
          const Tensor u = t * 2.0;
          u.mul_(factor);
          return u.sum();
        }) < kBytes / 8);
}

TEST_CASE("checkpoint: arguments that hold views make no circle", "[nn][recompute]") {
  const Tensor x = wide({3}, 1);
  const std::size_t before = memory_stats(here()).in_use;
  {
    const Tensor base = zeros({64, 1024}, {.device = here(), .dtype = DType::float64});
    const Tensor y = checkpoint([](const std::vector<Tensor>& t) { return t[0] * t[1].sum(); },
                                std::vector<Tensor>{base[0], x});
    base[1].copy_(y);  // the base holds the graph, which holds the view
    const Tensor one = checkpoint([](const Tensor& t, const Tensor& w) { return t * w.sum(); },
                                  Tensor(base[2]), x);
    base[3].copy_(one);
  }
  CHECK(memory_stats(here()).in_use == before);
}

TEST_CASE("checkpoint: peak memory is that of one part", "[nn][recompute]") {
  const auto peak = [](Net::How how) {
    manual_seed(0);
    Net net(64, 12);
    const Tensor x = random_tensor({256, 64}, DType::float32, here(), 1);
    const std::size_t before = memory_stats(here()).in_use;
    reset_peak_memory(here());
    net(x, how).sum().backward();
    return memory_stats(here()).peak - before;
  };
  (void)peak(Net::How::plain);  // what is allocated once
  const std::size_t plain = peak(Net::How::plain), parts = peak(Net::How::parts);
  INFO(plain << " and " << parts << " bytes");
  CHECK(parts * 2 <= plain);
}

}  // namespace braid::test::on_device

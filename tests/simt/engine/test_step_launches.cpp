// The number of kernels that training steps launch: on a GPU, the cost of a small step.
#include <iostream>
#include <sstream>

#include <braid/braid.hpp>

#include "cuda/gemm_plan.hpp"

#include "child.hpp"
#include "gpt2/model.hpp"
#include "simt/runtime/control.hpp"
#include "simt/stats.hpp"
#include "support/check.hpp"
#include "support/on_device.hpp"

using namespace braid;

namespace {

/// Returns the launches of f().
template <class F> std::string launches(const F& f) {
  const Device device("cuda:0");
  synchronize(device);
  const auto before = simt::stats().grids;
  f();
  synchronize(device);
  return std::to_string(simt::stats().grids - before);
}
/// Returns the launches of a step that is not the first, then, of a replay of the captured step,
/// the calls that launch something, kernels or graphs, and the kernels that run.
template <class B, class F> std::string launches_of_step(const B& batch, const F& step) {
  step(batch), step(batch);  // allocate the state
  const std::string plain = launches([&] { step(batch); });
  auto captured = training::captured_step(step);
  for (int i = 0; i < 4; ++i) captured(batch);
  const auto calls = [] {
    return simt::calls("cudaLaunchKernel") + simt::calls("cudaGraphLaunch");
  };
  const auto before = calls();
  const std::string kernels = launches([&] { captured(batch); });
  if (captured.replays() != 2) return plain + " no replay";
  return plain + " " + std::to_string(calls() - before) + " " + kernels;
}
/// The numbers of launches_of_step.
struct Launches {
  int plain = 0, captured = 0, kernels = 0;
  explicit Launches(const std::string& text) {
    INFO(text);
    std::istringstream numbers(text);
    CHECK(static_cast<bool>(numbers >> plain >> captured >> kernels));
  }
  /// Prints the numbers, and checks them: one launch of a graph for at most `most` of kernels.
  void check(const char* what, int most) const {
    std::cout << "SHOWS: launches in a step, counted on the emulation: " << plain << " of " << what
              << ", captured: " << captured << " (a graph of " << kernels << " kernels)\n";
    CHECK(plain > 0);
    CHECK(plain <= most);
    CHECK(captured == 1);
  }
};
using Batch = std::pair<Tensor, Tensor>;

/// True if a product of float32 is one launch of tiles, as each product of GPT-2 is.
bool is_one_launch(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmArgs args{};
  args.dtype = DType::float32, args.m = m, args.n = n, args.k = k, args.batch = 1;
  const cuda::GemmPlan plan = cuda::plan_gemm(args, 132);
  return plan.tile != cuda::GemmTileKind::tiny && plan.splits == 1;
}

}  // namespace

TEST_CASE("launches: a step of a small MLP", "[nn]") {
  const std::string text = test::in_child(1, [] {
    const Device device("cuda:0");
    nn::Sequential model(nn::Linear(20, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(),
                         nn::Linear(32, 4));
    to(model, device);
    optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
    const Batch batch{randn({16, 20}, {.device = device}),
                      zeros({16}, {.device = device, .dtype = DType::int64})};
    return launches_of_step(batch, [&](const Batch& b) {
      optimizer.zero_grad();
      nn::cross_entropy(model(b.first), b.second).backward();
      optimizer.step();
    });
  });
  const Launches counted(text);
  counted.check("an MLP of 3 layers", 10);
  CHECK(counted.kernels == counted.plain);
}

TEST_CASE("launches: the product before an activation has its derivative, unless somebody looks",
          "[autograd]") {
  const std::string text = test::in_child(1, [] {
    const DefaultDeviceGuard guard(Device("cuda:0"));
    const Tensor x = randn({64, 64}), w = randn({64, 64}).requires_grad_(),
                 v = randn({64, 64}).requires_grad_(), dy = randn({64, 64});
    // dW of both layers and dh, then dz, if dh is not the same; retain_grad copies dh
    const auto count = [&](const auto& forward, const auto& look) {
      const Tensor h = forward(), y = linear(h, v);
      look(h);
      w.set_grad({}), v.set_grad({});
      return launches([&] { y.backward(dy); }) + " ";
    };
    const auto nobody = [](const Tensor&) {};
    std::string counts;
    for (const auto& forward : std::vector<std::function<Tensor()>>{
             [&] { return relu(linear(x, w)); }, [&] { return gelu(linear(x, w)); },
             [&] { return gelu(linear(x, w), "tanh"); }, [&] { return linear_relu(x, w); },
             [&] { return linear_gelu(x, w); }, [&] { return linear_gelu(x, w, {}, "tanh"); }}) {
      counts += count(forward, nobody);
      counts += count(forward, [](const Tensor& h) { h.register_hook([](const Tensor&) {}); });
      counts += count(forward, [](const Tensor& h) { h.retain_grad(); });
    }
    return counts + count([&] { return silu(linear(x, w)); }, nobody);
  });
  CHECK(text == "3 4 5 3 4 5 3 4 5 3 4 5 3 4 5 3 4 5 4 ");
}

TEST_CASE("launches: a layer and what follows it are one", "[nn]") {
  const std::string text = test::in_child(1, [] {
    const Device device("cuda:0");
    const Tensor x = randn({64, 64}, {.device = device});
    std::string counts;
    const auto count = [&](auto model) {
      to(model, device);
      counts += launches([&] { (void)model(x); }) + " ";
    };
    count(nn::Sequential(nn::Linear(64, 64), nn::ReLU()));
    count(nn::Sequential(nn::Linear(64, 64), nn::GELU()));
    count(nn::Sequential(nn::Linear(64, 64), nn::SiLU()));
    nn::Sequential<> added;
    added.push_back(nn::Linear(64, 64));
    added.push_back(nn::GELU());
    count(added);
    nn::Sequential hooked(nn::Linear(64, 64), nn::ReLU());
    nn::register_forward_hook(std::get<0>(hooked.layers), [](const nn::LayerCall&) {});
    count(hooked);
    return counts;
  });
  CHECK(text == "1 1 2 1 2 ");
}

TEST_CASE("launches: the product of heads is one, after copies of the strided operands",
          "[matmul]") {
  const std::string text = test::in_child(1, [] {
    const DefaultDeviceGuard guard(Device("cuda:0"));
    const auto heads = [](std::int64_t n) { return randn({n, 9, 3, 8}).transpose(1, 2); };
    const Tensor q = heads(5), k = heads(5).transpose(2, 3), v = randn({5, 3, 8, 2}),
                 two = heads(2), w = randn({3, 8, 2}),
                 large = randn({3, 4, 32, 6000}).transpose(0, 1), right = randn({4, 3, 6000, 1});
    std::string counts;
    const auto count = [&](const Tensor& x, const Tensor& y) {
      Tensor z;
      counts += launches([&] { z = matmul(x, y); }) + " ";
      const Tensor expected = matmul(x.cpu(), y.cpu());
      if (!allclose(z.cpu(), expected, 1e-3, 1e-3)) counts += "differs ";
    };
    count(q, k);                      // two copies and a product
    count(q, v);                      // one copy and a product
    count(q, w);                      // w, once for each sample, is smaller than the result
    count(q.narrow(2, 0, 7), w);      // and here larger, so there are 5 products
    count(two, two.transpose(2, 3));  // 2 products are less than 2 copies and a product
    // 4 products, whose parts of k are added by a second launch: the copy takes longer than these
    count(large, right);
    return counts;
  });
  CHECK(text == "3 2 3 5 2 8 ");
}

TEST_CASE("launches: a transposed convolution of 16 bits adds its bias", "[conv]") {
  const std::string text = test::in_child(1, [] {
    const DefaultDeviceGuard guard(Device("cuda:0"));
    const Tensor x = randn({2, 8, 5, 5}, {.dtype = DType::bfloat16}),
                 weight = randn({8, 16, 3, 3}, {.dtype = DType::bfloat16}),
                 bias = randn({16}, {.dtype = DType::bfloat16});
    return launches([&] { (void)conv_transpose2d(x, weight, bias, {.stride = 2}); });
  });
  CHECK(text == "3");  // x to channels last, the weights to the order of the product, the product
}

TEST_CASE("launches: a step of a GPT of 12 layers", "[nn]") {
  if (!test::in_part(2)) return;
  constexpr std::int64_t rows = 64, width = 64, tokens = 50;
  for (const auto& [out, in] : {std::pair{3 * width, width},
                                {width, width},
                                {4 * width, width},
                                {width, 4 * width},
                                {tokens, width}}) {
    CHECK(is_one_launch(rows, out, in));  // y
    CHECK(is_one_launch(rows, in, out));  // dx
    CHECK(is_one_launch(out, in, rows));  // dW
  }
  const std::string text = test::in_child(1, [] {
    const Device device("cuda:0");
    gpt2::GPT2 model(
        {.layers = 12, .width = width, .heads = 4, .vocabulary = tokens, .positions = 32});
    to(model, device);
    const std::vector<Tensor> all = parameters(model);
    optim::AdamW optimizer(all, {.lr = 0.001});
    const Tensor words = zeros({rows / 32, 32}, {.device = device, .dtype = DType::int64});
    return launches_of_step(words, [&](const Tensor& x) {
      optimizer.zero_grad();
      nn::cross_entropy(model(x).flatten(0, 1), x.flatten()).backward();
      optim::clip_grad_norm_(all, 1);
      optimizer.step();
    });
  });
  const Launches counted(text);
  counted.check("a GPT of 12 layers, clipping included", 283);
  // values that change between replays are read by kernels with shorter lists of parameters
  CHECK(counted.kernels >= counted.plain);
  CHECK(counted.kernels <= counted.plain + 2);
}

TEST_CASE("launches: the gradients of a whole model are clipped in two launches", "[optim]") {
  const std::string text = test::in_child(1, [] {
    const Device device("cuda:0");
    std::vector<Tensor> parameters;
    for (std::int64_t i = 0; i < 148; ++i) {  // as many as GPT-2 has
      parameters.push_back(ones({i % 5 + 1}, {.device = device}).requires_grad_());
      parameters.back().set_grad(full({i % 5 + 1}, 3.0, {.device = device}));
    }
    optim::AdamW optimizer(parameters);
    optimizer.step();  // allocates the state
    const std::string clipped = launches([&] { optim::clip_grad_norm_(parameters, 1e-3); });
    const std::string step = launches([&] { optimizer.step(); });
    const std::string fused =
        launches([&] { optimizer.step(optim::clip_grad_norm(parameters, 1e-3).factor); });
    return clipped + " " + step + " " + fused;
  });
  CHECK(text == "2 1 2");
}

// Tests of large graphs, errors during backward, nested backward calls, many threads and several
// devices.
#include <pthread.h>

#include <latch>
#include <thread>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

/// Runs f on a thread with a small stack.
void on_small_stack(std::size_t bytes, const std::function<void()>& f) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread{};
  struct Job {
    const std::function<void()>* f;
    std::exception_ptr error;
  } job{&f, nullptr};
  const auto run = [](void* p) -> void* {
    Job& j = *static_cast<Job*>(p);
    try {
      (*j.f)();
    } catch (...) {
      j.error = std::current_exception();
    }
    return nullptr;
  };
  // Catch2 is not thread-safe: this thread asserts nothing while f asserts on the other one.
  const int made = pthread_create(&thread, &attributes, run, &job),
            joined = made == 0 ? pthread_join(thread, nullptr) : -1;
  REQUIRE((made == 0 && joined == 0));
  pthread_attr_destroy(&attributes);
  if (job.error) std::rethrow_exception(job.error);
}

/// y = x, recorded with a separate gradient function.
Tensor hooked(T x, const std::function<void()>& f, const char* name = "hooked") {
  return record(name, {x}, x.detach() * 1.0, [f](T dy) -> Grads {
    f();
    return {dy * 1.0};
  });
}

}  // namespace

TEST_CASE("graphs: a million nodes are built, run and freed in a stack of 512 KiB",
          "[autograd][deep]") {
  const int nodes = static_cast<int>(cut(1000000, 20000));
  double gradient = 0, value = 0;
  bool freed = true;
  on_small_stack(512 * 1024, [&] {
    const Tensor x = tensor(1.5).requires_grad_();
    {
      Tensor y = x;
      for (int i = 0; i < nodes; ++i) y = y + 1.0;
      value = y.item<double>();
      y.backward();
      gradient = x.grad().item<double>();
    }
    freed = x.id()->references() == 1;
    // Freed without a backward pass, while the middle of the chain is still held.
    Tensor y = x, middle;
    for (int i = 0; i < nodes; ++i) {
      y = y * 1.0;
      if (i == nodes / 2) middle = y;
    }
    y = Tensor();
    middle = Tensor();
    freed = freed && x.id()->references() == 1;
  });
  CHECK(gradient == 1);
  CHECK(value == Approx(nodes + 1.5));
  CHECK(freed);
}

TEST_CASE("graphs: a long chain of two-armed nodes, and of gradients of gradients",
          "[autograd][deep]") {
  const int arms = static_cast<int>(cut(100000, 5000)), chain = static_cast<int>(cut(20000, 2000));
  on_small_stack(512 * 1024, [&] {
    const Tensor x = tensor(1.0, {.dtype = DType::float64}).requires_grad_();
    Tensor y = x;
    for (int i = 0; i < arms; ++i) y = y + x;
    CHECK(grad(y, {x})[0].item<double>() == arms + 1);
    // Differentiates a long graph that create_graph made.
    Tensor z = x;
    for (int i = 0; i < chain; ++i) z = z * 1.0;
    const Tensor first = grad(z * z, {x}, true, true)[0];
    CHECK(grad(first, {x})[0].item<double>() == 2);
  });
}

TEST_CASE("graphs: a wide one", "[autograd]") {
  const Tensor x = random_tensor({10}, DType::float64).requires_grad_();
  const int width = static_cast<int>(cut(20000, 1000));
  std::vector<Tensor> parts;
  for (int i = 0; i < width; ++i) parts.push_back(x * static_cast<double>(i % 3));
  cat(parts).sum().backward();
  double want = 0;
  for (int i = 0; i < width; ++i) want += i % 3;
  CHECK_EXACT(x.grad(), Array({10}, want));
}

TEST_CASE("graphs: an error in the middle of backward leaves every gradient as it was",
          "[autograd][errors]") {
  const Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_(),
               c = ones({2}).requires_grad_();
  b.set_grad(full({2}, 5.0));
  const Tensor held = b.grad();
  // c's gradient is ready before the node throws, b's only after it.
  const auto failing = [&](const std::function<void()>& f) {
    return (hooked(a * b, f) + c * 2 + c.sum()).sum();
  };
  const auto unchanged = [&] {
    return !a.grad().defined() && !c.grad().defined() && b.grad().id() == held.id() &&
           list(b.grad()) == List{5, 5};
  };
  CHECK_THROWS_TEXT(ShapeError, "my own text",
                    failing([] { throw ShapeError("my own text"); }).backward());
  CHECK(unchanged());
  CHECK_THROWS_AS(failing([] { throw std::bad_alloc(); }).backward(), std::bad_alloc);
  CHECK(unchanged());
  CHECK_THROWS_AS(failing([] { throw 7; }).backward(), int);
  CHECK(unchanged());
  // Two roots, of which the first succeeds.
  CHECK_THROWS_AS(backward(std::vector<Tensor>{(a * 2).sum(), failing([] { throw 7; })}), int);
  CHECK(unchanged());
  // Afterwards backward works.
  failing([] {}).backward();
  check_lists({{a.grad(), {1, 1}}, {b.grad(), {6, 6}}});
  CHECK(grad_enabled());
}

TEST_CASE("graphs: an error on another device leaves every gradient as it was",
          "[autograd][errors][devices]") {
  const Device one = there();
  const Tensor a = ones({2}).requires_grad_(), b = ones({2}, {.device = one}).requires_grad_();
  const auto loss = [&](const std::function<void()>& f) {
    return (a * 2).sum() + (hooked(a.to(one) * b, f) * 3.0).to(here()).sum();
  };
  CHECK_THROWS_TEXT(DTypeError, "there", loss([] { throw DTypeError("there"); }).backward());
  CHECK_FALSE((a.grad().defined() || b.grad().defined()));
  CHECK_THROWS_AS(loss([] { throw 7; }).backward(), int);
  CHECK_FALSE(a.grad().defined());
  loss([] {}).backward();
  check_lists({{a.grad(), {5, 5}}, {b.grad(), {3, 3}}});
}

TEST_CASE("graphs: backward within backward, a hundred deep, and over two devices", "[autograd]") {
  for (const Device device : {here(), there()}) {
    const std::function<double(int)> nested = [&](int depth) -> double {
      const GradMode on(true);  // backward itself does not record
      const Tensor x = tensor(2.0).requires_grad_();
      double inner = 0;
      const Tensor moved = hooked(x.to(device), [&] {
        if (depth > 0) inner = nested(depth - 1);
      });
      (moved * moved).to(here()).backward();
      return x.grad().item<double>() + inner;
    };
    const int depth = device == here() ? 100 : 20;
    CHECK(nested(depth) == (depth + 1) * 4);
  }
}

TEST_CASE("graphs: threads that add to one leaf", "[autograd][threads]") {
  constexpr int kThreads = 4;
  const int rounds = on_cpu() ? 200 : 5;  // the emulation is slow
  const Tensor shared = full({10000}, 3.0, {.requires_grad = true});
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int round = 0; round < rounds; ++round) (shared * 2).sum().backward();
    });
  for (std::thread& t : threads) t.join();
  CHECK_EXACT(shared.grad(), Array({10000}, List(10000, 2.0 * kThreads * rounds)));
}

TEST_CASE("graphs: a node that another thread's backward runs", "[autograd][threads][errors]") {
  const Tensor x = full({2}, 3.0, {.requires_grad = true}), trunk = x * x;
  std::string refused, allowed;
  const Tensor other = (trunk * 2).sum(), own = (x * 5).sum();
  const HookHandle hook = trunk.register_hook([&](const Tensor&) {  // during backward
    std::thread([&] {
      const auto text = [](const Tensor& root) -> std::string {
        try {
          root.backward();
        } catch (const AutogradError& e) {
          return e.what();
        }
        return "";
      };
      refused = text(other), allowed = text(own);
    }).join();
    const GradMode recorded(true);
    (x * 7).sum().backward();  // nested
  });
  trunk.sum().backward(ones({}), true);
  CHECK(matches(refused,
                "backward: expected a graph that no other backward is using, got one in "
                "use (at mul)"));
  CHECK(allowed == "");
  check_lists({{x.grad(), {5 + 7 + 6, 5 + 7 + 6}}});
  hook.remove();
  other.backward();  // afterwards it is allowed
  check_lists({{x.grad(), {18 + 12, 18 + 12}}});
}

TEST_CASE("graphs: threads run disjoint graphs at once", "[autograd][threads]") {
  constexpr std::size_t kThreads = 6;
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads, 0);
  const Tensor shared = random_tensor({16, 16}, DType::float64);  // all threads read it
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      const Device device = i % 2 == 0 ? here() : there();
      for (int round = 0; round < 50; ++round) {
        const Tensor w = random_tensor({8, 16}, DType::float64, device, i + 1).requires_grad_();
        const Tensor x = i % 2 == 0 ? shared : shared.to(device);
        const GradMode mode(i != 5);  // the mode is thread-local
        const Tensor y = tanh(linear(x, w)).sum();
        wrong[i] += y.requires_grad() == (i == 5);
        if (i == 5) continue;
        y.backward();
        const Tensor t = tanh(linear(x, w.detach()));
        wrong[i] +=
            !close(w.grad(), matmul((1.0 - t * t).t(), x), tolerance(DType::float64)).empty();
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<int>(kThreads, 0));
}

TEST_CASE("graphs: over several devices each gradient arrives where its leaf is",
          "[autograd][devices]") {
  const Device zero = here(), one = there();
  const Tensor w0 = random_tensor({4, 4}, DType::float64, zero, 1).requires_grad_(),
               w1 = random_tensor({4, 4}, DType::float64, one, 2).requires_grad_();
  const Tensor x = random_tensor({3, 4}, DType::float64, zero, 3).requires_grad_();
  const auto run = [](const Tensor& input, const Tensor& a, const Tensor& b, Device first,
                      Device second) {
    const Tensor h = tanh(linear(input.to(first), a));
    const Tensor left = linear(h.to(second), b), right = h * 2.0;
    return (left * left).sum().to(first) + right.sum() + left.to(first).mean();
  };
  run(x, w0, w1, zero, one).backward();
  // The same computation on one device.
  const Tensor v0 = w0.detach().clone().requires_grad_(),
               v1 = w1.detach().to(zero).clone().requires_grad_(),
               z = x.detach().clone().requires_grad_();
  run(z, v0, v1, zero, zero).backward();
  for (const auto& [got, want, device] :
       {std::tuple(w0, v0, zero), std::tuple(w1, v1, one), std::tuple(x, z, zero)}) {
    CHECK(got.grad().device() == device);
    CHECK_SAME_BITS(got.grad(), want.grad());
  }
  // A root on the other device gives the same bits each time.
  for (int i = 0; i < 20; ++i) {
    w1.set_grad({});
    const Tensor y = linear(x.to(one), w1).sum();
    CHECK(y.device() == one);
    y.backward();
    if (i > 0) CHECK(w1.grad().device() == one);
  }
}

TEST_CASE("graphs: several devices many times give one result", "[autograd][devices]") {
  const std::vector<Device> all{here(), there()};
  const Tensor w = random_tensor({6, 5}).requires_grad_(),
               x = random_tensor({24, 5}, DType::float32, {}, 2);
  Tensor first;
  for (int round = 0; round < cut(100, 20); ++round) {
    std::vector<Tensor> losses;
    for (std::size_t i = 0; i < 4; ++i) {
      const Device d = all[i % all.size()];
      const Tensor part = x.narrow(0, static_cast<std::int64_t>(6 * i), 6);
      losses.push_back(square(linear(part.to(d), w.to(d))).sum().to(here()));
    }
    const Tensor g = grad(stack(losses).sum(), {w})[0];
    if (round == 0) first = g;
    CHECK_SAME_BITS(g, first);
  }
}

TEST_CASE("graphs: nothing is left of a graph", "[autograd]") {
  const Device d = there();
  const std::size_t before = memory_stats(d).in_use;
  {
    const Tensor x = ones({1000}, {.device = d}).requires_grad_();
    Tensor y = x;
    for (int i = 0; i < 20; ++i) y = exp(y * 0.1);
    const Tensor z = y.sum();
    const std::size_t during = memory_stats(d).in_use;
    z.backward();
    CHECK(memory_stats(d).in_use < during);  // saved tensors are freed, though y and z still exist
    CHECK(x.grad().defined());
  }
  CHECK(memory_stats(d).in_use == before);
}

TEST_CASE(
    "graphs: early nodes run behind the last one that gives them a gradient, the others by depth",
    "[autograd]") {
  using Names = std::vector<std::string>;
  Names order;
  const auto passes = [&](const char* name, const std::vector<Tensor>& inputs, bool early = false) {
    const Tensor y = inputs.front().detach().clone();
    record_many(name, inputs, {&y, 1}, here(),
                [&order, name, n = inputs.size()](std::span<const Tensor> dys) {
                  order.emplace_back(name);
                  return Grads(std::vector<Tensor>(n, dys[0]));
                });
    if (early) y.id()->grad_fn->prioritize();
    return y;
  };
  for (const bool early : {false, true}) {
    order.clear();
    const Tensor first = ones({2}).requires_grad_(), second = ones({2}).requires_grad_();
    const Tensor w1 = passes("w1", {first}, early), w2 = passes("w2", {second}, early),
                 w0 = passes("w0", {ones({2}).requires_grad_()});
    const Tensor h1 = passes("h1", {w1, w0}), h2 = passes("h2", {h1, w2}),
                 h3 = passes("h3", {h2, w2});
    h3.sum().backward();
    if (early) CHECK(order == Names{"h3", "h2", "w2", "h1", "w1", "w0"});
    else CHECK((order.size() == 6 && order[2] == "h1"));
    check_lists({{first.grad(), {1, 1}}, {second.grad(), {2, 2}}});
  }
}

TEST_CASE(
    "graphs: what is to be joined at the end of backward is joined before gradients are seen, "
    "after an error too",
    "[autograd][errors]") {
  using Names = std::vector<std::string>;
  for (const bool fails : {false, true}) {
    Names order;
    const Tensor x = ones({2}).requires_grad_();
    x.register_hook([&](T) { order.emplace_back("hook"); });
    const auto make = [&](T input, const char* name, bool throws) {
      return hooked(
          input,
          [&order, name, throws] {
            at_end_of_backward([&order] { order.emplace_back("join"); });
            order.emplace_back(name);
            if (throws) throw ArgumentError("asked to fail");
          },
          name);
    };
    const Tensor y = make(make(x, "second", fails), "first", false);
    Names want{"first", "second", "join", "join"};
    if (fails) CHECK_THROWS_TEXT(ArgumentError, "asked to fail", y.sum().backward());
    else y.sum().backward(), want.emplace_back("hook");
    CHECK(order == want);
  }
  bool called = false;
  at_end_of_backward([&] { called = true; });
  CHECK(called);
}

TEST_CASE("graphs: the origin of a node may wrap its errors, and no other origin's",
          "[autograd][errors]") {
  struct Named final : autograd::Origin {
    const char* text;
    explicit Named(const char* t) : text(t) {}
    void rethrow(const autograd::Node& node) const override {
      if (text != nullptr) throw ArgumentError(str(text, ": ", node.name()));
    }
  };
  struct Context final : ThreadContext {
    const Named* named;
    ThreadContext* before = thread_state().context;
    explicit Context(const Named* n) : named(n) { thread_state().context = this; }
    ~Context() override { thread_state().context = before; }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    const autograd::Origin* origin() const noexcept override { return named; }
  };
  static const Named first("first"), second("second"), silent(nullptr);
  const Tensor x = ones({2}).requires_grad_();
  const auto failing = [&] {
    return hooked(x, [] { throw ArgumentError("asked to fail"); }, "op");
  };
  std::vector<std::pair<std::string, Tensor>> made{{"asked to fail", failing()}};
  {
    const Context outer(&first);
    made.emplace_back("first: op", failing());
    {
      const Context inner(&second);
      made.emplace_back("second: op", failing());
      const Context none(nullptr), quiet(&silent);
      made.emplace_back("asked to fail", failing());
    }
    made.emplace_back("first: op", failing());
  }
  made.emplace_back("asked to fail", failing());
  for (const auto& each : made) {  // clang 14 captures no structured binding
    CHECK_THROWS_TEXT(ArgumentError, each.first, each.second.sum().backward());
  }
}

TEST_CASE("graphs: what no gradient needs is not saved", "[autograd]") {
  struct Row {
    const char* name;
    std::function<Tensor(T x, T c)> call;  // only x requires a gradient
    bool saves_x, saves_c;
  };
  const Tensor weight = tensor(0.25);
  const Row rows[] = {
      {"matmul", [](T x, T c) { return matmul(x, c); }, false, true},
      {"matmul, right", [](T x, T c) { return matmul(c, x); }, false, true},
      {"linear", [](T x, T c) { return linear(x, c, c[0]); }, false, true},
      {"linear, weight", [](T x, T c) { return linear(c, x); }, false, true},
      {"linear, bias", [](T x, T c) { return linear(c, c, x.select(0, 0)); }, false, false},
      {"linear_add", [](T x, T c) { return linear_add(c, c, {}, x); }, false, false},
      {"conv2d", [](T x, T c) { return conv2d(x.view({1, 1, 3, 3}), c.view({1, 1, 3, 3})); }, false,
       true},
      {"addmm", [](T x, T c) { return addmm(c, x, c); }, false, true},
      {"mul", [](T x, T c) { return x * c; }, false, true},
      {"fmod", [](T x, T c) { return fmod(x, c); }, false, false},
      {"fmod, divisor", [](T x, T c) { return fmod(c, x); }, true, true},
      {"remainder", [](T x, T c) { return remainder(x, c); }, false, false},
      {"floor_divide", [](T x, T c) { return floor_divide(x, c); }, false, false},
      {"lerp, ends", [&](T x, T c) { return lerp(x, c, weight); }, false, false},
      {"lerp, weight", [](T x, T c) { return lerp(c, c, x); }, false, true},
  };
  for (const DType t : {DType::float32, DType::float16})
    for (const Row& r : rows) {
      if (t == DType::float16 && std::string_view(r.name).starts_with("lerp")) continue;  // float32
      INFO(r.name << " " << t);
      // the storage too: a view may be saved instead
      const auto uses = [](T z) { return z.id()->references() + z.storage()->references(); };
      const Tensor x = on_device::ones({3, 3}).to(t).requires_grad_() * 2,
                   c = on_device::ones({3, 3}).to(t);
      const auto of_x = uses(x), of_c = uses(c);
      const Tensor y = r.call(x, c);
      REQUIRE(y.requires_grad());
      CHECK((uses(x) > of_x) == r.saves_x);
      CHECK((uses(c) > of_c) == r.saves_c);
      y.backward(ones_like(y.detach()));
    }
}

}  // namespace braid::test::on_device

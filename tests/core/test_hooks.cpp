// Tests of hooks on gradients.
#include <memory>
#include <stdexcept>
#include <thread>

#include "shorthand.hpp"

namespace braid::test::on_device {

namespace {
Tensor leaf(const Literal& numbers) { return on_device::tensor(numbers, {.requires_grad = true}); }
}  // namespace

TEST_CASE("hooks: on a leaf and on a result, seeing the whole gradient once", "[autograd][hooks]") {
  const Tensor x = leaf({1.0, 2.0}), y = x * 3.0, z = y + y;  // y's gradient has two parts
  std::vector<List> of_x, of_y, of_z;
  x.register_hook([&](T g) { of_x.push_back(list(g)); });
  y.register_hook([&](T g) { of_y.push_back(list(g)); });
  z.register_hook([&](T g) { of_z.push_back(list(g)); });
  z.backward(tensor({1.0, 10.0}));
  CHECK(of_z == std::vector<List>{{1, 10}});
  CHECK(of_y == std::vector<List>{{2, 20}});
  CHECK(of_x == std::vector<List>{{6, 60}});
  CHECK(list(x.grad()) == List{6, 60});
  (x * 2.0).sum().backward();  // another graph: x's hook runs again, the others do not
  CHECK(of_x == std::vector<List>{{6, 60}, {2, 2}});
  CHECK(of_y.size() == 1);
  CHECK(list(x.grad()) == List{8, 62});
}

TEST_CASE("hooks: what they return takes the gradient's place, one after another",
          "[autograd][hooks]") {
  const Tensor x = leaf({1.0, 2.0}), y = x * 3.0;
  y.register_hook([](T g) { return g * 10.0; });
  y.register_hook([](T g) { return g + 1.0; });
  x.register_hook([](T g) { return neg(g); });
  x.register_hook([](T) { return Tensor(); });  // returns no tensor: the gradient stays
  y.sum().backward();
  CHECK(list(x.grad()) == List{-33, -33});
  // A gradient that a hook stores is not changed by later accumulation.
  Tensor kept;
  const Tensor a = leaf({1.0});
  a.register_hook([&](T g) { kept = g; });
  for (int i = 0; i < 2; ++i) (a * 2.0).sum().backward();
  CHECK(list(kept) == List{2});
  CHECK(list(a.grad()) == List{4});
}

TEST_CASE("hooks: on views, several outputs, and a seed", "[autograd][hooks]") {
  const Tensor x = leaf({{1.0, 2.0}, {3.0, 4.0}});
  const Tensor row = x[1];
  int calls = 0;
  row.register_hook([&](T g) { return ++calls, g * 2.0; });
  row.sum().backward();
  CHECK(calls == 1);
  CHECK(list(x.grad()) == List{0, 0, 2, 2});
  const Tensor root = leaf(5.0);
  root.register_hook([](T g) { return g * 7.0; });
  root.backward();  // the root is itself a leaf
  CHECK(root.grad().item<double>() == 7);
}

TEST_CASE("hooks: run in grad() too, for what is asked, before it is taken", "[autograd][hooks]") {
  const Tensor x = leaf({2.0}), w = leaf({5.0}), y = x * x, z = y * w;
  int of_w = 0;
  x.register_hook([](T g) { return g * 100.0; });
  y.register_hook([](T g) { return g * 10.0; });
  w.register_hook([&](T) { ++of_w; });
  const std::vector<Tensor> got = grad(z.sum(), {x, y}, true);
  CHECK(got[0].item<double>() == 5 * 10 * 4 * 100);
  CHECK(got[1].item<double>() == 50);
  CHECK(of_w == 0);  // w is not an input
  CHECK_FALSE(x.grad().defined());
  int accumulated = 0;
  x.register_post_accumulate_grad_hook([&](T) { ++accumulated; });
  (void)grad(z.sum(), {x});
  CHECK(accumulated == 0);
}

TEST_CASE("hooks: are recorded under create_graph", "[autograd][hooks]") {
  const Tensor x = leaf({3.0}), y = x * x;
  y.register_hook([](T g) { return g * g; });
  const Tensor up = leaf({2.0});
  const Tensor first = pulled(y, {x}, up, true)[0];
  CHECK(first.item<double>() == 4 * 6);              // up² · 2x
  CHECK(grad(first, {up})[0].item<double>() == 24);  // 2 up · 2x
  bool recording = true;
  const Tensor a = leaf({1.0});
  a.register_hook([&](T g) { recording = grad_enabled() || (g * 2.0).requires_grad(); });
  (a * 1.0).sum().backward();
  CHECK_FALSE(recording);
}

TEST_CASE("hooks: removed by their handles, which need not be kept", "[autograd][hooks]") {
  const Tensor x = leaf({1.0});
  int first = 0, second = 0;
  HookHandle handle = x.register_hook([&](T) { ++first; });
  {
    const HookHandle dropped = x.register_hook([&](T) { ++second; });
  }
  const auto backward = [&] { (x * 2.0).sum().backward(); };
  backward();
  handle.remove();
  handle.remove();  // has no effect
  HookHandle().remove();
  backward();
  CHECK(first == 1);
  CHECK(second == 2);
  // A hook that removes itself runs once.
  HookHandle once;
  int calls = 0;
  once = x.register_hook([&](T) {
    ++calls;
    once.remove();
  });
  backward();
  backward();
  CHECK(calls == 1);
  // The hooks and what they hold are freed with their tensors; remove() is then still valid.
  auto held = std::make_shared<int>(1);
  HookHandle late;
  {
    const Tensor gone = leaf({1.0}), result = gone * 2.0;
    late = gone.register_hook([held](T) {});
    result.register_hook([held](T) {});
    CHECK(held.use_count() == 3);
  }
  CHECK(held.use_count() == 1);
  late.remove();
}

TEST_CASE("hooks: what they throw reaches the caller, and no gradient is added",
          "[autograd][hooks][errors]") {
  const Tensor x = leaf({1.0}), w = leaf({2.0}), y = x * w;
  for (const Tensor& on : {w, y}) {
    const HookHandle handle = on.register_hook([](T) { throw std::runtime_error("of a hook"); });
    CHECK_THROWS_TEXT(std::runtime_error, "of a hook", y.backward({}, true));
    handle.remove();
  }
  for (const Tensor& wrong :
       {ones({2}), ones({1}, {.dtype = DType::float64}), ones({1}, {.device = there()})}) {
    const HookHandle handle = y.register_hook([wrong](T) { return wrong; });
    CHECK_THROWS_TEXT(AutogradError,
                      "register_hook: expected the hook to return a gradient of shape [1], float32 "
                      "on *, or an undefined one, got ",
                      y.backward({}, true));
    handle.remove();
  }
  CHECK_FALSE((x.grad().defined() || w.grad().defined()));
  y.backward();
  CHECK(x.grad().item<double>() == 2);
  const auto nothing = [](T) {};
  CHECK_THROWS_TEXT(AutogradError,
                    "register_hook: expected a tensor that requires a gradient, got one of shape "
                    "[3] that does not",
                    ones({3}).register_hook(nothing));
  CHECK_THROWS_TEXT(ArgumentError, "register_hook: expected a function, got none",
                    x.register_hook(std::function<Tensor(T)>()));
  const std::string leaf_only =
      "register_post_accumulate_grad_hook: expected a leaf that requires a gradient, got a tensor ";
  CHECK_THROWS_TEXT(AutogradError, leaf_only + "that an op made",
                    (x * 2.0).register_post_accumulate_grad_hook(nothing));
  CHECK_THROWS_TEXT(AutogradError, leaf_only + "that does not",
                    ones({3}).register_post_accumulate_grad_hook(nothing));
}

TEST_CASE("hooks: after a gradient was added, all others are there too", "[autograd][hooks]") {
  const Tensor x = leaf({1.0}), w = leaf({2.0});
  std::vector<double> seen;
  const HookHandle handle = x.register_post_accumulate_grad_hook([&](T t) {
    seen = {t.grad().item<double>(), w.grad().item<double>()};
    t.set_grad({});  // as an optimizer does during backward
  });
  (x * w).backward();
  CHECK(seen == List{2, 1});
  CHECK_FALSE(x.grad().defined());
  (x * w).backward();
  CHECK(seen == List{2, 2});
  handle.remove();
  const HookHandle failing =
      w.register_post_accumulate_grad_hook([](T) { throw std::runtime_error("after all"); });
  CHECK_THROWS_TEXT(std::runtime_error, "after all", (x * w).backward());
  CHECK(x.grad().item<double>() == 2);
  CHECK(w.grad().item<double>() == 3);
}

TEST_CASE("hooks: run on the thread of their device", "[autograd][hooks][devices]") {
  const Tensor a = leaf({1.0}), b = tensor({2.0}, {.device = there(), .requires_grad = true});
  const Tensor on_there = a.to(there()) * b, result = on_there.to(here()) * a;
  std::thread::id of_a, of_b, of_result, of_there, accumulated_b;
  const auto note = [](std::thread::id& id) {
    return [&id](T) { id = std::this_thread::get_id(); };
  };
  a.register_hook(note(of_a));
  b.register_hook(note(of_b));
  b.register_post_accumulate_grad_hook(note(accumulated_b));
  result.register_hook(note(of_result));
  on_there.register_hook(note(of_there));
  result.backward();
  const std::thread::id none;
  CHECK((of_a != none && of_b != none && of_result != none && of_there != none));
  CHECK(of_a == std::this_thread::get_id());
  CHECK(of_result == std::this_thread::get_id());
  CHECK(of_b == of_there);
  CHECK(accumulated_b == of_there);
  CHECK(of_b != std::this_thread::get_id());
  CHECK(b.grad().item<double>() == 1);
  // If a hook of another device's leaf throws, no gradient is added anywhere.
  const HookHandle failing = b.register_hook([](T) { throw std::runtime_error("over there"); });
  CHECK_THROWS_TEXT(std::runtime_error, "over there", (a.to(there()) * b).to(here()).backward());
  CHECK(a.grad().item<double>() == 4);
  CHECK(b.grad().item<double>() == 1);
}

TEST_CASE("hooks: no lock is held while one runs", "[autograd][hooks]") {
  const Tensor x = leaf({1.0}), other = leaf({3.0});
  double inner = 0;
  x.register_hook([&](T) {
    // Registers and removes a hook, and runs a nested backward.
    const HookHandle handle = other.register_hook([&](T g) { inner = g.item<double>(); });
    const GradMode mode(true);
    (other * 5.0).backward();
    handle.remove();
  });
  (x * 2.0).backward();
  CHECK(inner == 5);
  CHECK(other.grad().item<double>() == 5);
  CHECK(x.grad().item<double>() == 2);
  std::thread from_another([&] { x.register_hook([](T g) { return g * 0.0; }).remove(); });
  from_another.join();
  (x * 2.0).backward();
  CHECK(x.grad().item<double>() == 4);
}

TEST_CASE("retain_grad: a result has a gradient too", "[autograd][hooks]") {
  const Tensor x = leaf({1.0, 2.0}), y = x * 3.0;
  CHECK((std::string(y.grad_fn()->name()) == "mul" && x.grad_fn() == nullptr));
  CHECK((!y.retains_grad() && &y.retain_grad() == &y && y.retains_grad()));
  y.retain_grad();                           // once only
  CHECK((!x.retain_grad().retains_grad()));  // a leaf has its gradient anyway
  y.register_hook([](T g) { return g * 10.0; });
  (y * y).sum().backward(ones({}, {.device = here()}), true);
  CHECK(list(y.grad()) == List{60, 120});  // what the hooks return
  CHECK(list(x.grad()) == List{180, 360});
  (y * y).sum().backward();
  CHECK(list(y.grad()) == List{120, 240});  // adds
  CHECK(list(x.grad()) == List{360, 720});

  // after a change in place, the gradient is that of the new values
  const Tensor w = leaf({1.0, 2.0}), a = w * 3.0, b = w * 1.0, part = b.narrow(0, 1, 1);
  a.retain_grad(), part.retain_grad();
  a.mul_(2.0), b.mul_(5.0);
  ((a * a).sum() + square(part).sum()).backward();
  CHECK((list(a.grad()) == List{12, 24} && list(part.grad()) == List{20}));
  CHECK(list(w.grad()) == List{72, 144 + 100});

  Tensor z = x * 2.0;
  z.retain_grad();
  const Tensor loss = z.sum();
  z = Tensor();  // gone before the backward
  loss.backward();
  CHECK(list(x.grad()) == List{362, 722});
  CHECK_THROWS_TEXT(AutogradError, "retain_grad: expected a tensor that requires a gradient, got *",
                    tensor({1.0}).retain_grad());
}

TEST_CASE("retain_grad: a gradient whose graph holds the tensor alone", "[autograd][hooks]") {
  const Tensor x = leaf({1.0, 2.0});
  Tensor z;
  {
    const Tensor y = x * 2.0;
    y.retain_grad();
    z = (y * y * y).sum();
  }
  z.backward({}, true, true);
  x.set_grad({});
  z.backward();  // adds to the gradient of y, and so frees the old one, and with it y
  CHECK(list(x.grad()) == List{24, 96});
}

}  // namespace braid::test::on_device

// Functions that walk over models: parameters, to, train, eval, apply.
#include <braid/braid.hpp>
#include <braid/nn/internal/marks.hpp>

#include <memory>
#include <sstream>

#include "layer_here.hpp"
#include "refused.hpp"
#include "trees.hpp"

namespace braid::test::on_device {
namespace {

struct Model : nn::Module {
  nn::Linear a = layer(3, 3), b = layer(3, 3);
  nn::Parameter scale{ones({1})};
  nn::Buffer mean{zeros({3})}, count{zeros({1}, {.dtype = DType::int64})};
  Tensor mask = ones({3});
  std::vector<nn::Linear> blocks;
  BRAID_FIELDS(a, b, scale, mean, count, mask, blocks)
};

struct Batch {
  Tensor image, label;
  BRAID_FIELDS(image, label)
};

// Classes with constructors: the compile-time check cannot count their members.
struct Forgetful : nn::Module {
  nn::Linear fc1, fc2;
  Forgetful() : fc1(layer(2, 2)), fc2(layer(2, 2)) {}
  Tensor operator()(const Tensor& x) const { return fc2(fc1(x)); }
  BRAID_FIELDS(fc1)
};
struct NoDropout : nn::Module {
  nn::Linear fc;
  nn::Dropout drop;
  NoDropout() : fc(layer(2, 2)), drop(0.5) {}
  BRAID_FIELDS(fc)
};
struct Around : nn::Module {
  std::vector<std::optional<Forgetful>> parts{Forgetful()};
  BRAID_FIELDS(parts)
};
/// An aggregate whose base is not an aggregate. The base omits a field.
struct Derived : NoDropout {
  nn::Linear more = layer(2, 2);
  BRAID_FIELDS_OF(NoDropout, more)
};
/// Its copy constructor walks both models.
struct Careful : nn::Module {
  nn::Linear fc;
  Careful() : fc(layer(2, 2)) {}
  Careful(const Careful& other) : Module(other), fc(layer(2, 2)) {
    load_state_dict(*this, state_dict(other));
  }
  BRAID_FIELDS(fc)
};
struct MoveOnly : nn::Module {
  nn::Linear fc;
  std::unique_ptr<int> handle;
  MoveOnly() : fc(layer(2, 2)) {}
  BRAID_FIELDS(fc)
};
/// Its copy constructor throws. The check of its fields, which makes a copy, is then skipped.
struct NotToCopy : nn::Module {
  nn::Linear fc;
  NotToCopy() : fc(layer(2, 2)) {}
  NotToCopy(const NotToCopy& other) : Module(other), fc(other.fc) { throw ArgumentError("copied"); }
  BRAID_FIELDS(fc)
};

}  // namespace

TEST_CASE("parameters: in order of the fields, each once, frozen ones too", "[nn][walks]") {
  Model m;
  m.scale.requires_grad_(false);
  m.blocks.emplace_back(2, 2, nn::LinearOptions{.bias = false});
  CHECK(keys(named_parameters(m)) ==
        Names{"a.weight", "a.bias", "b.weight", "b.bias", "scale", "blocks.0.weight"});
  CHECK(parameters(m).size() == 6);
  CHECK(parameters(m)[0].id() == m.a.weight.id());
  CHECK(keys(named_buffers(m)) == Names{"mean", "count"});
  CHECK(buffers(m)[1].id() == m.count.id());
  CHECK(parameter_count(m) == 9 + 3 + 9 + 3 + 1 + 4);
  nn::tie(m.b.weight, m.a.weight);
  CHECK(keys(named_parameters(m)) ==
        Names{"a.weight", "a.bias", "b.bias", "scale", "blocks.0.weight"});
  CHECK(parameter_count(m) == 9 + 3 + 3 + 1 + 4);
  m.mask = m.b.bias;  // a Tensor field that is also a parameter does not hide it
  CHECK(keys(named_parameters(m)) ==
        Names{"a.weight", "a.bias", "b.bias", "scale", "blocks.0.weight"});
  CHECK(parameters(Batch{ones({1}), ones({1})}).empty());
}

TEST_CASE("to: writes into the parameters there are, keeps ties, takes gradients along",
          "[nn][to]") {
  Model m;
  nn::tie(m.b.weight, m.a.weight);
  const std::vector<Tensor> before = parameters(m);
  const Tensor weight = m.a.weight.detach().clone(), old_mask = m.mask;
  const std::uint64_t storage = m.a.weight.storage()->id();
  (m.a(ones({1, 3})) * m.scale).sum().backward();
  const Tensor grad = m.a.weight.grad().clone();
  to(m, there());
  for (const Tensor& t : before) CHECK(t.device() == there());
  for (const Tensor& t : tree::leaves(m)) CHECK(t.device() == there());
  CHECK(m.a.weight.id() == before[0].id());
  CHECK(m.a.weight.id() == m.b.weight.id());
  CHECK(m.a.weight.storage()->id() != storage);
  CHECK(m.a.weight.requires_grad());
  CHECK(m.a.weight.is_leaf());
  CHECK(m.a.weight.grad().device() == there());
  CHECK_SAME_BITS(m.a.weight.grad(), grad);
  CHECK_SAME_BITS(m.a.weight, weight);
  CHECK(old_mask.device() == here());  // Tensor::to never writes into its source
  m.b(ones({1, 3}, {.device = there()})).sum().backward();
  CHECK(m.a.weight.grad().device() == there());
  to(m, here());
  CHECK_SAME_BITS(m.a.weight, weight);
  CHECK(before[0].device() == here());
}

TEST_CASE("to: dtype changes floating point tensors only", "[nn][to]") {
  Model m;
  const Tensor weight = m.a.weight.detach().clone();
  (m.a(ones({1, 3}))).sum().backward();
  const Tensor handle = parameters(m)[0];
  to(m, DType::float64);
  CHECK(handle.dtype() == DType::float64);
  CHECK(handle.grad().dtype() == DType::float64);
  CHECK(m.mean.dtype() == DType::float64);
  CHECK(m.count.dtype() == DType::int64);
  CHECK(m.a.weight.requires_grad());
  CHECK_EXACT(m.a.weight, weight);
  to(m, there(), DType::float16);
  CHECK(handle.dtype() == DType::float16);
  CHECK(handle.device() == there());
  CHECK_THROWS_TEXT(DTypeError, "to: expected a floating point dtype, got int32",
                    to(m, DType::int32));
  CHECK(m.count.dtype() == DType::int64);
}

TEST_CASE("to: nothing to change changes nothing", "[nn][to]") {
  Model m;
  const std::uint64_t storage = m.a.weight.storage()->id();
  const TensorImpl* mask = m.mask.id();
  to(m, here());
  to(m, DType::float32);
  CHECK(m.a.weight.storage()->id() == storage);
  CHECK(m.mask.id() == mask);
}

TEST_CASE("to: a backward that saved the old numbers says so after a move there and back",
          "[nn][to][errors]") {
  const Tensor x = ones({1, 2}, {.requires_grad = true});
  for (const bool move : {true, false}) {  // to another device, or to another dtype
    nn::Linear changed = layer(2, 1, {.bias = false});
    const Tensor y = changed(x).sum();
    if (move) to(changed, there());
    else to(changed, DType::float64);
    changed.weight.detach().fill_(100);
    if (move) to(changed, here());
    else to(changed, DType::float32);
    CHECK_THROWS_TEXT(AutogradError,
                      "backward: expected a saved tensor of shape [1, 2] unchanged*saved by linear",
                      y.backward());
  }
}

TEST_CASE("to: either all are moved or none", "[nn][to][errors]") {
  Model m;
  (m.a(ones({1, 3})) * m.scale).sum().backward();
  to(m, there());
  to(m, here());  // so that the measurement below counts only what a move needs
  std::uint64_t allocations = 0;
  {
    Model probe = clone(m);
    const std::uint64_t start = memory_stats(there()).allocations;
    (probe.a(ones({1, 3})) * probe.scale).sum().backward();
    to(probe, there());
    allocations = memory_stats(there()).allocations - start;
  }
  REQUIRE(allocations >= 10);
  for (std::uint64_t k = 1; k <= allocations; ++k) {
    INFO(k);
    fail_allocation(there(), k);
    CHECK_THROWS_AS(to(m, there()), OutOfMemoryError);
    fail_allocation(there(), 0);
    for (const Tensor& t : tree::leaves(m)) CHECK(t.device() == here());
    CHECK(m.a.weight.grad().device() == here());
  }
  CHECK_THROWS_AS(to(m, Device("cpu:63")), DeviceError);
  to(m, there());
  CHECK(m.count.device() == there());
}

TEST_CASE("to: a tree of plain tensors gets new handles, ties among them stay", "[nn][to]") {
  const Tensor x = ones({2}, {.requires_grad = true});
  Batch batch{x * 2.0, {}};
  std::vector<Batch> batches{batch, batch};
  to(batches, there());
  CHECK(batches[0].image.device() == there());
  CHECK(batches[0].image.id() == batches[1].image.id());
  CHECK(!batches[0].label.defined());
  CHECK(batch.image.device() == here());
  batches[0].image.sum().backward();  // differentiable
  CHECK(x.grad().to_vector<double>() == std::vector<double>{2, 2});
  Tensor one = ones({1});
  to(one, there());
  CHECK(one.device() == there());
  Model m;  // a Tensor field that is also a parameter moves with it
  m.mask = m.a.bias;
  to(m, there());
  CHECK(m.mask.id() == m.a.bias.id());
  CHECK(m.mask.device() == there());
}

TEST_CASE("train, eval: every module, whatever holds it", "[nn][walks]") {
  struct Plain {
    nn::ReLU act;
    bool training = true;  // not the flag of a module
    BRAID_FIELDS(act, training)
  };
  struct Outer : nn::Module {
    Plain plain;
    std::vector<std::optional<nn::Linear>> list{nn::Linear(1, 1), std::nullopt};
    BRAID_FIELDS(plain, list)
  };
  Outer m;
  eval(m);
  CHECK(!m.training);
  CHECK(!m.plain.act.training);
  CHECK_FALSE(m.list[0]->training);
  CHECK(m.plain.training);
  train(m);
  CHECK(m.training);
  CHECK(m.plain.act.training);
  CHECK(m.list[0]->training);
  set_training(m.plain, false);
  CHECK(m.training);
  CHECK(!m.plain.act.training);
}

TEST_CASE("walks work from a model's own constructor", "[nn][walks]") {
  struct Self : nn::Module {
    nn::Linear a = layer(2, 2);
    Self() {
      to(*this, there());
      eval(*this);
    }
    BRAID_FIELDS(a)
  };
  const Self s;
  CHECK(s.a.weight.device() == there());
  CHECK(!s.a.training);
}

TEST_CASE("zero_grad: gradients are none, not zero", "[nn][walks]") {
  Model m;
  (m.a(ones({1, 3})) * m.scale).sum().backward();
  REQUIRE(m.scale.grad().defined());
  zero_grad(m);
  for (const Tensor& p : parameters(m)) CHECK_FALSE(p.grad().defined());
  m.scale.sum().backward();
  nn::detail::set_mark(m.a.weight, nn::detail::Mark::replica);
  static std::string warning;
  warning.clear();
  const auto before =
      set_warning_handler([](std::string_view text) { warning = std::string(text); });
  zero_grad(m);  // in a replica it warns and does nothing
  set_warning_handler(before);
  CHECK(
      warning.starts_with("Calling .zero_grad() from a module created with nn.DataParallel() has "
                          "no effect. The parameters are copied"));
  CHECK(m.scale.grad().defined());
  warning.clear();
  Model copy = clone(m);  // a copy of a replica is a model
  copy.scale.sum().backward();
  zero_grad(copy);
  CHECK(warning.empty());
  CHECK_FALSE(copy.scale.grad().defined());
}

TEST_CASE("requires_grad_: all or none", "[nn][walks]") {
  Model m;
  requires_grad_(m, false);
  for (const Tensor& p : parameters(m)) CHECK_FALSE(p.requires_grad());
  m.scale = nn::Parameter(ones({1}, {.dtype = DType::int64}), false);
  CHECK_THROWS_TEXT(DTypeError,
                    "requires_grad_: expected floating point parameters, got 'scale' of int64",
                    requires_grad_(m));
  CHECK_FALSE(m.a.weight.requires_grad());
  m.scale = nn::Parameter(ones({1}));
  requires_grad_(m);
  for (const Tensor& p : parameters(m)) CHECK(p.requires_grad());
}

TEST_CASE("walks: a field that is missing from BRAID_FIELDS is an error of every one",
          "[nn][walks][errors]") {
  Forgetful m;
  const StateDict dict;
  const auto nothing = [](const auto&...) {};
  refuses<ArgumentError>(
      "Forgetful: expected every field that holds parameters or modules in its BRAID_FIELDS, got 2 "
      "of 4 parameters and buffers and 2 of 3 modules*add the others")({
      {"", [&] { (void)parameters(m); }},
      {"", [&] { (void)named_parameters(m); }},
      {"", [&] { (void)buffers(m); }},
      {"", [&] { (void)named_buffers(m); }},
      {"", [&] { (void)parameter_count(m); }},
      {"", [&] { (void)state_dict(m); }},
      {"", [&] { load_state_dict(m, dict); }},
      {"", [&] { to(m, there()); }},
      {"", [&] { to(m, DType::float64); }},
      {"", [&] { train(m); }},
      {"", [&] { eval(m); }},
      {"", [&] { zero_grad(m); }},
      {"", [&] { requires_grad_(m, false); }},
      {"", [&] { apply(m, nothing); }},
      {"", [&] { (void)clone(m); }},
      {"", [&] { tree::visit(m, nothing); }},
      {"", [&] { tree::visit_nodes(m, nothing); }},
      {"", [&] { (void)tree::leaves(m); }},
      {"", [&] { (void)(std::ostringstream() << m); }},
      {"", [&] { (void)training::summary(m); }},
      {"", [&] { training::Checkpoint("nowhere/at-all", m).save(); }},
      {"", [] { (void)parameters(Around()); }},
  });
  CHECK(m.fc2.weight.requires_grad());
  CHECK(m.training);
  CHECK(m.fc1.weight.device() == here());
  refuses<ArgumentError>("")({
      {"NoDropout: expected *, got 2 of 2 parameters and buffers and 2 of 3 modules",
       [] {
         NoDropout net;
         eval(net);
       }},
      {"Derived: expected *, got 4 of 4 parameters and buffers and 3 of 4 modules",
       [] { (void)parameters(Derived()); }},
  });
}

TEST_CASE("walks: what cannot be copied, or copies in its own way, is visited", "[nn][walks]") {
  const Careful careful;
  CHECK(parameters(careful).size() == 2);
  CHECK(parameters(Careful(careful)).size() == 2);
  CHECK(parameters(MoveOnly()).size() == 2);
  CHECK(parameters(NotToCopy()).size() == 2);
}

TEST_CASE("apply: every module that the function takes, parts first", "[nn][walks]") {
  nn::Sequential m{nn::Linear(1, 2), nn::Sequential{nn::ReLU(), nn::Linear(2, 3)}};
  std::vector<std::int64_t> widths;
  apply(m, [&](nn::Linear& layer) { widths.push_back(layer.weight.size(0)); });
  CHECK(widths == std::vector<std::int64_t>{2, 3});
  Names order;
  apply(m, [&](const auto& layer) {
    order.push_back(type_name<std::remove_cvref_t<decltype(layer)>>());
  });
  CHECK(order == Names{"Linear", "ReLU", "Linear", "Sequential", "Sequential"});
  apply(m, [](nn::Linear& layer) { layer.training = false; });
  CHECK_FALSE(std::get<0>(m.layers).training);
  const auto& fixed = m;
  int count = 0;
  apply(fixed, [&](const nn::Linear&) { ++count; });
  CHECK(count == 2);
}

TEST_CASE("EvalGuard: evaluation mode for a while, then each module's own mode", "[nn][walks]") {
  struct Net : nn::Module {
    nn::Dropout first{0.5}, second{0.5};
    BRAID_FIELDS(first, second)
  };
  Net net;
  eval(net.second);
  {
    const EvalGuard evaluating(net);
    CHECK_FALSE(net.training);
    CHECK_FALSE(net.first.training);
    CHECK_FALSE(net.second.training);
  }
  CHECK(net.training);
  CHECK(net.first.training);
  CHECK_FALSE(net.second.training);
}

}  // namespace braid::test::on_device

// Modules whose types are known at run time only, calls of layers: hooks and paths in errors, and
// the summary of a call.
#include <memory>
#include <thread>

#include <braid/braid.hpp>

#include "layer_here.hpp"
#include "refused.hpp"

namespace braid::test::on_device {
namespace {

struct Block : nn::Layer<Block> {
  nn::Linear linear = layer(4, 4);
  Tensor forward(const Tensor& x) const { return x + relu(linear(x)); }
  BRAID_FIELDS(linear)
};
struct Stack : nn::Module {
  std::vector<Block> blocks{2};
  nn::ModuleList list{layer(4, 4), nn::ReLU()};
  nn::ModuleDict heads{{"class", layer(4, 3)}, {"box", layer(4, 2)}};
  nn::Sequential<> tail;
  Stack() {
    tail.push_back(layer(4, 4));
    tail.push_back("act", nn::Tanh());
  }
  Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (const Block& block : blocks) y = block(y);
    for (const nn::AnyModule& module : list) y = module(y);
    return heads["box"](tail(y));
  }
  BRAID_FIELDS(blocks, list, heads, tail)
};

using Calls = std::vector<std::string>;
nn::ForwardHookFunction noting(Calls& calls) {
  return [&calls](const nn::LayerCall& call) {
    calls.push_back(
        str(call.path, ' ', call.inputs.at(0).shape(), ' ', call.outputs.at(0).shape()));
  };
}

template <class M> nn::ForwardHookHandle hook(M& layer, const nn::ForwardHookFunction& f) {
  if constexpr (std::is_same_v<M, nn::AnyModule>) return layer.register_forward_hook(f);
  else return nn::register_forward_hook(layer, f);
}

}  // namespace

TEST_CASE("AnyModule: in a walk it is the module that it holds", "[nn][modules]") {
  Stack model;
  std::string names;
  for (const auto& [name, p] : named_parameters(model)) names += name + ' ';
  CHECK(names ==
        "blocks.0.linear.weight blocks.0.linear.bias blocks.1.linear.weight "
        "blocks.1.linear.bias list.0.weight list.0.bias heads.class.weight heads.class.bias "
        "heads.box.weight heads.box.bias tail.0.weight tail.0.bias ");
  CHECK(str(model.tail) ==
        "Sequential(\n  (0): Linear(in_features=4, out_features=4, bias=true)\n  (act): Tanh()\n)");
  const Tensor x = ones({3, 4}, {.device = here()}), y = model(x);
  CHECK(y.shape() == Shape{3, 2});

  Stack other = clone(model);  // shares nothing, and computes the same
  CHECK(equal(other(x), y));
  {
    const NoGrad guard;
    other.list[0].get<nn::Linear>().weight.zero_();
  }
  CHECK(equal(model(x), y));
  load_state_dict(other, state_dict(model));
  CHECK(equal(other(x), y));
  eval(model);
  CHECK(!model.list[0].get<nn::Linear>().training);
  apply(model, [](nn::Tanh& layer) { layer.training = true; });
  CHECK((model.tail[1].get<nn::Tanh>().training && !model.tail.training));
  y.sum().backward();
  for (const auto& [name, p] : named_parameters(model))
    CHECK(p.grad().defined() == (name.find("class") == std::string::npos));
}

TEST_CASE("AnyModule: what it refuses", "[nn][modules]") {
  const Tensor x = ones({1, 4}, {.device = here()});
  nn::AnyModule none, linear = layer(4, 2), lstm = nn::LSTM(4, 2);
  CHECK((none.empty() && none.type_name().empty() && linear.type_name() == "Linear"));
  CHECK((linear.get_if<nn::ReLU>() == nullptr && linear.get_if<nn::Linear>() != nullptr));
  nn::Sequential<> model;
  model.push_back("a", nn::ReLU());
  struct Plain : nn::Module {
    Tensor operator()(const Tensor& t) const { return t; }
    BRAID_FIELDS()
  };
  nn::AnyModule plain = Plain();
  refuses<ArgumentError>("")({
      {"AnyModule: expected a module, got none", [&] { (void)none(x); }},
      {"AnyModule: expected a ReLU, got a Linear", [&] { (void)linear.get<nn::ReLU>(); }},
      {"AnyModule: expected a ReLU, got none", [&] { (void)none.get<nn::ReLU>(); }},
      {"AnyModule: expected a module that takes 2 tensors and returns one, got a Linear; use "
       "get<Linear>()",
       [&] { (void)linear(x, x); }},
      {"AnyModule: expected a module that takes 1 tensor and returns one, got a LSTM",
       [&] { (void)lstm(x); }},
      {"insert: expected a new name, got 'a' again", [&] { model.push_back("a", nn::ReLU()); }},
      {"register_forward_hook: expected a layer of the library or a struct that derives from "
       "nn::Layer, got a Plain",
       [&] { (void)plain.register_forward_hook([](const nn::LayerCall&) {}); }},
      {"register_forward_hook: expected a function, got none",
       [&] { (void)linear.register_forward_hook({}); }},
  });
  refuses<IndexError>("")({
      {"Sequential: expected an index below 1, got 1", [&] { (void)model[1]; }},
      {"at: expected the name of an entry, got 'b'", [&] { (void)model.layers.at("b"); }},
  });
  CHECK(equal(nn::Sequential<>()(x), x));
}

TEST_CASE("Optimizer chosen at run time: saved by its base class", "[nn][optim]") {
  const auto step = [](const nn::Linear& model, optim::Optimizer& optimizer) {
    model(ones({2, 3}, {.device = here()})).square().sum().backward();
    optimizer.step();
    optimizer.zero_grad();
  };
  const auto make = [](bool adam, const nn::Linear& m) -> std::unique_ptr<optim::Optimizer> {
    if (adam) return std::make_unique<optim::Adam>(parameters(m));
    return std::make_unique<optim::SGD>(parameters(m),
                                        optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
  };
  for (const bool adam : {false, true}) {
    nn::Linear model = layer(3, 2);
    const auto optimizer = make(adam, model);
    step(model, *optimizer);
    const StateDict state = state_dict(*optimizer);
    std::string names;
    for (const auto& [name, t] : state) names += name + ' ';
    CHECK(names == (adam ? "exp_avg.0 exp_avg.1 exp_avg_sq.0 exp_avg_sq.1 steps "
                         : "momentum.0 momentum.1 steps "));
    nn::Linear other = clone(model);
    const auto restored = make(adam, other);
    load_state_dict(*restored, state);
    step(model, *optimizer), step(other, *restored);
    CHECK(equal(model.weight, other.weight));
  }
}

TEST_CASE("forward hooks: see calls, replace outputs, stay with copies", "[nn][modules][hooks]") {
  Stack model;
  const Tensor x = ones({3, 4}, {.device = here()}), before = model(x);
  (void)parameters(model);  // the first walk tells the layers their paths
  Calls calls;
  const auto first = nn::register_forward_hook(model.blocks[1].linear, noting(calls));
  const auto block = nn::register_forward_hook(model.blocks[1], noting(calls));
  const auto any = model.list[1].register_forward_hook(noting(calls));
  const auto tail = nn::register_forward_hook(model.tail, noting(calls));
  CHECK(equal(model(x), before));
  const Calls all{"blocks.1.linear [3, 4] [3, 4]", "blocks.1 [3, 4] [3, 4]", "list.1 [3, 4] [3, 4]",
                  "tail [3, 4] [3, 4]"};
  CHECK(calls == all);

  calls.clear();
  const Stack copy = clone(model);  // a copy has the hooks
  (void)copy(x);
  CHECK(calls == all);
  (void)model.blocks[1].forward(x);  // forward itself runs only the hooks of layers in it
  CHECK(calls.size() == 5);

  first.remove(), block.remove(), any.remove(), tail.remove();
  calls.clear();
  (void)model(x), (void)copy(x);
  CHECK(calls.empty());

  const auto zero = nn::register_forward_hook(
      model.tail, [](const nn::LayerCall& call) { call.outputs[0] = call.outputs[0] * 0; });
  CHECK(equal(model(x)[0], model.heads["box"].get<nn::Linear>().bias));
  zero.remove();
  const auto failing = nn::register_forward_hook(
      model.tail, [](const nn::LayerCall&) { throw std::runtime_error("hook"); });
  CHECK_THROWS_WITH(model(x), "hook");
}

TEST_CASE("Sequential: a Linear and its activation give the bits of two layers, hooks or not",
          "[nn][modules][fused]") {
  const Tensor x = random_tensor({5, 4}, DType::float32, here());
  const auto check = [&](auto model, const auto& first, const auto& second) {
    to(model, here());
    const std::vector<Tensor> all = parameters(model);
    const auto results = [&](const auto& f) {
      std::vector<Tensor> list{f()};
      for (const Tensor& g : grad(list[0].square().sum(), {all[0], all[1]})) list.push_back(g);
      return list;
    };
    const auto want = results([&] { return second(model)(first(model)(x)); });
    const auto same = [&] {
      const auto got = results([&] { return model(x); });
      for (std::size_t i = 0; i < want.size(); ++i) CHECK_SAME_BITS(got[i], want[i]);
    };
    same();
    {
      const Autocast autocast(DType::bfloat16);
      CHECK_SAME_BITS(model(x).detach(), second(model)(first(model)(x)).detach());
    }
    Calls calls;
    const auto of_first = hook(first(model), noting(calls));
    same();
    CHECK(calls.size() == 1);
    of_first.remove();
    const auto of_second = hook(second(model), noting(calls));
    same();
    CHECK(calls.size() == 2);
    of_second.remove();
    // what a hook puts there is what the next layer gets
    const auto zero = hook(first(model), [](const nn::LayerCall& call) {
      call.outputs[0] = zeros_like(call.outputs[0]);
    });
    CHECK(equal(model(x), zeros({5, 3}, {.device = here()})));
  };
  const auto first = [](auto& model) -> auto& { return std::get<0>(model.layers); };
  const auto second = [](auto& model) -> auto& { return std::get<1>(model.layers); };
  check(nn::Sequential(layer(4, 3), nn::ReLU()), first, second);
  check(nn::Sequential(layer(4, 3), nn::GELU()), first, second);
  check(nn::Sequential(layer(4, 3), nn::GELU("tanh")), first, second);
  for (const nn::AnyModule& activation :
       {nn::AnyModule(nn::ReLU()), nn::AnyModule(nn::GELU("tanh")), nn::AnyModule(nn::GELU())}) {
    nn::Sequential<> model;
    model.push_back(layer(4, 3));
    model.push_back(activation);
    check(
        model, [](auto& m) -> auto& { return m[0].template get<nn::Linear>(); },
        [](auto& m) -> auto& { return m[1]; });
  }
}

TEST_CASE("a layer's error begins with its path", "[nn][modules]") {
  Stack model;
  const Tensor wrong = ones({3, 5}, {.device = here()});
  const auto text = [&](const auto& call) {
    try {
      (void)call();
    } catch (const ShapeError& error) {
      return std::string(error.module_path()) + '|' + error.what();
    }
    return std::string();
  };
  CHECK(matches(text([&] { return model(wrong); }), "|linear: expected *"));  // not visited yet
  (void)parameters(model);
  CHECK(matches(text([&] { return model(wrong); }),
                "blocks.0.linear|blocks.0.linear: linear: expected *"));
  CHECK(matches(text([&] { return model.tail(wrong); }), "tail.0|tail.0: linear: expected *"));
  (void)parameters(model.tail);  // a walk over a part keeps the paths of the whole
  CHECK(matches(text([&] { return model.tail(wrong); }), "tail.0|*"));
  CHECK(matches(text([&] { return linear(wrong, model.tail[0].get<nn::Linear>().weight); }),
                "|linear: expected *"));
  model.list.push_back(layer(7, 7));  // a new layer gets its path from the next walk
  (void)parameters(model);
  CHECK(matches(text([&] { return model(ones({3, 4}, {.device = here()})); }), "list.2|list.2: *"));
  const Stack alone = clone(model);  // a copy is a tree of its own
  (void)parameters(alone.tail);
  CHECK(matches(text([&] { return alone.tail(wrong); }), "tail.0|*"));
  struct Outer : nn::Module {
    Stack inner;
    BRAID_FIELDS(inner)
  };
  Outer outer;
  outer.inner = clone(model);
  (void)parameters(outer);  // a larger tree: longer paths
  CHECK(matches(text([&] { return outer.inner(wrong); }), "inner.blocks.0.linear|*"));
}

TEST_CASE("summary of a call: shapes of outputs and multiply-adds", "[training][summary]") {
  struct Net : nn::Module {
    nn::Conv2d conv{2, 4, 3, {.padding = 1, .device = here()}};
    nn::BatchNorm2d norm{4, {.device = here()}};
    nn::MultiheadAttention attention{4, 2, {.device = here()}};
    nn::Linear out = layer(4, 3), unused = layer(4, 3);
    Tensor operator()(const Tensor& x) const {
      const Tensor t = norm(conv(x)).flatten(2).transpose(1, 2);  // [n, 25, 4]
      return out(attention(t, t, t).mean(1)).matmul(ones({3, 3}, {.device = x.device()}));
    }
    BRAID_FIELDS(conv, norm, attention, out, unused)
  };
  Net model;
  const auto before = model.norm.running_mean.clone();
  const auto s = training::summary(model, ones({2, 2, 5, 5}, {.device = here()}));
  std::string rows;
  for (const auto& l : s.layers)
    rows += str(l.path, ' ', l.output, ' ', l.multiply_adds, ' ', l.calls, '\n');
  // conv 2·25·4·2·9; attention: projections 2·25·4·12, scores and values 25·2·2·2·(2 + 2); its
  // output layer 2·25·4·4; out 2·4·3; the matmul 2·3·3
  CHECK(rows ==
        "conv [2, 4, 5, 5] 3600 1\nnorm [2, 4, 5, 5] 0 1\nattention [2, 25, 4] 3200 1\n"
        "attention.out_proj [2, 25, 4] 800 1\nout [2, 3] 24 1\nunused  0 0\n");
  CHECK(s.multiply_adds == 3600 + 3200 + 800 + 24 + 18);
  CHECK((model.training && model.norm.training && equal(model.norm.running_mean, before)));
  CHECK(
      matches(str(s), "layer*type*shapes*output*parameters*bytes*multiply-adds\n*\nall*7,642\n*"));
  CHECK((training::summary(model).multiply_adds == 0 && !training::summary(model).called));
}

}  // namespace braid::test::on_device

// Parameters and buffers: copies and ties.
#include <braid/braid.hpp>
#include <braid/nn/internal/marks.hpp>

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>

#include "layer_here.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {
namespace {

struct Kinds : nn::Module {
  nn::Parameter parameter{ones({2})};
  nn::Buffer buffer{ones({2})};
  Tensor tensor = ones({2});
  BRAID_FIELDS(parameter, buffer, tensor)
};

/// Parameters in every kind of field that a tree may have.
struct Holder : nn::Module {
  nn::Parameter one{ones({1})};
  std::array<nn::Linear, 1> array{nn::Linear(1, 1)};
  std::vector<nn::Parameter> list;
  std::map<std::string, nn::Parameter> map;
  std::optional<nn::Parameter> maybe{std::in_place, ones({1})};
  std::tuple<nn::Parameter, nn::Linear> tuple{nn::Parameter(ones({1})), nn::Linear(1, 1)};
  std::pair<std::string, nn::Parameter> pair{"x", nn::Parameter(ones({1}))};
  BRAID_FIELDS(one, array, list, map, maybe, tuple, pair)
};

/// A class with a constructor: the compile-time check cannot count its members.
struct Forgetful : nn::Module {
  nn::Linear fc1, fc2;
  explicit Forgetful(std::int64_t n) : fc1(layer(n, n)), fc2(layer(n, n)) {}
  BRAID_FIELDS(fc1)
};

/// Clones another model while it is being copied.
struct Nested : nn::Module {
  std::shared_ptr<nn::Linear> hidden = std::make_shared<nn::Linear>(layer(2, 2));
  nn::Linear a = layer(3, 3);
  Nested() = default;
  Nested(const Nested& other)
      : Module(other), hidden(std::make_shared<nn::Linear>(clone(*other.hidden))), a(other.a) {}
  BRAID_FIELDS(a)
};

/// x w + b, which keeps its parameters for backward in both ways.
struct Affine : autograd::Function<Affine> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, const nn::Parameter& w,
                        const std::optional<nn::Parameter>& b) {
    ctx->save_for_backward({x});
    ctx->saved_data["w"] = w;
    return b ? x * w + *b : x * w;
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx,
                                          autograd::variable_list dy) {
    return {dy[0] * ctx->saved_data["w"].toTensor(), dy[0] * ctx->get_saved_variables()[0],
            ctx->needs_input_grad(2) ? dy[0] : Tensor()};
  }
};

}  // namespace

TEST_CASE("parameter: an argument of a Function is a tensor", "[nn][parameter][autograd]") {
  const Tensor x = full({2}, 3.0);
  const nn::Parameter w(full({2}, 5.0));
  const std::optional<nn::Parameter> b(std::in_place, full({2}, 7.0));
  Affine::apply(x, w, b).sum().backward();
  Affine::apply(x, w, std::optional<nn::Parameter>()).sum().backward();
  CHECK(w.grad().to_vector<double>() == std::vector<double>{6, 6});
  CHECK(b->grad().to_vector<double>() == std::vector<double>{1, 1});
}

TEST_CASE("parameter: is a leaf that requires a gradient", "[nn][parameter]") {
  const Tensor source = ones({2}, {.requires_grad = true});
  const nn::Parameter p(source * 2.0);
  CHECK(p.is_leaf());
  CHECK(p.requires_grad());
  const nn::Parameter frozen(ones({2}), false);
  CHECK_FALSE(frozen.requires_grad());
  CHECK_FALSE(nn::Parameter(ones({2}, {.dtype = DType::int64}), false).requires_grad());
  CHECK(!nn::Parameter().defined());
  CHECK(!nn::Parameter(Tensor()).defined());
  CHECK_THROWS_TEXT(DTypeError,
                    "Parameter: expected a floating point tensor, got int64; pass requires_grad = "
                    "false, or make it a Buffer",
                    nn::Parameter(ones({2}, {.dtype = DType::int64})));
}

TEST_CASE("parameter: a copy has numbers of its own, a Tensor's copy has not", "[nn][parameter]") {
  const Kinds a;
  Kinds b = a;
  CHECK(b.parameter.storage() != a.parameter.storage());
  CHECK(b.buffer.storage() != a.buffer.storage());
  CHECK(b.tensor.id() == a.tensor.id());
  CHECK(b.parameter.requires_grad());
  CHECK(b.parameter.is_leaf());
  CHECK(!b.buffer.requires_grad());
  {
    const NoGrad guard;
    b.parameter.fill_(5);
  }
  CHECK(a.parameter.to_vector<double>() == std::vector<double>{1, 1});
  b = a;
  CHECK(b.parameter.to_vector<double>() == std::vector<double>{1, 1});
  CHECK(b.parameter.storage() != a.parameter.storage());
  nn::Linear source = layer(2, 2);
  const TensorImpl* id = source.weight.id();
  const nn::Linear moved = std::move(source);  // moves the tensor
  CHECK(moved.weight.id() == id);
  std::vector<nn::Linear> blocks(3, moved);
  CHECK(blocks[0].weight.id() != blocks[1].weight.id());
  CHECK_SAME_BITS(blocks[0].weight, blocks[2].weight);
  nn::Parameter frozen(ones({1}), false);
  CHECK_FALSE(nn::Parameter(frozen).requires_grad());
  nn::Buffer with_gradient(ones({1}, {.requires_grad = true}));
  CHECK(nn::Buffer(with_gradient).requires_grad());
  const nn::Parameter empty, copy(empty);
  CHECK_FALSE(copy.defined());
}

TEST_CASE("parameter: whatever holds parameters is copied as a whole, with numbers of its own",
          "[nn][parameter]") {
  Holder a;
  a.list.emplace_back(ones({1}));
  a.map.try_emplace("x", ones({1}));
  Holder b = a;
  const auto apart = [&] {
    const std::vector<Tensor> of_a = parameters(a), of_b = parameters(b);
    bool all = of_a.size() == 10 && of_b.size() == 10;
    for (std::size_t i = 0; i < of_a.size(); ++i)
      all = all && of_a[i].storage() != of_b[i].storage() && of_b[i].requires_grad();
    return all;
  };
  CHECK(apart());
  Holder& other = a;  // also from a holder that is not const
  b = other;
  CHECK(apart());
  const Holder c = [](Holder by_value) { return by_value; }(a);
  CHECK(parameters(c)[0].storage() != parameters(a)[0].storage());
  CHECK(std::is_copy_constructible_v<nn::Parameter>);
  CHECK_FALSE(std::is_convertible_v<const nn::Parameter&, nn::Parameter>);
  CHECK_FALSE(std::is_convertible_v<nn::Buffer&, nn::Buffer>);
  CHECK(std::is_convertible_v<const nn::Linear&, nn::Linear>);
  nn::Parameter own(a.one);  // an explicit copy is allowed, and is a deep copy
  CHECK(own.storage() != a.one.storage());
  own = nn::Parameter(a.one);
  CHECK(own.storage() != a.one.storage());
  const Tensor handle = a.one;
  CHECK(handle.id() == a.one.id());
}

TEST_CASE("parameter: copies under share are the same tensors", "[nn][parameter]") {
  const Kinds a;
  const Kinds b = tree::share(a);
  CHECK(b.parameter.id() == a.parameter.id());
  CHECK(b.buffer.id() == a.buffer.id());
  const Tied tied;
  CHECK(tree::share(tied).b.weight.id() == tied.a.weight.id());
  CHECK(Kinds(a).parameter.id() != a.parameter.id());  // outside of share, copies are separate
}

TEST_CASE("parameter: an assignment copies the numbers, and ties nothing", "[nn][parameter]") {
  nn::Linear encoder = layer(2, 2), decoder = layer(2, 2);
  decoder.weight = encoder.weight;
  CHECK_SAME_BITS(decoder.weight, encoder.weight);
  CHECK(decoder.weight.storage() != encoder.weight.storage());
  decoder(ones({1, 2})).sum().backward();
  CHECK(decoder.weight.grad().defined());
  CHECK_FALSE(encoder.weight.grad().defined());
  nn::tie(decoder.weight, encoder.weight);
  CHECK(decoder.weight.id() == encoder.weight.id());
  CHECK_THROWS_TEXT(ArgumentError, "copy: expected an untied parameter, got a tied one",
                    decoder.weight = encoder.weight);
}

TEST_CASE("tie: both are one tensor, in copies too", "[nn][tie]") {
  Tied t;
  CHECK(t.a.weight.id() == t.b.weight.id());
  CHECK(parameters(t).size() == 3);
  const Tied u = clone(t);
  CHECK(u.a.weight.id() == u.b.weight.id());
  CHECK(u.a.weight.storage() != t.a.weight.storage());
  CHECK_SAME_BITS(u.a.weight, t.a.weight);
  const Tied again = clone(u);  // the tied flag is kept
  CHECK(again.a.weight.id() == again.b.weight.id());
  CHECK_THROWS_TEXT(
      ArgumentError,
      "copy: expected an untied parameter, got a tied one; use clone(model), which keeps ties",
      Tied(u));
  CHECK_THROWS_TEXT(ArgumentError, "copy: expected an untied parameter, got a tied one",
                    nn::Linear(t.b));
  Tied moved = std::move(t);
  CHECK(moved.a.weight.id() == moved.b.weight.id());
  const Tensor x = ones({1, 3});  // both layers add to one gradient
  (moved.a(x).sum() + moved.b(x).sum()).backward();
  CHECK(moved.a.weight.grad().to_vector<double>() == std::vector<double>(9, 2));
  CHECK(moved.b.weight.grad().id() == moved.a.weight.grad().id());
}

TEST_CASE("tie: what does not fit is refused", "[nn][tie][errors]") {
  nn::Parameter a(ones({2, 3})), b(ones({3, 2})), c(ones({2, 3}, {.dtype = DType::float64})),
      d(ones({2, 3}, {.device = there()})), none;
  const TensorImpl* id = a.id();
  CHECK_THROWS_TEXT(ShapeError, "tie: expected parameters of one shape, got [2, 3] and [3, 2]",
                    nn::tie(a, b));
  CHECK_THROWS_TEXT(DTypeError, "tie: expected parameters of one dtype, got float32 and float64",
                    nn::tie(a, c));
  CHECK_THROWS_TEXT(DeviceError,
                    here("tie: expected parameters on one device, got cpu:0 and cpu:1"),
                    nn::tie(a, d));
  CHECK_THROWS_TEXT(ArgumentError, "tie: expected two defined parameters, got an undefined second",
                    nn::tie(a, none));
  CHECK(a.id() == id);
  CHECK_FALSE(nn::detail::has_mark(a, nn::detail::Mark::tied));
}

TEST_CASE("clone: a field that is missing from BRAID_FIELDS is found at run time",
          "[nn][clone][errors]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "Forgetful: expected every field that holds parameters or modules in its "
                    "BRAID_FIELDS, got 2 of 4 parameters and buffers and 2 of 3 modules",
                    clone(Forgetful(3)));
  CHECK(Forgetful(3).fc1.weight.defined());
  const Kinds fine;
  CHECK(clone(fine).parameter.defined());  // the failed clone's counts are gone
}

TEST_CASE("clone: within a copy, each counts its own", "[nn][clone]") {
  const Nested a;
  const Nested b = clone(a);
  CHECK(b.a.weight.id() != a.a.weight.id());
  CHECK_SAME_BITS(b.a.weight, a.a.weight);
  CHECK(b.hidden->weight.id() != a.hidden->weight.id());
}

TEST_CASE("clone: kinds, flags and plain fields", "[nn][clone]") {
  Kinds a;
  a.training = false;
  a.parameter.requires_grad_(false);
  const Kinds b = clone(a);
  CHECK(b.parameter.id() != a.parameter.id());
  CHECK(b.buffer.id() != a.buffer.id());
  CHECK(b.tensor.id() != a.tensor.id());
  CHECK(!b.parameter.requires_grad());
  CHECK(!b.training);
  a.parameter.requires_grad_();
  a.parameter.sum().backward();
  CHECK_FALSE(clone(a).parameter.grad().defined());
}

}  // namespace braid::test::on_device

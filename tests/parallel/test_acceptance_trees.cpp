// Acceptance: arguments and outputs of every shape.
#include <braid/parallel/data_parallel.hpp>

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "acceptance.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::data_parallel;
using parallel::DataParallel;

namespace {

/// PyTorch's keyword arguments are the fields of a struct.
struct Keywords {
  Tensor var3;  // undefined: None
  BRAID_FIELDS(var3)
};
struct MultipleInput : nn::Module {
  Tensor operator()(const Tensor& var1, const Tensor& var2, double float1,
                    const Keywords& keywords = {}) const {
    const Tensor product = var1 * var2;
    return (keywords.var3.defined() ? product + keywords.var3 : product) * float1;
  }
  BRAID_FIELDS()
};

using Ordered = std::map<std::string, std::vector<Tensor>>;
struct Named {
  Tensor a;
  std::vector<Tensor> b;
  BRAID_FIELDS(a, b)
};
/// PyTorch's list of unlike things is a tuple here; then the containers that Python has not.
using Inner = std::tuple<Tensor, Tensor, std::vector<Tensor>>;
using Others = std::tuple<std::deque<Tensor>, std::array<Tensor, 2>, std::pair<Tensor, Tensor>,
                          std::optional<Tensor>, std::unordered_map<std::string, Tensor>>;
using Nested = std::tuple<std::vector<Tensor>, Inner, Tensor, Ordered, Named, Others>;
Nested nested(const Tensor& x) {
  const Others others{{x, sin(x)}, {x, cos(x)}, {sin(x), x}, x + 2.0, {{"hashed", cos(x)}}};
  return {std::vector<Tensor>{x},
          Inner{sin(x), cos(x), {x + 1.0}},
          x,
          Ordered{{"b", {sin(x)}}, {"a", {x}}},
          Named{x, {sin(x)}},
          others};
}
struct NestedOutput : nn::Module {
  Nested operator()(const Tensor& x) const { return nested(x); }
  BRAID_FIELDS()
};

using Nest = std::tuple<Tensor, std::tuple<Tensor, Tensor>, Tensor>;
/// Picks input[1][0], of three arguments or of one.
struct Picks : nn::Module {
  Tensor operator()(const Tensor&, const std::tuple<Tensor, Tensor>& second, const Tensor&) const {
    return std::get<0>(second);
  }
  Tensor operator()(const Nest& input) const { return std::get<0>(std::get<1>(input)); }
  BRAID_FIELDS()
};

/// What the module below is called with.
struct Keyword {
  Tensor input;
  BRAID_FIELDS(input)
};
template <class Unused> struct WithUnused {
  Tensor data;
  Unused unused;
  BRAID_FIELDS(data, unused)
};
using List = std::vector<Tensor>;
using Map = std::map<std::string, Tensor>;

Tensor data_of(const Keyword& input) { return input.input; }
template <class Unused> Tensor data_of(const WithUnused<Unused>& input) { return input.data; }
Tensor data_of(const std::map<std::string, List>& input) { return input.at("data").at(0); }
Tensor data_of(const std::map<std::string, Map>& input) { return input.at("data").at("0"); }

template <class Input> struct Net : nn::Module {
  nn::Linear l;
  explicit Net(nn::Linear layer) : l(std::move(layer)) {}
  Tensor operator()(const Input& input) const { return l(data_of(input)); }
  BRAID_FIELDS(l)
};

/// For float, double and half: a layer, called through DataParallel by call(layer, x), gives what
/// it gives alone.
template <class Call> void check_types(Call call) {
  for (const auto& [type, tol] :
       {std::pair{DType::float32, 1e-5}, {DType::float64, 1e-5}, {DType::float16, 1e-2}}) {
    INFO(type);
    nn::Linear layer = home(nn::Linear(10, 5));
    to(layer, type);
    const Tensor x = random_tensor({20, 10}, type);
    const Tensor expected = layer(x), output = call(layer, x);
    CHECK(output.device() == device(0));
    CHECK(output.dtype() == type);
    CHECK_CLOSE(output, expected, (Tolerance{0, tol}));
  }
}
/// The same with what make(x) makes of the input.
template <class Make> void check_input(Make make) {
  using Input = decltype(make(Tensor()));
  check_types([&](const nn::Linear& layer, const Tensor& x) {
    return DataParallel(Net<Input>(clone(layer)))(make(x));
  });
}

}  // namespace

TEST_CASE("T07: several arguments, by position and by name, on the host",
          "[parallel][acceptance]") {
  const auto leaf = [](std::uint64_t seed) {
    return random_tensor({5, 5}, DType::float32, host(), seed);
  };
  const Tensor var1 = leaf(1).requires_grad_(), var2 = leaf(2).requires_grad_(), var3 = leaf(3);
  const double float1 = -0.75;
  const MultipleInput plain;
  for (const bool with_var3 : {false, true}) {
    const Keywords keywords{with_var3 ? var3 : Tensor()};
    const Tensor expected = plain(var1, var2, float1, keywords);
    const std::vector<Tensor> gradients = grad(expected.sum(), {var1, var2});
    const auto check_output = [&](const Tensor& output, Device on) {
      CHECK(output.device() == on);
      CHECK_CLOSE(output, expected, tolerance(DType::float32));
      var1.set_grad({});
      var2.set_grad({});
      output.sum().backward();
      CHECK(var1.grad().device() == host());
      CHECK_CLOSE(var1.grad(), gradients[0], tolerance(DType::float32));
      CHECK_CLOSE(var2.grad(), gradients[1], tolerance(DType::float32));
    };
    for (const std::vector<Device>& ids : orders()) {
      const DataParallel model(MultipleInput{}, ids);
      check_output(model(var1, var2, float1, keywords), ids.front());
      check_output(data_parallel(plain, std::tuple(var1, var2, float1, keywords), ids),
                   ids.front());
      if (with_var3) continue;
      check_output(model(var1, var2, float1), ids.front());
      check_output(data_parallel(plain, std::tuple(var1, var2, float1), ids), ids.front());
    }
    check_output(DataParallel(MultipleInput{})(var1, var2, float1, keywords), device(0));
  }
}

TEST_CASE("T14: a nested output keeps its values and its containers", "[parallel][acceptance]") {
  const Tensor x = random_tensor({2, 2}, DType::float32, device(device_count() > 1 ? 1 : 0));
  const std::vector<Tensor> expected = tree::leaves(nested(x));
  for (const std::vector<Device>& ids : orders()) {
    const auto output = data_parallel(NestedOutput{}, x, ids);
    static_assert(std::same_as<std::remove_const_t<decltype(output)>, Nested>);
    static_assert(std::same_as<decltype(DataParallel(NestedOutput{}, ids)(x)), Nested>);
    const auto& [list, inner, tensor, ordered, named, others] = output;
    CHECK(list.size() == 1);
    CHECK(std::get<2>(inner).size() == 1);
    REQUIRE(ordered.size() == 2);
    CHECK(ordered.at("a").size() == 1);
    CHECK(ordered.at("b").size() == 1);
    CHECK(named.b.size() == 1);
    CHECK(std::get<0>(others).size() == 2);
    CHECK(std::get<3>(others).has_value());
    CHECK(std::get<4>(others).count("hashed") == 1);
    for (const Nested& each : {output, DataParallel(NestedOutput{}, ids)(x)}) {
      const std::vector<Tensor> leaves = tree::leaves(each);
      REQUIRE(leaves.size() == expected.size());
      for (std::size_t k = 0; k < leaves.size(); ++k) {
        CHECK(leaves[k].device() == ids.front());
        CHECK_CLOSE(leaves[k], expected[k], tolerance(DType::float32));
      }
    }
  }
}

TEST_CASE("T15: a nested input reaches every replica nested", "[parallel][acceptance]") {
  const Tensor i = random_tensor({20, 3}, DType::float32, device(device_count() > 1 ? 1 : 0));
  const Nest input{cos(i), {sin(i), i}, sin(i)};
  const Tensor expected = Picks{}(input);
  for (const std::vector<Device>& ids : orders()) {
    const DataParallel model(Picks{}, ids);
    for (const Tensor& output :
         {data_parallel(Picks{}, input, ids), data_parallel(Picks{}, std::make_tuple(input), ids),
          model(std::get<0>(input), std::get<1>(input), std::get<2>(input)), model(input)}) {
      CHECK(output.device() == ids.front());
      CHECK_SAME_BITS(output, expected);
    }
  }
}

TEST_CASE("T32: a plain call, in float, double and half", "[parallel][acceptance]") {
  check_types(
      [](const nn::Linear& layer, const Tensor& x) { return DataParallel(clone(layer))(x); });
}

TEST_CASE("T33: keyword arguments only, in float, double and half", "[parallel][acceptance]") {
  check_input([](const Tensor& x) { return Keyword{x}; });
}

TEST_CASE("T34: a keyword map with an unused empty list, in float, double and half",
          "[parallel][acceptance]") {
  check_input([](const Tensor& x) { return WithUnused<List>{x, {}}; });
  check_input([](const Tensor& x) {
    return std::map<std::string, List>{{"data", List{x}}, {"unused", List{}}};
  });
}

TEST_CASE("T35: a keyword map with an unused empty map, in float, double and half",
          "[parallel][acceptance]") {
  check_input([](const Tensor& x) { return WithUnused<Map>{x, {}}; });
  check_input([](const Tensor& x) {
    return std::map<std::string, Map>{{"data", Map{{"0", x}}}, {"unused", Map{}}};
  });
}

TEST_CASE("T36: a keyword map with an unused empty tuple, in float, double and half",
          "[parallel][acceptance]") {
  check_input([](const Tensor& x) { return WithUnused<std::tuple<>>{x, {}}; });
}

}  // namespace braid::test::on_device

// Arguments and outputs of every structure.
#include <deque>
#include <unordered_map>

#include "group.hpp"

namespace braid::test::on_device {

namespace {

using List = std::vector<Tensor>;
using Map = std::map<std::string, Tensor>;

/// PyTorch's keyword arguments are the fields of a struct.
struct Keywords {
  Tensor var3;  // undefined: None
  std::vector<std::tuple<Tensor, Tensor>> pairs;
  std::optional<Tensor> c;
  double factor = 1;
  BRAID_FIELDS(var3, pairs, c, factor)
};
struct MultipleInput : nn::Module {
  using Output = std::tuple<Tensor, List>;
  nn::Linear fc{5, 5};
  Output operator()(const Tensor& var1, const Tensor& var2, const Tensor& scale, double float1,
                    const Keywords& more = {}) const {
    Tensor y = fc(var1 * var2) * scale;
    if (more.var3.defined()) y = y + more.var3;
    for (const auto& pair : more.pairs) y = y + std::get<1>(pair).sum(Shape{1}, true) * more.factor;
    y = y * float1;
    return {y, {more.c ? y + *more.c : y, y * 2.0}};
  }
  BRAID_FIELDS(fc)
};

using Ordered = std::map<std::string, List>;
struct Named {
  Tensor a;
  List b;
  BRAID_FIELDS(a, b)
};
/// PyTorch's heterogeneous list is a tuple here; then the containers that Python does not have.
using Inner = std::tuple<Tensor, Tensor, List>;
using Others = std::tuple<std::deque<Tensor>, std::array<Tensor, 2>, std::pair<Tensor, Tensor>,
                          std::optional<Tensor>, std::unordered_map<std::string, Tensor>>;
using Nested = std::tuple<List, Inner, Tensor, Ordered, Named, Others>;
Nested nested(const Tensor& x) {
  const Others others{{x, sin(x)}, {x, cos(x)}, {sin(x), x}, x + 2.0, {{"hashed", cos(x)}}};
  return {List{x},
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
/// Returns input[1][0]; called with three arguments or with one tuple.
struct Picks : nn::Module {
  Tensor operator()(const Tensor&, const std::tuple<Tensor, Tensor>& second, const Tensor&) const {
    return std::get<0>(second);
  }
  Tensor operator()(const Nest& input) const { return std::get<0>(std::get<1>(input)); }
  BRAID_FIELDS()
};

/// Arguments of the module below.
struct Keyword {
  Tensor input;
  BRAID_FIELDS(input)
};
template <class Unused> struct WithUnused {
  Tensor data;
  Unused unused;
  BRAID_FIELDS(data, unused)
};

Tensor data_of(const Keyword& input) { return input.input; }
template <class Unused> Tensor data_of(const WithUnused<Unused>& input) { return input.data; }
Tensor data_of(const std::map<std::string, List>& input) { return input.at("data").at(0); }
Tensor data_of(const std::map<std::string, Map>& input) { return input.at("data").at("0"); }

template <class Input> struct OfInput : nn::Module {
  nn::Linear l;
  explicit OfInput(nn::Linear layer) : l(std::move(layer)) {}
  Tensor operator()(const Input& input) const { return l(data_of(input)); }
  BRAID_FIELDS(l)
};

/// Checks for float, double and half that a layer called through DataParallel by call(layer, x)
/// gives the same result as alone.
void check_types(const std::function<Tensor(const nn::Linear&, const Tensor&)>& call) {
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
/// The same for the input make(x).
template <class Make> void check_input(Make make) {
  check_types([&](const nn::Linear& layer, const Tensor& x) {
    return DataParallel(OfInput<decltype(make(x))>(clone(layer)))(make(x));
  });
}

}  // namespace

ACCEPTANCE("T07: several arguments, by position and by name, on the host") {
  const double float1 = -0.75;
  const auto loss = [](const MultipleInput::Output& y) {
    return std::get<1>(y)[0].sum() + (std::get<0>(y) * std::get<1>(y)[1]).sum();
  };
  for (const DType type : {DType::float32, DType::float64})
    for (const std::int64_t batch : {1, 5, 16})
      for (const Device from : {host(), device(device_count() - 1)}) {
        MultipleInput plain = home(MultipleInput{});
        to(plain, type);
        const Tolerance close =
            type == DType::float32 ? Tolerance{1e-4, 1e-4} : Tolerance{1e-10, 1e-11};
        const auto leaf = [&](const Sizes& shape, std::uint64_t seed) {
          return random_tensor(shape, type, from, seed).requires_grad_();
        };
        const Tensor var1 = leaf({batch, 5}, 1), var2 = leaf({batch, 5}, 2), scale = leaf({}, 3),
                     var3 = leaf({batch, 5}, 4), c = leaf({batch, 5}, 5), d = leaf({batch, 2}, 6);
        const auto at_home = [](const Tensor& t) { return t.to(device(0)); };
        for (const bool named : {false, true}) {
          Keywords more, more_at_home;
          if (named) {
            more = {var3, {{var1, d}}, c, 0.5};
            more_at_home = {at_home(var3), {{at_home(var1), at_home(d)}}, at_home(c), 0.5};
          }
          const auto gradients = [&](const MultipleInput::Output& y, const MultipleInput& module) {
            const List leaves{var1, var2, scale, var3, c, d, module.fc.weight, module.fc.bias};
            return grad(List{loss(y)}, leaves, {}, true, false, true);
          };
          const auto expected =
              plain(at_home(var1), at_home(var2), at_home(scale), float1, more_at_home);
          const List expected_gradients = gradients(expected, plain);
          for (const std::vector<Device>& ids : orders()) {
            const DataParallel model(placed_on(clone(plain), ids.front()), ids);
            std::vector<MultipleInput::Output> outputs{
                model(var1, var2, scale, float1, more),
                data_parallel(model.module, std::tuple(var1, var2, scale, float1, more), ids)};
            if (!named) {
              outputs.push_back(model(var1, var2, scale, float1));
              outputs.push_back(
                  data_parallel(model.module, std::tuple(var1, var2, scale, float1), ids));
            }
            for (const MultipleInput::Output& output : outputs) {
              CHECK(std::get<0>(output).device() == ids.front());
              check_close(tree::leaves(output), tree::leaves(expected), close);
              const List got = gradients(output, model.module);
              for (std::size_t k = 0; k < got.size(); ++k) {
                CHECK(got[k].defined() == expected_gradients[k].defined());
                if (!got[k].defined()) continue;
                CHECK(got[k].device() == (k < 6 ? from : ids.front()));
                CHECK_CLOSE(got[k], expected_gradients[k], close);
              }
            }
          }
        }
      }
}

ACCEPTANCE("T14: a nested output keeps its values and its containers") {
  const Tensor x = random_tensor({2, 2}, DType::float32, device(up_to(2) - 1));
  const List expected = tree::leaves(nested(x));
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
      check_close(tree::leaves(each), expected, tolerance(DType::float32));
      for (const Tensor& leaf : tree::leaves(each)) CHECK(leaf.device() == ids.front());
    }
  }
}

ACCEPTANCE("T15: a nested input reaches every replica nested") {
  const Tensor i = random_tensor({20, 3}, DType::float32, device(up_to(2) - 1));
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

ACCEPTANCE("T32: a plain call, in float, double and half") {
  check_types(
      [](const nn::Linear& layer, const Tensor& x) { return DataParallel(clone(layer))(x); });
}

ACCEPTANCE("T33: keyword arguments only, in float, double and half") {
  check_input([](const Tensor& x) { return Keyword{x}; });
}

ACCEPTANCE("T34: a keyword map with an unused empty list, in float, double and half") {
  check_input([](const Tensor& x) { return WithUnused<List>{x, {}}; });
  check_input([](const Tensor& x) {
    return std::map<std::string, List>{{"data", List{x}}, {"unused", List{}}};
  });
}

ACCEPTANCE("T35: a keyword map with an unused empty map, in float, double and half") {
  check_input([](const Tensor& x) { return WithUnused<Map>{x, {}}; });
  check_input([](const Tensor& x) {
    return std::map<std::string, Map>{{"data", Map{{"0", x}}}, {"unused", Map{}}};
  });
}

ACCEPTANCE("T36: a keyword map with an unused empty tuple, in float, double and half") {
  check_input([](const Tensor& x) { return WithUnused<std::tuple<>>{x, {}}; });
}

}  // namespace braid::test::on_device

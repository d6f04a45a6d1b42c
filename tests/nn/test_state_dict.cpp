// state_dict and load_state_dict: contents, ties, the strong guarantee, prefixes.
#include <algorithm>
#include <map>

#include <braid/braid.hpp>

#include "layer_here.hpp"
#include "support/errors.hpp"
#include "trees.hpp"

namespace braid::test::on_device {
namespace {

struct Model : nn::Module {
  nn::Linear a = layer(2, 3), b = layer(3, 2);
  nn::Buffer mean{zeros({3})};
  Tensor mask = ones({3});
  BRAID_FIELDS(a, b, mean, mask)
};

struct Statistics {
  Tensor mean = zeros({2}), squares = zeros({2});
  BRAID_FIELDS(mean, squares)
};

struct Wrapper : nn::Module {
  Model module;
  BRAID_FIELDS(module)
};

template <class M> bool unchanged(const M& m, const StateDict& before) {
  const StateDict now = state_dict(m);
  return keys(now) == keys(before) && std::all_of(before.begin(), before.end(), [&](const auto& e) {
           return test::same_bits(now.at(e.first), e.second).empty();
         });
}

}  // namespace

TEST_CASE("StateDict: an ordered map", "[nn][state]") {
  StateDict dict{{"b", ones({1})}, {"a", zeros({1})}};
  CHECK(keys(dict) == Names{"b", "a"});
  dict.set("c", ones({3}));
  dict.set("b", ones({2}));
  CHECK(keys(dict) == Names{"b", "a", "c"});
  CHECK(dict.at("b").shape() == Shape{2});
  CHECK(dict.contains("a"));
  CHECK(!dict.contains("d"));
  CHECK(dict.find("d") == nullptr);
  CHECK(dict.erase("b"));
  CHECK(!dict.erase("b"));
  CHECK(keys(dict) == Names{"a", "c"});
  CHECK(dict.at("c").shape() == Shape{3});
  dict.set("d", ones({4}));
  CHECK(dict.erase("c"));
  CHECK(dict.at("d").shape() == Shape{4});
  CHECK(dict.size() == 2);
  CHECK_THROWS_TEXT(ArgumentError, "StateDict: expected one of its 2 names, got 'x'", dict.at("x"));
  CHECK_THROWS_TEXT(ArgumentError, "StateDict: expected every name once, got 'a' twice",
                    StateDict{{"a", {}}, {"a", {}}});
}

TEST_CASE("state_dict: parameters and buffers, in order, sharing their numbers, without history",
          "[nn][state]") {
  const Model m;
  const StateDict dict = state_dict(m);
  CHECK(keys(dict) == Names{"a.weight", "a.bias", "b.weight", "b.bias", "mean"});
  for (const auto& [key, t] : dict) CHECK_FALSE(t.requires_grad());
  CHECK(dict.at("a.weight").storage() == m.a.weight.storage());
  CHECK(keys(state_dict(Wrapper())) == Names{"module.a.weight", "module.a.bias", "module.b.weight",
                                             "module.b.bias", "module.mean"});
  CHECK(keys(state_dict(nn::Linear(1, 1, {.bias = false}))) == Names{"weight"});
  const Tied t;
  const StateDict tied = state_dict(t);
  CHECK(keys(tied) == Names{"a.weight", "a.bias", "b.weight", "b.bias"});
  CHECK(tied.at("a.weight").storage() == tied.at("b.weight").storage());
}

TEST_CASE("state_dict: two paths that are equal are refused", "[nn][state][errors]") {
  struct Clash : nn::Module {
    std::map<std::string, nn::Linear> heads{{"a", nn::Linear(1, 1)},
                                            {"a.weight", nn::Linear(1, 1)}};
    std::map<std::string, nn::Parameter> odd{{"x", nn::Parameter(ones({1}))}};
    BRAID_FIELDS(heads, odd)
  };
  CHECK(state_dict(Clash()).size() == 5);
  const std::tuple<nn::Parameter, std::map<std::string, nn::Parameter>> none{
      nn::Parameter(ones({1})), {}};
  CHECK(state_dict(none).size() == 1);
  std::map<std::string, std::map<std::string, nn::Parameter>> clash;
  clash["a"]["b.c"] = nn::Parameter(ones({1}));
  clash["a.b"]["c"] = nn::Parameter(ones({1}));
  CHECK_THROWS_TEXT(ArgumentError, "StateDict: expected every name once, got 'a.b.c' twice",
                    state_dict(clash));
}

TEST_CASE("state_dict: a tree of plain tensors is saved on request, else it is an error",
          "[nn][state][errors]") {
  Statistics s;
  s.mean = ones({2}) * 3.0;
  const std::string text =
      "state_dict: expected parameters or buffers in Statistics, got plain tensors alone: declare "
      "them as nn::Parameter or nn::Buffer, or ask for them with {.tensors = true}";
  CHECK_THROWS_TEXT(ArgumentError, text, (void)state_dict(s));
  CHECK_THROWS_TEXT(ArgumentError, "load_" + text, load_state_dict(s, StateDict()));
  CHECK_THROWS_TEXT(ArgumentError, "state_dict: expected *in vector*",
                    (void)state_dict(std::vector<Tensor>{ones({1})}));
  const StateDict dict = copied(state_dict(s, {.tensors = true}));
  CHECK(keys(dict) == Names{"mean", "squares"});
  Statistics t;
  const TensorImpl* id = t.mean.id();
  CHECK(load_state_dict(t, dict, {.tensors = true}).loaded == 2);
  CHECK(t.mean.to_vector<double>() == std::vector<double>{3, 3});
  CHECK(t.mean.id() == id);
  CHECK(keys(state_dict(Model(), {.tensors = true})).back() == "mask");
  CHECK(state_dict(nn::ReLU()).empty());  // no parameters and no tensors: not an error
  CHECK(state_dict(Statistics{{}, {}}).empty());
}

TEST_CASE("load_state_dict: writes into the tensors there are", "[nn][state]") {
  Model m;
  const Model other;
  const std::vector<Tensor> handles = parameters(m);
  const TensorImpl* id = m.a.weight.id();
  const std::uint64_t version = m.a.weight.version();
  const LoadReport report = load_state_dict(m, state_dict(other));
  CHECK(report.loaded == 5);
  CHECK(report.stripped.empty());
  CHECK(report.added.empty());
  CHECK(m.a.weight.id() == id);
  CHECK(m.a.weight.version() > version);
  CHECK(m.a.weight.requires_grad());
  CHECK(m.a.weight.storage() != other.a.weight.storage());
  CHECK(unchanged(m, state_dict(other)));
  CHECK_SAME_BITS(handles[0], other.a.weight);
}

TEST_CASE("load_state_dict: from another device, another layout, a vector of pairs",
          "[nn][state]") {
  Model m;
  const Model other;
  std::vector<std::pair<std::string, Tensor>> pairs;
  for (const auto& [key, t] : state_dict(other))
    pairs.emplace_back(key, t.dim() == 2 ? t.t().to(there()).contiguous().t() : t.to(there()));
  load_state_dict(m, pairs);
  CHECK(m.a.weight.device() == here());
  CHECK(unchanged(m, state_dict(other)));
  to(m, there());
  load_state_dict(m, state_dict(Model(other)));
  CHECK(m.a.weight.device() == there());
}

TEST_CASE("load_state_dict: ties and optimizers stay right", "[nn][state][tie]") {
  Tied t;
  const Tied other;
  optim::SGD sgd(parameters(t), {.lr = 1});
  CHECK(load_state_dict(t, state_dict(other)).loaded == 4);
  CHECK(t.a.weight.id() == t.b.weight.id());
  CHECK_SAME_BITS(t.a.weight, other.a.weight);
  t.b.weight.sum().backward();
  sgd.step();
  const std::vector<double> before = other.a.weight.to_vector<double>(),
                            after = t.a.weight.to_vector<double>();
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] == Approx(before[i] - 1));
  Tied untied_source;
  StateDict dict = copied(state_dict(untied_source));
  dict.set("b.weight", full({3, 3}, 4.0));
  load_state_dict(t, dict);  // two values for one tensor: that of the later field wins
  CHECK(t.a.weight.to_vector<double>() == std::vector<double>(9, 4));
}

TEST_CASE("load_state_dict: of the model's own dict, and with its tensors exchanged",
          "[nn][state]") {
  Tied pair;  // a.bias and b.bias have the same shape
  const StateDict own = state_dict(pair), before = copied(own);
  CHECK(load_state_dict(pair, own).loaded == 4);
  CHECK(unchanged(pair, before));
  load_state_dict(pair, StateDict{{"a.weight", own.at("a.weight")},
                                  {"a.bias", own.at("b.bias")},
                                  {"b.weight", own.at("b.weight")},
                                  {"b.bias", own.at("a.bias")}});
  CHECK_SAME_BITS(pair.a.bias, before.at("b.bias"));
  CHECK_SAME_BITS(pair.b.bias, before.at("a.bias"));
}

TEST_CASE("load_state_dict: every wrong key is reported at once, and nothing is changed",
          "[nn][state][errors]") {
  Model m;
  const StateDict before = copied(state_dict(m));
  StateDict dict = copied(state_dict(Model()));
  dict.erase("a.bias");
  dict.erase("mean");
  dict.set("c.weight", ones({1}));
  dict.set("c.bias", ones({1}));
  dict.set("a.weight", ones({2, 3}));
  dict.set("b.bias", ones({2}, {.dtype = DType::float64}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "load_state_dict: expected the 5 keys of Model, got 2 missing, 2 unexpected, 2 "
                    "that do not fit\n"
                    "  missing: a.bias, mean\n"
                    "  unexpected: c.weight, c.bias\n"
                    "  a.weight: expected shape [3, 2], got [2, 3]\n"
                    "  b.bias: expected float32, got float64",
                    load_state_dict(m, dict));
  CHECK(unchanged(m, before));

  dict = copied(state_dict(Model()));
  dict.set("b.bias", {});
  CHECK_THROWS_TEXT(ArgumentError, "b.bias: expected a tensor, got an undefined one",
                    load_state_dict(m, dict));
  std::vector<std::pair<std::string, Tensor>> twice;
  for (const auto& e : state_dict(Model())) twice.push_back(e);
  twice.emplace_back("mean", ones({3}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "0 missing, 0 unexpected, 1 that do not fit\n  mean: expected once, got twice",
                    load_state_dict(m, twice));
  CHECK_THROWS_TEXT(ArgumentError, "5 missing", load_state_dict(m, StateDict()));
  CHECK(unchanged(m, before));
}

TEST_CASE("load_state_dict: not strict reports keys, but shapes must fit", "[nn][state]") {
  Model m;
  const StateDict before = copied(state_dict(m));
  StateDict dict{{"mean", full({3}, 2.0)}, {"other", ones({1})}};
  const LoadReport report = load_state_dict(m, dict, {.strict = false});
  CHECK(report.loaded == 1);
  CHECK(report.missing == Names{"a.weight", "a.bias", "b.weight", "b.bias"});
  CHECK(report.unexpected == Names{"other"});
  CHECK(m.mean.to_vector<double>() == std::vector<double>{2, 2, 2});
  CHECK_SAME_BITS(m.a.weight, before.at("a.weight"));
  dict.set("a.bias", ones({4}));
  dict.set("mean", full({3}, 9.0));
  CHECK_THROWS_TEXT(ArgumentError, "a.bias: expected shape [3], got [4]",
                    load_state_dict(m, dict, {.strict = false}));
  CHECK(m.mean.to_vector<double>() == std::vector<double>{2, 2, 2});
}

TEST_CASE(
    "load_state_dict: takes the prefix `module.` off or puts it on where all keys differ by it",
    "[nn][state]") {
  Model plain;
  Wrapper wrapped;
  const StateDict plain_dict = copied(state_dict(plain)),
                  wrapped_dict = copied(state_dict(wrapped));
  const LoadReport stripped = load_state_dict(plain, wrapped_dict);
  CHECK(stripped.stripped == "module.");
  CHECK(stripped.added.empty());
  CHECK_SAME_BITS(plain.a.weight, wrapped_dict.at("module.a.weight"));
  const LoadReport added = load_state_dict(wrapped, plain_dict);
  CHECK(added.added == "module.");
  CHECK(added.loaded == 5);
  CHECK_SAME_BITS(wrapped.module.a.weight, plain_dict.at("a.weight"));
  CHECK(load_state_dict(wrapped, wrapped_dict).stripped.empty());
  CHECK_THROWS_TEXT(ArgumentError, "got 5 missing, 5 unexpected",
                    load_state_dict(plain, wrapped_dict, {.strip_prefix = StripPrefix::never}));
  StateDict mixed = wrapped_dict;
  mixed.erase("module.mean");
  CHECK_THROWS_TEXT(ArgumentError,
                    "got 1 missing, 0 unexpected, 0 that do not fit (after 'module.' was taken off "
                    "the dict's keys)\n  missing: mean",
                    load_state_dict(plain, mixed));
  mixed.set("mean", ones({3}));
  CHECK_THROWS_TEXT(ArgumentError, "got 4 missing, 4 unexpected", load_state_dict(plain, mixed));
}

TEST_CASE("load_state_dict: a failure while copying from another device changes nothing",
          "[nn][state][errors]") {
  Model m;
  const StateDict before = copied(state_dict(m));
  Model other;
  to(other, there());
  const Device first = here();
  for (std::uint64_t k = 1; k <= 5; ++k) {
    INFO(k);
    fail_allocation(first, k);
    CHECK_THROWS_AS(load_state_dict(m, state_dict(other)), OutOfMemoryError);
    fail_allocation(first, 0);
    CHECK(unchanged(m, before));
  }
  CHECK(load_state_dict(m, state_dict(other)).loaded == 5);
}

}  // namespace braid::test::on_device

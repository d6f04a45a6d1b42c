// Printing of models, as PyTorch prints nested modules.
#include <map>

#include <braid/braid.hpp>

#include "support/check.hpp"

using namespace braid;

namespace {

struct Model : nn::Module {
  nn::Linear fc;
  Model(std::int64_t in, std::int64_t out) : fc(in, out) {}
  BRAID_FIELDS(fc)
};

struct Wrapper : nn::Module {
  Model module;
  explicit Wrapper(Model m) : module(std::move(m)) {}
  BRAID_FIELDS(module)
};

/// Not a module itself, but it contains a module.
struct Parts {
  nn::ReLU act;
  BRAID_FIELDS(act)
};
struct Statistics {
  Tensor mean;
  BRAID_FIELDS(mean)
};

struct Everything : nn::Module {
  Parts parts;
  Statistics statistics;
  nn::Sequential<nn::Linear, nn::ReLU> net{nn::Linear(2, 3), nn::ReLU()};
  std::vector<nn::Linear> blocks{nn::Linear(2, 2), nn::Linear(2, 2), nn::Linear(2, 3),
                                 nn::Linear(2, 2)};
  std::map<std::string, nn::Linear> heads{{"left", nn::Linear(1, 1, {.bias = false})}};
  std::optional<nn::Flatten> some = nn::Flatten(), none;
  std::pair<Tensor, nn::Embedding> pair{{}, nn::Embedding(5, 2)};
  nn::Parameter weight{ones({2})};
  Tensor mask;
  [[nodiscard]] std::string extra() const { return "width=2\ndepth=4"; }
  BRAID_FIELDS(parts, statistics, net, blocks, heads, some, none, pair, weight, mask)
};

struct Bare : nn::Module {
  nn::Parameter w{ones({1})};
  BRAID_FIELDS(w)
};

}  // namespace

TEST_CASE("print: a model, byte by byte", "[nn][print]") {
  CHECK(str(Model(5, 2)) == "Model(\n  (fc): Linear(in_features=5, out_features=2, bias=true)\n)");
  CHECK(str(Wrapper(Model(5, 2))) ==
        "Wrapper(\n  (module): Model(\n    (fc): Linear(in_features=5, out_features=2, "
        "bias=true)\n  )\n)");
  CHECK(str(Bare()) == "Bare()");
}

TEST_CASE("print: layers", "[nn][print]") {
  CHECK(str(nn::Linear(3, 4, {.bias = false})) ==
        "Linear(in_features=3, out_features=4, bias=false)");
  CHECK(str(nn::Embedding(1000, 10)) == "Embedding(1000, 10)");
  CHECK(str(nn::ReLU()) == "ReLU()");
  CHECK(str(nn::Tanh(), nn::Sigmoid(), nn::Identity()) == "Tanh()Sigmoid()Identity()");
  CHECK(str(nn::GELU(), nn::GELU("tanh")) == "GELU(approximate='none')GELU(approximate='tanh')");
  CHECK(str(nn::Softplus()) == "Softplus(beta=1.0, threshold=20.0)");
  CHECK(str(nn::ELU(), nn::CELU(0.5), nn::ELU(1e-5)) ==
        "ELU(alpha=1.0)CELU(alpha=0.5)ELU(alpha=1e-05)");
  CHECK(str(nn::LeakyReLU(), nn::LeakyReLU(0.2)) ==
        "LeakyReLU(negative_slope=0.01)LeakyReLU(negative_slope=0.2)");
  CHECK(str(nn::Hardtanh(), nn::Hardtanh(-2.5, 1e16)) ==
        "Hardtanh(min_val=-1.0, max_val=1.0)Hardtanh(min_val=-2.5, max_val=1e+16)");
  CHECK(str(nn::SiLU(), nn::SELU(), nn::ReLU6(), nn::Hardsigmoid()) ==
        "SiLU()SELU()ReLU6()Hardsigmoid()");
  CHECK(str(nn::Hardswish(), nn::Mish(), nn::LogSigmoid(), nn::Softsign()) ==
        "Hardswish()Mish()LogSigmoid()Softsign()");
  CHECK(str(nn::Softmax()) == "Softmax(dim=-1)");
  CHECK(str(nn::LogSoftmax(1)) == "LogSoftmax(dim=1)");
  CHECK(str(nn::Flatten()) == "Flatten(start_dim=1, end_dim=-1)");
  CHECK(str(nn::Sequential{nn::Linear(2, 3), nn::ReLU()}) ==
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=true)\n  (1): ReLU()\n)");
  CHECK(str(nn::Sequential<>()) == "Sequential()");
}

TEST_CASE("print: containers, structs of modules, several lines of extra", "[nn][print]") {
  CHECK(str(Everything()) == R"(Everything(
  width=2
  depth=4
  (parts): Parts(
    (act): ReLU()
  )
  (net): Sequential(
    (0): Linear(in_features=2, out_features=3, bias=true)
    (1): ReLU()
  )
  (blocks): ModuleList(
    (0-1): 2 x Linear(in_features=2, out_features=2, bias=true)
    (2): Linear(in_features=2, out_features=3, bias=true)
    (3): Linear(in_features=2, out_features=2, bias=true)
  )
  (heads): ModuleDict(
    (left): Linear(in_features=1, out_features=1, bias=false)
  )
  (some): Flatten(start_dim=1, end_dim=-1)
  (pair): ModuleList(
    (1): Embedding(5, 2)
  )
))");
}

TEST_CASE("print: a layer that was moved from", "[nn][print]") {
  nn::Linear linear(2, 3);
  nn::Embedding table(4, 5);
  const nn::Linear taken = std::move(linear);
  const nn::Embedding other = std::move(table);
  CHECK(str(linear) == "Linear(moved from)");
  CHECK(str(table) == "Embedding(moved from)");
  CHECK(str(taken) == "Linear(in_features=2, out_features=3, bias=true)");
}

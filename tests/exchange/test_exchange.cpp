// Nets are trained by Braid and by PyTorch (goldens/exchange, made by goldens/make_exchange.py),
// and their weights are exchanged in safetensors files. On the CPU, in float32. If
// BRAID_EXCHANGE_OUT names a folder, the written files stay there for make_exchange.py --check.
#include <algorithm>
#include <iostream>

#include "exchange/nets.hpp"
#include "support/temporary.hpp"
#include "support/tensors.hpp"
#include "support/tests_dir.hpp"

namespace braid::test::exchange {
namespace {

constexpr double kLossBound = 1e-6, kParameterBound = 1e-5;

std::string golden(const std::string& file) {
  return tests_dir() + "/goldens/exchange/" + file + ".safetensors";
}

/// The output folder: the one that the environment names, or a temporary one.
class Folder {
 public:
  [[nodiscard]] std::string file(const std::string& name) const {
    return (kept_ ? kept_ + ("/" + name) : temporary_ / name) + ".safetensors";
  }

 private:
  TemporaryFolder temporary_;
  const char* kept_ = std::getenv("BRAID_EXCHANGE_OUT");
};

/// Returns the largest |got - want| / max(1, |want|). Integers, names, shapes and dtypes must be
/// equal.
double distance(const StateDict& got, const StateDict& want) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (const auto& [name, expected] : want) {
    INFO(name);
    const Tensor& t = got.at(name);
    REQUIRE(t.dtype() == expected.dtype());
    REQUIRE(t.shape() == expected.shape());
    if (!is_floating(t.dtype())) {
      CHECK(same_bits(t, expected) == "");
      continue;
    }
    const std::vector<double> a = t.to_vector<double>(), b = expected.to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double apart = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
      worst = apart <= worst ? worst : apart;  // keeps a NaN
      if (!(apart <= kParameterBound))
        FAIL_CHECK(name << "[" << i << "]: expected " << b[i] << ", got " << a[i]);
    }
  }
  return worst;
}

template <class Net> void exchange(const std::string& name) {
  const Folder folder;
  const Safetensors run = load_safetensors(golden(name + ".run"));
  const Tensor &x = run.at("x"), &y = run.at("y");

  // Starts from PyTorch's state dict, with its original names.
  Net net;
  const LoadReport report = load_state_dict(net, load_safetensors(golden(name + ".start")).tensors);
  CHECK(report.loaded == state_dict(net).size());
  const std::vector<double> losses = train_on(net, x, y),
                            want = run.at("losses").to_vector<double>();
  REQUIRE(losses.size() == want.size());
  double loss_apart = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    INFO(name << ", step " << i + 1);
    const double apart = std::abs(losses[i] - want[i]) / want[i];
    CHECK(apart <= kLossBound);
    loss_apart = std::max(loss_apart, apart);
  }
  CHECK(losses.back() < losses.front());
  const double moved = distance(state_dict(net), load_safetensors(golden(name + ".end")).tensors);
  eval(net);
  {
    const NoGrad guard;
    const double far = distance({{"outputs", net(x[0])}}, {{"outputs", run.at("outputs")}});
    std::cout << "SHOWS: exchange " << name << ": " << losses.size() << " losses within "
              << loss_apart << " relative of PyTorch's (bound " << kLossBound << "), "
              << parameter_count(net) << " parameters within " << moved
              << ", outputs in evaluation mode within " << far << " (bound " << kParameterBound
              << ")\n";
  }
  save_safetensors(folder.file(name + ".end"), state_dict(net));
  CHECK(distance(load_safetensors(folder.file(name + ".end")).tensors, state_dict(net)) == 0);

  // Also starts from Braid's initial values; make_exchange.py --check repeats this run in PyTorch.
  manual_seed(6);
  Net own;
  save_safetensors(folder.file(name + ".own.start"), state_dict(own));
  const std::vector<double> ours = train_on(own, x, y);
  save_safetensors(folder.file(name + ".own.end"), state_dict(own));
  save_safetensors(folder.file(name + ".own.run"), {{"losses", tensor(ours)}});
}

}  // namespace

TEST_CASE("exchange: a CNN with BatchNorm trains as in PyTorch", "[exchange]") {
  exchange<Cnn>("cnn");
}
TEST_CASE("exchange: an LSTM trains as in PyTorch", "[exchange]") { exchange<Tagger>("lstm"); }
TEST_CASE("exchange: a Transformer trains as in PyTorch", "[exchange]") {
  exchange<Translator>("transformer");
}

TEST_CASE("exchange: a file of the safetensors package, loaded and saved, is the same to the byte",
          "[exchange]") {
  const TemporaryFolder folder;
  for (const char* name :
       {"cnn.start", "cnn.end", "cnn.run", "lstm.start", "lstm.run", "transformer.end"}) {
    INFO(name);
    const Safetensors loaded = load_safetensors(golden(name));
    save_safetensors(folder / "again", loaded.tensors, loaded.metadata);
    CHECK(read_file(folder / "again") == read_file(golden(name)));
  }
}

}  // namespace braid::test::exchange

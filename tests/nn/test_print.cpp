// Printing of models, as PyTorch prints nested modules.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <braid/braid.hpp>

#include "support/check.hpp"
#include "support/tests_dir.hpp"

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

/// The headers of the layers and of their options.
const std::string& headers() {
  static const std::string all = [] {
    const std::filesystem::path root = test::tests_dir() + "/..";
    std::ostringstream text;
    for (const auto& entry : std::filesystem::directory_iterator(root / "nn/include/braid/nn"))
      if (entry.path().extension() == ".hpp") text << std::ifstream(entry.path()).rdbuf();
    for (const char* name : {"conv.hpp", "pool.hpp"})
      text << std::ifstream(root / "core/include/braid/core/ops" / name).rdbuf();
    return text.str();
  }();
  return all;
}

/// What a layer can be constructed with: the declarations of its constructors and its options.
std::string arguments_of(const std::string& layer) {
  const std::string& text = headers();
  std::string found;
  const std::regex constructor("\\n  (explicit )?" + layer + "\\([^;]*;"),
      options("struct " + layer + "Options \\{[^}]*(\\{\\}[^}]*)*\\n\\};");
  for (const std::regex& part : {constructor, options})
    for (std::sregex_iterator at(text.begin(), text.end(), part), end; at != end; ++at)
      found += at->str();
  return found;
}

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
#define BRAID_CHECK_PRINT(Layer, op) CHECK(str(nn::Layer()) == #Layer "()");
  BRAID_ACTIVATION_LAYERS(BRAID_CHECK_PRINT)
  CHECK(str(nn::Softmax()) == "Softmax(dim=-1)");
  CHECK(str(nn::LogSoftmax(1)) == "LogSoftmax(dim=1)");
  CHECK(str(nn::Flatten()) == "Flatten(start_dim=1, end_dim=-1)");
  CHECK(str(nn::Sequential{nn::Linear(2, 3), nn::ReLU()}) ==
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=true)\n  (1): ReLU()\n)");
  CHECK(str(nn::Sequential<>()) == "Sequential()");
}

TEST_CASE("print: a layer is constructed with the names that it prints", "[nn][print]") {
  nn::RNNCellOptions relu{.nonlinearity = nn::Nonlinearity::relu};
  const std::vector<std::string> layers{
      str(nn::Linear(3, 4)),
      str(nn::Embedding(3, 2, {.padding_idx = 1})),
      str(nn::GELU()),
      str(nn::Softplus()),
      str(nn::ELU()),
      str(nn::CELU()),
      str(nn::LeakyReLU()),
      str(nn::Hardtanh()),
      str(nn::Softmax()),
      str(nn::LogSoftmax()),
      str(nn::Flatten()),
      str(nn::Dropout()),
      str(nn::Dropout1d()),
      str(nn::Dropout2d()),
      str(nn::LayerNorm(2)),
      str(nn::RMSNorm(2)),
      str(nn::GroupNorm(1, 2)),
      str(nn::Conv1d(2, 2, 1, {.padding = 1, .dilation = 2, .groups = 2, .bias = false})),
      str(nn::Conv2d(2, 2, 1, {.padding = 1, .dilation = 2, .groups = 2, .bias = false})),
      str(nn::ConvTranspose1d(2, 2, 1, {.stride = 2, .padding = 1, .output_padding = 1})),
      str(nn::ConvTranspose2d(2, 2, 1, {.stride = 2, .padding = 1, .output_padding = 1})),
      str(nn::MaxPool1d(2)),
      str(nn::MaxPool2d(2)),
      str(nn::AvgPool1d(2)),
      str(nn::AvgPool2d(2)),
      str(nn::AdaptiveAvgPool1d(2)),
      str(nn::AdaptiveAvgPool2d(2)),
      str(nn::AdaptiveMaxPool2d(2)),
      str(nn::LSTM(2, 3,
                   {.num_layers = 2,
                    .bias = false,
                    .batch_first = true,
                    .dropout = 0.5,
                    .bidirectional = true})),
      str(nn::RNNCell(2, 3, relu)),
      str(nn::LSTMCell(2, 3, {.bias = false}))};
  static const std::regex printed("(\\w+)=");
  for (const std::string& text : layers) {
    const std::string arguments = arguments_of(text.substr(0, text.find('(')));
    for (std::sregex_iterator at(text.begin(), text.end(), printed), end; at != end; ++at) {
      INFO(text << ": " << (*at)[1].str() << " is no argument in " << arguments);
      CHECK(std::regex_search(arguments, std::regex("\\b" + (*at)[1].str() + "\\b")));
    }
  }
  // Arguments that are printed without their names, and members.
  for (const auto& [layer, names] : std::map<std::string, std::vector<std::string>>{
           {"Embedding", {"num_embeddings", "embedding_dim"}},
           {"LayerNorm", {"normalized_shape"}},
           {"RMSNorm", {"normalized_shape"}},
           {"GroupNorm", {"num_groups", "num_channels"}},
           {"BatchNorm1d", {"num_features"}},
           {"BatchNorm2d", {"num_features"}},
           {"SyncBatchNorm", {"num_features"}},
           {"MultiheadAttention", {"embed_dim", "num_heads"}},
           {"LSTM", {"input_size", "hidden_size"}},
           {"GRU", {"input_size", "hidden_size"}},
           {"RNN", {"input_size", "hidden_size"}},
           {"GRUCell", {"input_size", "hidden_size"}}})
    for (const std::string& name : names) {
      INFO(layer << ", " << name);
      CHECK(std::regex_search(arguments_of(layer), std::regex("\\b" + name + "\\b")));
    }
  const nn::Linear linear(3, 4);
  CHECK((linear.in_features == 3 && linear.out_features == 4));
  const nn::Embedding table(5, 2);
  CHECK((table.num_embeddings == 5 && table.embedding_dim == 2));
  const nn::Conv2d conv(2, 3, {4, 5});
  CHECK((conv.in_channels == 2 && conv.out_channels == 3 && conv.kernel_size == Size2(4, 5)));
  const nn::ConvTranspose1d up(2, 3, 4);
  CHECK((up.in_channels == 2 && up.out_channels == 3 && up.kernel_size == 4));
  const nn::LSTMCell cell(2, 3);
  CHECK((cell.input_size == 2 && cell.hidden_size == 3));
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

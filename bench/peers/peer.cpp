// PyTorch's C++ interface (LibTorch) as a peer: a server on stdin and stdout, like peer.py.
// README.md describes the protocol. setup.sh compiles it against the headers and libraries of the
// wheel.
#include <sched.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

// ---- the common formulas: rows.py has the same -------------------------------------------------
double uniform_at(std::uint64_t seed, std::uint64_t index) {
  std::uint32_t h = static_cast<std::uint32_t>(index + seed * 0x9E3779B9u);
  h = (h ^ (h >> 16)) * 0x7FEB352Du;
  h = (h ^ (h >> 15)) * 0x846CA68Bu;
  h ^= h >> 16;
  return static_cast<double>(h >> 8) * 0x1p-23 - 1.0;
}

torch::Tensor uniform(std::vector<std::int64_t> shape, std::uint64_t seed, double scale = 1.0) {
  torch::Tensor t = torch::empty(shape);
  float* p = t.data_ptr<float>();
  for (std::int64_t i = 0; i < t.numel(); ++i)
    p[i] = static_cast<float>(uniform_at(seed, static_cast<std::uint64_t>(i)) * scale);
  return t;
}

torch::Tensor labels(std::int64_t count, std::int64_t classes, std::uint64_t seed) {
  torch::Tensor t = torch::empty({count}, torch::kInt64);
  std::int64_t* p = t.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i)
    p[i] = static_cast<std::int64_t>((uniform_at(seed, static_cast<std::uint64_t>(i)) + 1.0) *
                                     0x1p23) %
           classes;
  return t;
}

void fill(const std::vector<torch::Tensor>& parameters) {
  torch::NoGradGuard no_grad;
  std::int64_t fan_in = 1;
  std::uint64_t k = 0;
  for (const torch::Tensor& p : parameters) {
    if (p.dim() >= 2) fan_in = p.numel() / p.size(0);  // a bias follows its weight
    p.copy_(uniform(p.sizes().vec(), 100 + k++, 1.0 / std::sqrt(static_cast<double>(fan_in))));
  }
}

// ---- rows --------------------------------------------------------------------------------------
struct Row {
  virtual ~Row() = default;
  virtual void reset() = 0;
  virtual torch::Tensor step() = 0;  // zero_grad, forward, loss, backward, step
  virtual bool trains() const { return true; }
};

/// One operation without gradient. The result is in newly allocated memory at every step.
struct Op final : Row {
  std::function<torch::Tensor()> run;
  explicit Op(std::function<torch::Tensor()> f) : run(std::move(f)) {}
  void reset() override {}
  torch::Tensor step() override { return run(); }
  bool trains() const override { return false; }
};

enum class Loss { mse, cross_entropy };

template <class Module, class Optimizer = torch::optim::SGD> struct RowOf final : Row {
  Module model;
  torch::Tensor x, y;
  Loss kind;
  std::unique_ptr<Optimizer> optimizer;

  RowOf(Module m, torch::Tensor input, torch::Tensor target, Loss loss)
      : model(std::move(m)), x(std::move(input)), y(std::move(target)), kind(loss) {
    reset();
  }

  /// Resets the model to the common weights and creates an optimizer without state.
  void reset() override {
    fill(model->parameters());
    if constexpr (std::is_same_v<Optimizer, torch::optim::SGD>)
      optimizer = std::make_unique<Optimizer>(model->parameters(), torch::optim::SGDOptions(0.01));
    else optimizer = std::make_unique<Optimizer>(model->parameters());
  }
  torch::Tensor step() override {
    optimizer->zero_grad();
    torch::Tensor out = model->forward(x);
    torch::Tensor loss = kind == Loss::mse ? torch::nn::functional::mse_loss(out, y)
                                           : torch::nn::functional::cross_entropy(out, y);
    loss.backward();
    optimizer->step();
    return loss;
  }
};

/// A causal pre-norm Transformer block; the row block_sgd.
struct BlockImpl : torch::nn::Module {
  torch::nn::LayerNorm norm1, norm2;
  torch::nn::Linear qkv, out, wide, narrow;
  static torch::nn::LayerNorm norm() {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({256}));
  }
  BlockImpl()
      : norm1(norm()),
        norm2(norm()),
        qkv(256, 768),
        out(256, 256),
        wide(256, 1024),
        narrow(1024, 256) {
    register_module("norm1", norm1);
    register_module("qkv", qkv);
    register_module("out", out);
    register_module("norm2", norm2);
    register_module("wide", wide);
    register_module("narrow", narrow);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto batch = x.size(0), n = x.size(1);
    const auto parts = qkv(norm1(x)).view({batch, n, 3, 8, 32}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto heads =
        torch::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    const auto y = x + out(heads.transpose(1, 2).reshape({batch, n, 256}));
    return y + narrow(torch::gelu(wide(norm2(y))));
  }
};
TORCH_MODULE(Block);

/// Embedding, two LSTM layers and a decoder. Gradients are clipped to a norm of 0.25 before the
/// step.
struct WordModelImpl : torch::nn::Module {
  torch::nn::Embedding encoder{nullptr};
  torch::nn::LSTM rnn{nullptr};
  torch::nn::Linear decoder{nullptr};
  WordModelImpl(std::int64_t words, std::int64_t width, std::int64_t layers) {
    encoder = register_module("encoder", torch::nn::Embedding(words, width));
    rnn = register_module("rnn",
                          torch::nn::LSTM(torch::nn::LSTMOptions(width, width).num_layers(layers)));
    decoder = register_module("decoder", torch::nn::Linear(width, words));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return decoder->forward(std::get<0>(rnn->forward(encoder->forward(x))).flatten(0, 1));
  }
};
TORCH_MODULE(WordModel);

struct WordRow final : Row {
  WordModel model{10000, 200, 2};
  torch::Tensor x = labels(35 * 20, 10000, 1).view({35, 20}), y = labels(35 * 20, 10000, 2);
  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.01)};
  void reset() override { fill(model->parameters()); }
  torch::Tensor step() override {
    optimizer.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(x), y);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 0.25);
    optimizer.step();
    return loss;
  }
};

std::unique_ptr<Row> make_row(const std::string& name) {
  namespace nn = torch::nn;
  if (name == "linear_30x5x2_sgd")
    return std::make_unique<RowOf<nn::Linear>>(nn::Linear(5, 2), uniform({30, 5}, 1),
                                               uniform({30, 2}, 2), Loss::mse);
  if (name == "block_sgd")
    return std::make_unique<RowOf<Block>>(Block(), uniform({8, 128, 256}, 1),
                                          uniform({8, 128, 256}, 2), Loss::mse);
  if (name == "lstm_lm_sgd") return std::make_unique<WordRow>();
  if (name == "cnn_b64_sgd") {
    nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(1, 32, 3)), nn::ReLU(), nn::MaxPool2d(2),
                       nn::Conv2d(nn::Conv2dOptions(32, 64, 3)), nn::ReLU(), nn::MaxPool2d(2),
                       nn::Flatten(), nn::Linear(1600, 128), nn::ReLU(), nn::Linear(128, 10));
    return std::make_unique<RowOf<nn::Sequential>>(net, uniform({64, 1, 28, 28}, 1),
                                                   labels(64, 10, 2), Loss::cross_entropy);
  }
  if (name == "softmax_4096")
    return std::make_unique<Op>([x = uniform({4096, 4096}, 1)] { return torch::softmax(x, -1); });
  if (name == "add_1e7")
    return std::make_unique<Op>(
        [x = uniform({10'000'000}, 1), y = uniform({10'000'000}, 2)] { return x + y; });
  if (name == "layernorm_4096x1024")
    return std::make_unique<Op>(
        [x = uniform({4096, 1024}, 1), weight = uniform({1024}, 2), bias = uniform({1024}, 3)] {
          return torch::layer_norm(x, {1024}, weight, bias);
        });
  int hidden = 0, rows = 0, read = 0;
  if (std::sscanf(name.c_str(), "mlp%d_b%d_%n", &hidden, &rows, &read) != 2)
    throw std::invalid_argument("unknown row " + name);
  const std::string kind = name.substr(static_cast<std::size_t>(read));
  // the C++ interface has no fused Adam
  if (kind != "sgd" && kind != "adam") throw std::invalid_argument("unknown row " + name);
  nn::Sequential net(nn::Linear(784, hidden), nn::ReLU(), nn::Linear(hidden, hidden), nn::ReLU(),
                     nn::Linear(hidden, 10));
  if (kind == "adam")
    return std::make_unique<RowOf<nn::Sequential, torch::optim::Adam>>(
        net, uniform({rows, 784}, 1), labels(rows, 10, 2), Loss::cross_entropy);
  return std::make_unique<RowOf<nn::Sequential>>(net, uniform({rows, 784}, 1), labels(rows, 10, 2),
                                                 Loss::cross_entropy);
}

struct Measured {
  double us, first, last;
};

Measured measure(Row& row, int iterations) {
  using Clock = std::chrono::steady_clock;
  row.reset();
  torch::Tensor loss = row.step();
  const double first = row.trains() ? loss.item<double>() : 0;
  loss.reset();
  for (int i = 0; i < 2 + iterations / 10; ++i) row.step();
  const int batches = std::min(50, iterations), steps = iterations / batches;
  std::vector<double> times;
  for (int b = 0; b < batches; ++b) {
    const auto start = Clock::now();
    for (int i = 0; i < steps; ++i) {
      loss.reset();  // so that this step reuses the last result's memory
      loss = row.step();
    }
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
                    steps);
  }
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  return {times.size() % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2, first,
          row.trains() ? loss.item<double>() : 0};
}

// OpenMP places its threads by GOMP_CPU_AFFINITY, which the launcher sets.
void pin_to_first_core() {
  const char* cores = std::getenv("BRAID_PIN_CORES");
  if (!cores || !*cores) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(std::atoi(cores), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    std::fprintf(stderr, "peer-libtorch: cannot pin to core %s\n", cores);
}

std::string json_text(const std::string& s) {
  std::string out = "\"";
  for (char c : s.substr(0, s.find('\n'))) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + '"';
}

std::string answer(std::map<std::string, std::unique_ptr<Row>>& rows, const std::string& line) {
  std::istringstream words(line);
  std::string command, name;
  int threads = 0, count = 0;
  words >> command;
  std::ostringstream out;
  out.precision(17);
  if (command == "hello") {
    out << R"({"peer": "torch-cpp", "version": ")" << TORCH_VERSION << R"("})";
    return out.str();
  }
  if ((command != "run" && command != "losses") || !(words >> name >> threads >> count) ||
      threads < 1 || count < 1)
    throw std::invalid_argument(
        "expected: hello | run ROW THREADS ITERATIONS | losses ROW THREADS COUNT | quit");
  torch::set_num_threads(threads);
  if (!rows.count(name)) {
    rows.clear();  // one at a time: the large nets are tens of MB
    rows[name] = make_row(name);
  }
  Row& row = *rows[name];
  out << R"({"row": )" << json_text(name) << R"(, "threads": )" << threads;
  if (command == "run") {
    const Measured m = measure(row, count);
    if (row.trains() && !(std::isfinite(m.last) && m.last < m.first))
      throw std::runtime_error("the loss did not fall: " + std::to_string(m.first) + " to " +
                               std::to_string(m.last));
    out << R"(, "us": )" << m.us << R"(, "loss": )" << m.last << '}';
  } else {
    row.reset();
    out << R"(, "losses": [)";
    // for an operation: evenly spaced numbers of its result
    const torch::Tensor y = row.trains() ? torch::Tensor() : row.step().flatten();
    for (int i = 0; i < count; ++i)
      out << (i ? ", " : "")
          << (row.trains() ? row.step() : y[i * (y.numel() / count)]).item<double>();
    out << "]}";
  }
  return out.str();
}

}  // namespace

int main() {
  pin_to_first_core();
  std::map<std::string, std::unique_ptr<Row>> rows;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    if (line.empty()) continue;
    std::string reply;
    try {
      reply = answer(rows, line);
    } catch (const std::exception& error) {  // the benchmark must get a line whatever happens
      reply = R"({"error": )" + json_text(error.what()) + '}';
    }
    std::cout << reply << std::endl;
  }
}

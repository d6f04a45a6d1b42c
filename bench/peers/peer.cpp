// PyTorch's C++ interface (LibTorch) as a peer: the twin of peer.py, a server on stdin and stdout. The protocol is in README.md.
// Built by setup.sh against the wheel's own headers and libraries.
#include <sched.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

// ---- the common formulas: rows.py has the same -----------------------------------------------------------------------------------
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
  for (std::int64_t i = 0; i < t.numel(); ++i) p[i] = static_cast<float>(uniform_at(seed, static_cast<std::uint64_t>(i)) * scale);
  return t;
}

torch::Tensor labels(std::int64_t count, std::int64_t classes, std::uint64_t seed) {
  torch::Tensor t = torch::empty({count}, torch::kInt64);
  std::int64_t* p = t.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) p[i] = static_cast<std::int64_t>((uniform_at(seed, static_cast<std::uint64_t>(i)) + 1.0) * 0x1p23) % classes;
  return t;
}

void fill(const std::vector<torch::Tensor>& parameters) {
  torch::NoGradGuard no_grad;
  std::int64_t fan_in = 1;
  std::uint64_t k = 0;
  for (const torch::Tensor& p : parameters) {
    if (p.dim() == 2) fan_in = p.size(1);  // a bias follows its weight
    p.copy_(uniform(p.sizes().vec(), 100 + k++, 1.0 / std::sqrt(static_cast<double>(fan_in))));
  }
}

// ---- rows ------------------------------------------------------------------------------------------------------------------------
struct Row {
  virtual ~Row() = default;
  virtual void reset() = 0;
  virtual torch::Tensor step() = 0;  // zero_grad, forward, loss, backward, step
};

enum class Loss { mse, cross_entropy };

template <class Module>
struct RowOf final : Row {
  Module model;
  torch::Tensor x, y;
  Loss kind;
  torch::optim::SGD optimizer;

  RowOf(Module m, torch::Tensor input, torch::Tensor target, Loss loss)
      : model(std::move(m)), x(std::move(input)), y(std::move(target)), kind(loss), optimizer(model->parameters(), torch::optim::SGDOptions(0.01)) {}

  void reset() override { fill(model->parameters()); }
  torch::Tensor step() override {
    optimizer.zero_grad();
    torch::Tensor out = model->forward(x);
    torch::Tensor loss = kind == Loss::mse ? torch::nn::functional::mse_loss(out, y) : torch::nn::functional::cross_entropy(out, y);
    loss.backward();
    optimizer.step();
    return loss;
  }
};

std::unique_ptr<Row> make_row(const std::string& name) {
  namespace nn = torch::nn;
  if (name == "linear_30x5x2_sgd") return std::make_unique<RowOf<nn::Linear>>(nn::Linear(5, 2), uniform({30, 5}, 1), uniform({30, 2}, 2), Loss::mse);
  int hidden = 0, rows = 0, read = 0;
  if (std::sscanf(name.c_str(), "mlp%d_b%d_sgd%n", &hidden, &rows, &read) != 2 || read != static_cast<int>(name.size()))
    throw std::invalid_argument("unknown row " + name);
  nn::Sequential net(nn::Linear(784, hidden), nn::ReLU(), nn::Linear(hidden, hidden), nn::ReLU(), nn::Linear(hidden, 10));
  return std::make_unique<RowOf<nn::Sequential>>(net, uniform({rows, 784}, 1), labels(rows, 10, 2), Loss::cross_entropy);
}

struct Measured {
  double us, first, last;
};

Measured measure(Row& row, int iterations) {
  using Clock = std::chrono::steady_clock;
  row.reset();
  const double first = row.step().item<double>();
  for (int i = 0; i < 2 + iterations / 10; ++i) row.step();
  const int batches = std::min(50, iterations), steps = iterations / batches;
  std::vector<double> times;
  torch::Tensor loss;
  for (int b = 0; b < batches; ++b) {
    const auto start = Clock::now();
    for (int i = 0; i < steps; ++i) loss = row.step();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / steps);
  }
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  return {times.size() % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2, first, loss.item<double>()};
}

// ---- the server ------------------------------------------------------------------------------------------------------------------
void pin_to_first_core() {  // OpenMP places its threads by GOMP_CPU_AFFINITY, which the launcher sets
  const char* cores = std::getenv("BRAID_PIN_CORES");
  if (!cores || !*cores) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(std::atoi(cores), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) std::fprintf(stderr, "peer-libtorch: cannot pin to core %s\n", cores);
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
  if ((command != "run" && command != "losses") || !(words >> name >> threads >> count) || threads < 1 || count < 1)
    throw std::invalid_argument("expected: hello | run ROW THREADS ITERATIONS | losses ROW THREADS COUNT | quit");
  torch::set_num_threads(threads);
  if (!rows.count(name)) {
    rows.clear();  // one at a time: the large nets are tens of MB
    rows[name] = make_row(name);
  }
  Row& row = *rows[name];
  out << R"({"row": )" << json_text(name) << R"(, "threads": )" << threads;
  if (command == "run") {
    const Measured m = measure(row, count);
    if (!std::isfinite(m.last) || !(m.last < m.first))
      throw std::runtime_error("the loss did not fall: " + std::to_string(m.first) + " to " + std::to_string(m.last));
    out << R"(, "us": )" << m.us << R"(, "loss": )" << m.last << '}';
  } else {
    row.reset();
    out << R"(, "losses": [)";
    for (int i = 0; i < count; ++i) out << (i ? ", " : "") << row.step().item<double>();
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

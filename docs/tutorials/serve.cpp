// Serves a model to many threads, in two ways: each thread calls the model itself, or a server
// (serve/server.hpp) collects the requests of all threads, and calls the model once for each batch
// of them. Checks every answer, and prints how many are given in a second.
//   ./serve --picture serve.svg
// --help lists the options.
#include <braid/braid.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>

#include "serve/server.hpp"

using namespace braid;

struct Options : training::Options {
  std::int64_t width = 2048, wait = 1000;
  double seconds = 1;
  std::string picture;
};

struct Net : nn::Module {
  nn::Linear fc1, fc2;
  nn::BatchNorm1d norm;
  nn::Dropout drop{0.25};
  explicit Net(std::int64_t width) : fc1(784, width), fc2(width, 10), norm(width) {}
  Tensor operator()(const Tensor& x) const { return fc2(drop(relu(norm(fc1(x))))); }
  BRAID_FIELDS(fc1, fc2, norm, drop)
};

/// Runs that many clients at once, each of which returns the number of its answers. Returns the
/// answers of all in a second.
double rate(int clients, double seconds,
            const std::function<std::int64_t(const std::atomic<bool>&)>& client) {
  std::atomic<bool> stop = false;
  std::vector<std::future<std::int64_t>> counts;
  for (int i = 0; i < clients; ++i)
    counts.push_back(std::async(std::launch::async, [&] { return client(stop); }));
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  double sum = 0;
  for (auto& count : counts) sum += static_cast<double>(count.get());
  return sum / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Draws a bar for the answers a second of each way.
void draw(const std::string& file, const std::vector<std::pair<std::string, double>>& rates) {
  double most = 1;
  for (const auto& [way, rate] : rates) most = std::max(most, rate);
  std::string svg = str("<svg xmlns='http://www.w3.org/2000/svg' width='640' height='",
                        24 * rates.size() + 8, "' font-family='sans-serif' font-size='13'>\n",
                        "<rect width='100%' height='100%' fill='white'/>\n");
  for (int y = 21; const auto& [way, rate] : rates) {
    const int length = static_cast<int>(400 * rate / most);
    svg += str("<text x='8' y='", y, "'>", way, "</text><rect x='130' y='", y - 14, "' width='",
               length, "' height='18' fill='#2a78b5'/><text x='", 136 + length, "' y='", y, "'>",
               static_cast<int>(rate), " / s</text>\n");
    y += 24;
  }
  std::ofstream out(file);
  out << svg << "</svg>\n";
  check(out.flush().good(), "--picture: cannot write " + file);
}

void run(const Options& options) {
  Net net(options.width);
  to(net, best_device());
  eval(net);  // before the threads start: nothing may change the model while they call it
  const NoGrad guard;
  const std::vector<Tensor> rows = unbind(rand({256, 784}));
  const auto call = [&](const Tensor& row) {
    return net(row.unsqueeze(0).to(best_device())).cpu()[0];
  };
  std::vector<Tensor> alone;
  for (const Tensor& row : rows) alone.push_back(call(row));

  // A call from another thread gives the same bits. A row of a batch may be rounded differently.
  const auto calls = [&](const std::atomic<bool>& stop) {
    const NoGrad here;
    std::int64_t n = 0;
    for (std::size_t i = 0; !stop; i = (i + 1) % rows.size(), ++n)
      check(equal(call(rows[i]), alone[i]), "a call beside others gave other bits");
    return n;
  };
  const auto model = [&](const Tensor& x) { return net(x.to(best_device())).cpu(); };
  const std::chrono::microseconds wait(options.wait);
  serve::Server server(model, options.batch, wait);
  const auto asks = [&](const std::atomic<bool>& stop) {
    std::int64_t n = 0;
    for (std::deque<std::pair<std::size_t, std::future<Tensor>>> open; !stop || !open.empty();) {
      while (!stop && open.size() < 64) {
        const std::size_t i = static_cast<std::size_t>(n) + open.size();
        open.emplace_back(i % rows.size(), server.ask(rows[i % rows.size()]));
      }
      if (open.empty()) break;
      check(allclose(open.front().second.get(), alone[open.front().first], 1e-5, 1e-5),
            "the answer of a batch differs by more than 1e-5");
      open.pop_front(), ++n;
    }
    return n;
  };
  std::vector<std::pair<std::string, double>> rates;
  for (const int clients : {1, 2, 4}) {
    const double called = rate(clients, options.seconds, calls),
                 asked = rate(clients, options.seconds, asks);
    std::printf("%d clients: %6.0f answers/s by calls, %6.0f by batches\n", clients, called, asked);
    std::fflush(stdout);
    rates.emplace_back(str(clients, " by calls"), called);
    rates.emplace_back(str(clients, " by batches"), asked);
  }
  if (!options.picture.empty()) draw(options.picture, rates);

  // Only a wrong request fails. A server that ends answers first what it was asked.
  std::future<Tensor> last;
  {
    serve::Server ending(model, options.batch, wait);
    last = ending.ask(rows[1]);
  }
  check(allclose(last.get(), alone[1], 1e-5, 1e-5), "a server ended without an answer");
  std::future<Tensor> good = server.ask(rows[0]), wrong = server.ask(ones({3}));
  check(allclose(good.get(), alone[0], 1e-5, 1e-5), "a wrong request disturbed another one");
  try {
    (void)wrong.get();
    throw InternalError("a wrong request was answered");
  } catch (const ShapeError& e) {
    print("the client of a wrong request gets: ", e.what());
  }
}

int main(int argc, char** argv) {
  try {
    Options options;
    static_cast<training::Options&>(options) = training::options(
        argc, argv, {.batch = 32},
        {{"width", "N", "of the network", &options.width, 1},
         {"wait", "N", "microseconds that a request waits for others", &options.wait},
         {"seconds", "X", "how long each way is measured", &options.seconds},
         {"picture", "FILE", "an SVG with a bar for each way", &options.picture}});
    manual_seed(options.seed);
    run(options);
  } catch (...) {
    return training::report_exception(argv[0]);
  }
}

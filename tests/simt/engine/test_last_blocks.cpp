// Kernels whose last block joins what the others have written, by counters of their stream: on
// streams that work at the same time, and in replays of captured steps.
#include <functional>
#include <map>

#include <braid/braid.hpp>

#include "child.hpp"
#include "findings.hpp"
#include "support/check.hpp"

using namespace braid;
using braid::test::findings;

namespace {

using Numbers = std::vector<std::vector<double>>;
using Step = std::function<std::vector<Tensor>(const Tensor& x)>;

Numbers numbers_of(const std::vector<Tensor>& results) {
  Numbers numbers;
  for (const Tensor& t : results) numbers.push_back(t.to_vector<double>());
  return numbers;
}

/// Returns the gradients of the weights of a normalisation.
template <class F> std::vector<Tensor> gradients(const Tensor& x, const F& norm) {
  const Tensor weight = ones({x.size(1)}, {.device = x.device()}).requires_grad_(),
               bias = zeros({x.size(1)}, {.device = x.device()}).requires_grad_();
  (norm(x.detach().requires_grad_(), weight, bias) * x).sum().backward();
  return {weight.grad(), bias.grad()};
}

/// Steps whose kernels have many blocks, with the bits of everything that these join.
const std::map<std::string, Step>& steps() {
  static const std::map<std::string, Step> all{
      {"cross entropy",
       [](const Tensor& x) {
         const Tensor labels = zeros({x.size(0)}, {.device = x.device(), .dtype = DType::int64});
         return std::vector{nn::cross_entropy(x, labels)};
       }},
      {"layer norm",
       [](const Tensor& x) {
         return gradients(x, [](const Tensor& a, const Tensor& weight, const Tensor& bias) {
           return layer_norm(a, {a.size(1)}, weight, bias);
         });
       }},
      {"batch norm",
       [](const Tensor& x) {
         return gradients(x, [](const Tensor& a, const Tensor& weight, const Tensor& bias) {
           return batch_norm(a, RunningStatistics{}, weight, bias, true);
         });
       }},
  };
  return all;
}

Tensor input(int number) { return randn({300, 40}, {.device = Device("cuda:0")}) * (number + 1); }

}  // namespace

TEST_CASE("last blocks: streams that work at the same time have counters of their own",
          "[streams]") {
  for (const auto& [name, step] : steps()) {
    CAPTURE(name);
    const std::string seen = test::in_child(1, [&step = step] {
      const Device device("cuda:0");
      const std::vector<Tensor> x{input(0), input(1)};
      const std::vector<Numbers> expected{numbers_of(step(x[0])), numbers_of(step(x[1]))};
      const std::vector<std::shared_ptr<Stream>> streams{make_stream(device), make_stream(device)};
      synchronize(device);
      std::string text;
      std::vector<std::pair<std::size_t, std::vector<Tensor>>> results;
      for (std::size_t i = 0; i < 6; ++i) {
        const StreamGuard guard(streams[i % 2]);
        results.emplace_back(i % 2, step(x[i % 2]));
      }
      for (const auto& [of, result] : results) {
        const StreamGuard guard(streams[of]);
        if (numbers_of(result) != expected[of]) text += "other bits ";
      }
      return text + findings();
    });
    CHECK(seen == "");
  }
}

TEST_CASE("last blocks: replays of a captured step give the bits of plain ones", "[capture]") {
  for (const auto& [name, step] : steps()) {
    CAPTURE(name);
    const std::string seen = test::in_child(1, [&step = step] {
      auto captured = training::captured_step(step);
      std::string text;
      for (int i = 0; i < 6; ++i) {
        const Tensor x = input(i);
        const Numbers expected = numbers_of(step(x));
        if (numbers_of(captured(x)) != expected) text += str("other bits in step ", i, " ");
      }
      if (captured.replays() < 3) text += str("only ", captured.replays(), " replays ");
      return text + findings();
    });
    CHECK(seen == "");
  }
}

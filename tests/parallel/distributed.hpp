#pragma once
// Helpers of the tests of DistributedDataParallel: ranks that are threads, a model, a training run.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "processes/collectives.hpp"
#include "ranks.hpp"

namespace braid::test {

using Ranks = std::shared_ptr<parallel::ProcessCommunicator>;
using parallel::DistributedDataParallel;
using parallel::DistributedOptions;

/// Runs f on `n` ranks, as on_ranks. With `devices_each`, rank r has the device r * devices_each.
/// The error of every rank is kept in `errors`, if that is given, else the first one is rethrown.
inline void on_world(int n, const std::function<void(const Ranks&)>& f, int devices_each = 1,
                     std::vector<std::exception_ptr>* errors = nullptr) {
  std::vector<Device> of_ranks;
  for (int i = 0; i < n; ++i) of_ranks.push_back(device(i * devices_each % device_count()));
  std::vector<Ranks> ranks = parallel::detail::make_thread_communicators(of_ranks, 20);
  std::vector<std::exception_ptr> failed(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        f(ranks[i]);
      } catch (...) {
        failed[i] = std::current_exception();
      }
      ranks[i].reset();
    });
  for (std::thread& t : threads) t.join();
  if (errors) *errors = std::move(failed);
  else
    for (const std::exception_ptr& e : failed)
      if (e) std::rethrow_exception(e);
}

/// The rows of a rank: consecutive blocks of equal size.
inline Tensor rows_of(const Tensor& x, int rank, int size) {
  const std::int64_t each = x.size(0) / size;
  return x.narrow(0, rank * each, each);
}

/// Two layers, and a parameter that only some forwards use.
struct Branches : nn::Module {
  nn::Linear first{6, 5}, second{5, 4}, other{5, 4};
  Tensor operator()(const Tensor& x, const bool& uses_other) const {
    const Tensor h = tanh(first(x));
    return uses_other ? second(h) + other(h) : second(h);
  }
  BRAID_FIELDS(first, second, other)
};

struct Mlp : nn::Module {
  nn::Linear fc1{6, 40}, fc2{40, 30}, fc3{30, 4};
  Tensor operator()(const Tensor& x) const { return fc3(tanh(fc2(tanh(fc1(x))))); }
  BRAID_FIELDS(fc1, fc2, fc3)
};

/// The same model for every caller.
template <class M> M seeded(std::uint64_t seed = 3) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  manual_seed(seed);
  return M();
}

inline Tensor inputs(std::int64_t rows, std::uint64_t seed) {
  return random_tensor({rows, 6}, DType::float32, device(0), seed);
}
inline Tensor targets(std::int64_t rows, std::uint64_t seed) {
  return random_tensor({rows, 4}, DType::float32, device(0), seed + 1000);
}

/// Copies on the CPU's first device, for comparisons between ranks.
template <class M> std::vector<Tensor> values_of(const M& module) {
  std::vector<Tensor> list;
  for (const Tensor& p : parameters(module)) list.push_back(p.detach().to(device(0)).clone());
  return list;
}

/// The results of ranks, by rank.
class Results {
 public:
  explicit Results(int n)
      : mutex_(std::make_unique<std::mutex>()), of_(static_cast<std::size_t>(n)) {}
  void set(int rank, std::vector<Tensor> tensors) {
    const std::lock_guard lock(*mutex_);
    of_[static_cast<std::size_t>(rank)] = std::move(tensors);
  }
  [[nodiscard]] const std::vector<Tensor>& operator[](int rank) const {
    return of_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] int size() const { return static_cast<int>(of_.size()); }
  void check_equal() const {
    for (int rank = 1; rank < size(); ++rank) {
      INFO("rank " << rank);
      check_same((*this)[rank], (*this)[0]);
    }
  }

 private:
  std::unique_ptr<std::mutex> mutex_;
  std::vector<std::vector<Tensor>> of_;
};

}  // namespace braid::test

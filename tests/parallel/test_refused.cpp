// What DataParallel refuses, over 2, 4 and 8 devices and in every mode: by the texts that its
// requirements give, before anything has changed.
#include <functional>
#include <string>
#include <tuple>

#include "faults.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;

namespace {

/// f(n, mode) for 2, 4 and 8 devices, as many as there are.
template <class F> void in_each_mode(const F& f) {
  for (const int n : {2, 4, 8}) {
    if (n > device_count()) break;
    for (const Mode& mode : modes(n)) {
      INFO(n << " devices, " << mode.name);
      f(n, mode);
    }
  }
}

/// A forward as the mode has it.
template <class M, class... A>
void forward(const DataParallel<M>& model, const Mode& mode, const A&... args) {
  if (mode.joined) (void)model(args...);
  else (void)model.replicas(args...);
}

/// Two inputs, of which the second has to have as many rows, and a plain one.
struct Two : nn::Module {
  nn::Linear fc{3, 2};
  Tensor operator()(const Tensor& x, const Tensor& y, double scale) const {
    return fc(x) * scale + y;
  }
  BRAID_FIELDS(fc)
};

/// A model that hides what it calls.
struct Hidden : nn::Module {
  nn::Linear fc{3, 2};
  std::function<Tensor(const Tensor&)> inner;
  Tensor operator()(const Tensor& x) const { return inner ? inner(x) : fc(x); }
  BRAID_FIELDS(fc)
};

struct Buffered : nn::Module {
  nn::Linear fc{3, 2};
  nn::Buffer scale{braid::ones({1})};
  Tensor operator()(const Tensor& x) const { return fc(x) * scale; }
  BRAID_FIELDS(fc, scale)
};

/// Outputs that are no tensors, or not only.
template <class R> struct Returns : nn::Module {
  nn::Linear fc{3, 2};
  R operator()(const Tensor& x) const {
    if constexpr (std::is_same_v<R, std::string>) return str(x.size(0), " rows");
    else if constexpr (std::is_same_v<R, double>) return static_cast<double>(x.size(0));
    else return R(fc(x), str(x.size(0), " rows"));
  }
  BRAID_FIELDS(fc)
};

void check_unchanged(const std::vector<Tensor>& now, const std::vector<Tensor>& before) {
  for (std::size_t k = 0; k < before.size(); ++k) {
    CHECK_SAME_BITS(now[k], before[k]);
    CHECK_FALSE(now[k].grad().defined());
  }
}

}  // namespace

TEST_CASE("3.6: inputs that give different numbers of chunks, in each mode",
          "[parallel][faults][errors]") {
  in_each_mode([](int n, const Mode& mode) {
    const DataParallel model(home(Two{}), group(n), mode.options);
    const std::vector<Tensor> before = copies_of(parameters(model));
    const Tensor x = random_tensor({4 * n, 3}, DType::float32, device(0), 1);
    const std::int64_t chunks = mode.options.shards > 0 ? 2 * n : n;
    const std::string text =
        mode.options.shards > 0
            ? str("scatter: expected the same number of chunks along dim 0*got ", chunks,
                  " for '0' (size ", 4 * n, ") and 1 for '1' (size 1)")
            : str("scatter: expected the same number of chunks along dim 0 over ", n,
                  " devices*got ", n, " for '0' (size ", 4 * n, ") and 1 for '1' (size 1)");
    CHECK_THROWS_TEXT(ShapeError, text, forward(model, mode, x, ones({1, 2}), 2.0));
    check_unchanged(parameters(model), before);
    // Plain values follow the tensors.
    for (const Tensor& y : model.replicas(x, zeros({4 * n, 2}), 2.0))
      CHECK(y.size(0) == 4 * n / chunks);
    CHECK(allclose(model(x, zeros({4 * n, 2}), 2.0), model.module.fc(x) * 2.0, 1e-5, 1e-6));
  });
}

TEST_CASE(
    "1.7: a DataParallel inside a replica, where the type does not show it, is refused in each "
    "mode; -> gives the module",
    "[parallel][faults][errors]") {
  in_each_mode([](int n, const Mode& mode) {
    const auto inner = std::make_shared<DataParallel<nn::Linear>>(home(nn::Linear(3, 2)), group(n));
    CHECK((*inner)->weight.shape() == Shape{2, 3});
    DataParallel model(home(Hidden{}), group(n), mode.options);
    const std::vector<Tensor> before = copies_of(parameters(model)),
                              of_inner = copies_of(parameters(*inner));
    const Tensor x = random_tensor({4 * n, 3}, DType::float32, device(0), 1);
    model.module.inner = [inner](const Tensor& part) {
      return (*inner)(part.to(device(0))).to(part.device());
    };
    CHECK_THROWS_TEXT(
        ReplicaError,
        here("Caught ArgumentError in replica 0 on device cpu:0: DataParallel: expected a call "
             "outside of other replicas, got one inside "
             "(a DataParallel in a DataParallel: wrap the whole model, or only its parts)"),
        forward(model, mode, x));
    check_unchanged(parameters(model), before);
    check_unchanged(parameters(*inner), of_inner);
    model.module.inner = nullptr;
    CHECK(allclose(model(x), model.module.fc(x), 1e-5, 1e-6));
  });
}

TEST_CASE("2.1, 2.2: a parameter or a buffer on each wrong device, in each mode",
          "[parallel][faults][errors]") {
  in_each_mode([](int n, const Mode& mode) {
    const Tensor x = random_tensor({4 * n, 3}, DType::float32, device(0), 1);
    for (int wrong = 1; wrong < n; ++wrong) {
      DataParallel model(home(Buffered{}), group(n), mode.options);
      const auto text = [&](const char* what) {
        return str("module must have its parameters and buffers on device ", device(0),
                   " (device_ids[0]) but found one of them on device: ", device(wrong), " (", what,
                   ")");
      };
      to(model.module.fc.bias, device(wrong));
      const std::vector<Tensor> before = copies_of(parameters(model));
      CHECK_THROWS_TEXT(DeviceError, text("parameter 'fc.bias'"), forward(model, mode, x));
      check_unchanged(parameters(model), before);
      to(model.module.fc.bias, device(0));
      to(model.module.scale, device(wrong));
      CHECK_THROWS_TEXT(DeviceError, text("buffer 'scale'"), forward(model, mode, x));
      to(model.module.scale, device(0));
      CHECK(allclose(model(x), model.module.fc(x), 1e-5, 1e-6));
    }
  });
}

TEST_CASE("6.5: outputs with leaves that are no tensors, in each mode",
          "[parallel][faults][errors]") {
  in_each_mode([](int n, const Mode& mode) {
    const Tensor x = random_tensor({4 * n, 3}, DType::float32, device(0), 1);
    const std::size_t replicas = static_cast<std::size_t>(mode.options.shards > 0 ? 2 * n : n);
    const std::string rows = str(static_cast<std::size_t>(4 * n) / replicas, " rows");
    constexpr const char* kText =
        "gather: expected a tree of tensors from every replica, got *; with one device any output "
        "is fine";
    const DataParallel texts(home(Returns<std::string>{}), group(n), mode.options);
    CHECK_THROWS_TEXT(ArgumentError, kText, texts(x));
    CHECK(texts.replicas(x) == std::vector<std::string>(replicas, rows));
    const DataParallel counts(home(Returns<double>{}), group(n), mode.options);
    CHECK_THROWS_TEXT(ArgumentError, kText, counts(x));
    CHECK(counts.replicas(x).size() == replicas);
    // Beside tensors they are the first replica's.
    const DataParallel both(home(Returns<std::tuple<Tensor, std::string>>{}), group(n),
                            mode.options);
    const auto [y, text] = both(x);
    CHECK(allclose(y, both.module.fc(x), 1e-5, 1e-6));
    CHECK(text == rows);
  });
}

}  // namespace braid::test::on_device

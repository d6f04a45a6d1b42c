// Errors of DataParallel over 2, 4 and 8 devices and in every mode: their exact texts. They are
// thrown before anything has changed.
#include "group.hpp"

namespace braid::test::on_device {

namespace {

/// Calls f(n, mode, rows) for 2, 4 and 8 devices if there are as many, with 4 rows per device.
void in_each_mode(const std::function<void(int, const Mode&, const Tensor&)>& f) {
  for (const int n : {2, 4, 8}) {
    if (n > device_count()) break;
    const Tensor x = random_tensor({4 * n, 3}, DType::float32, device(0), 1);
    for (const Mode& mode : modes(n)) {
      INFO(n << " devices, " << mode.name);
      f(n, mode, x);
    }
  }
}
int replicas_of(const Mode& mode, int n) { return mode.virtual_replicas > 0 ? 2 * n : n; }

/// Runs a forward in the given mode.
template <class M, class... A>
void forward(const DataParallel<M>& model, const Mode& mode, const A&... args) {
  if (mode.joined) (void)model(args...);
  else (void)model.replicas(args...);
}

struct Buffered : nn::Module {
  nn::Linear fc{3, 2};
  nn::Buffer scale{braid::ones({1})};
  Tensor operator()(const Tensor& x) const { return fc(x) * scale; }
  BRAID_FIELDS(fc, scale)
};

void check_unchanged(const std::vector<Tensor>& now, const std::vector<Tensor>& before) {
  check_same(now, before);
  for (const Tensor& t : now) CHECK_FALSE(t.grad().defined());
}
void check_close_to(const Tensor& got, const Tensor& want) {
  CHECK_CLOSE(got, want, (Tolerance{1e-5, 1e-6}));
}

}  // namespace

TEST_CASE("refused in each mode: inputs that give different numbers of chunks", "[faults]") {
  in_each_mode([](int n, const Mode& mode, const Tensor& x) {
    const auto two = [](const Tensor& weight, const Tensor& a, const Tensor& b, double scale) {
      return a * weight * scale + b;
    };
    const auto model = wrapped(home(Made(two)), group(n), mode);
    const std::vector<Tensor> before = copies_of(parameters(model));
    const std::int64_t chunks = replicas_of(mode, n);
    const std::string over = chunks == n ? str(" over ", n, " devices") : "";
    // the second argument must have as many rows
    CHECK_THROWS_TEXT(ShapeError,
                      str("scatter: expected the same number of chunks along dim 0", over, "*got ",
                          chunks, " for '0' (size ", 4 * n, ") and 1 for '1' (size 1)"),
                      forward(model, mode, x, ones({1, 3}), 2.0));
    check_unchanged(parameters(model), before);
    // Plain values are passed to every replica beside the tensors.
    for (const Tensor& y : model.replicas(x, zeros({4 * n, 3}), 2.0))
      CHECK(y.size(0) == 4 * n / chunks);
    check_close_to(model(x, zeros({4 * n, 3}), 2.0), x * 2.0);
  });
}

TEST_CASE("refused in each mode: a hidden DataParallel in a replica", "[faults]") {
  in_each_mode([](int n, const Mode& mode, const Tensor& x) {
    const auto inner = std::make_shared<DataParallel<nn::Linear>>(home(nn::Linear(3, 2)), group(n));
    CHECK((*inner)->weight.shape() == Shape{2, 3});  // -> accesses the module
    std::function<Tensor(const Tensor&)> hidden;
    const auto calls = [&hidden](const Tensor& weight, const Tensor& part) {
      return hidden ? hidden(part) : part * weight;
    };
    const auto model = wrapped(home(Made(calls)), group(n), mode);
    const std::vector<Tensor> before = copies_of(parameters(model)),
                              of_inner = copies_of(parameters(*inner));
    hidden = [inner](const Tensor& part) { return (*inner)(part.to(device(0))).to(part.device()); };
    CHECK_THROWS_TEXT(
        ReplicaError,
        here("Caught ArgumentError in replica 0 on device cpu:0: DataParallel: expected a call "
             "outside of other replicas, got one inside "
             "(a DataParallel in a DataParallel: wrap the whole model, or only its parts)"),
        forward(model, mode, x));
    check_unchanged(parameters(model), before);
    check_unchanged(parameters(*inner), of_inner);
    hidden = nullptr;
    check_close_to(model(x), x);
  });
}

TEST_CASE("refused in each mode: a parameter or a buffer on each wrong device", "[faults]") {
  in_each_mode([](int n, const Mode& mode, const Tensor& x) {
    for (int wrong = 1; wrong < n; ++wrong) {
      auto model = wrapped(home(Buffered{}), group(n), mode);
      const auto check_refused = [&](const char* what) {
        CHECK_THROWS_TEXT(DeviceError,
                          str("module must have its parameters and buffers on device ", device(0),
                              " (device_ids[0]) but found one of them on device: ", device(wrong),
                              " (", what, ")"),
                          forward(model, mode, x));
      };
      to(model.module.fc.bias, device(wrong));
      const std::vector<Tensor> before = copies_of(parameters(model));
      check_refused("parameter 'fc.bias'");
      check_unchanged(parameters(model), before);
      to(model.module.fc.bias, device(0));
      to(model.module.scale, device(wrong));
      check_refused("buffer 'scale'");
      to(model.module.scale, device(0));
      check_close_to(model(x), model.module.fc(x));
    }
  });
}

TEST_CASE("refused in each mode: outputs with leaves that are no tensors", "[faults][errors]") {
  in_each_mode([](int n, const Mode& mode, const Tensor& x) {
    const auto replicas = usize(replicas_of(mode, n));
    const std::string rows = str(usize(4 * n) / replicas, " rows");
    constexpr const char* kText =
        "gather: expected a tree of tensors from every replica, got *; with one device any output "
        "is fine";
    const auto model = [&](auto f) { return wrapped(home(Made(f)), group(n), mode); };
    const DataParallel texts =
        model([](const Tensor&, const Tensor& part) { return str(part.size(0), " rows"); });
    CHECK_THROWS_TEXT(ArgumentError, kText, texts(x));
    CHECK_THROWS_TEXT(ArgumentError, "got *string*", texts(x));
    CHECK(texts.replicas(x) == std::vector<std::string>(replicas, rows));
    const DataParallel counts = model([](const Tensor&, const Tensor&) { return 1.5; });
    CHECK_THROWS_TEXT(ArgumentError, kText, counts(x));
    CHECK(counts.replicas(x).size() == replicas);
    // In an output with tensors, plain values are taken from the first replica.
    const DataParallel both = model([](const Tensor& weight, const Tensor& part) {
      return std::tuple(part * weight, str(part.size(0), " rows"));
    });
    const auto [y, text] = both(x);
    check_close_to(y, x);
    CHECK(text == rows);
  });
}

}  // namespace braid::test::on_device

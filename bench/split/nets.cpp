#include "split/nets.hpp"

#include <optional>
#include <utility>

#include "support/block.hpp"
#include "support/lstm_lm.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"

namespace bench::split {
namespace {

namespace parallel = braid::parallel;
using braid::Device;
using braid::Tensor;

constexpr braid::optim::SgdOptions kSgd{.lr = kLearningRate};

struct Batch {
  Tensor x, y;
};

// The outputs of these three nets are gathered, as nn.DataParallel does.
struct Mlp {
  static auto net() { return make_mlp(2048); }
  static Batch batch(std::int64_t rows) { return {input(rows, 784), classes(rows, 10)}; }
  template <class M> static Tensor loss(const M& model, const Batch& b) {
    return kCrossEntropy(model(b.x), b.y);
  }
  static void between(const std::vector<Tensor>&) {}
  static constexpr int kDim = 0;
};

struct Images : Mlp {
  static Cnn net() { return {}; }
  static Batch batch(std::int64_t rows) { return {images(rows), classes(rows, 10)}; }
};

struct Sequences : Mlp {
  static Block net() { return {}; }
  static Batch batch(std::int64_t rows) {
    return {sequences(kInputSeed, rows), sequences(kTargetSeed, rows)};
  }
  template <class M> static Tensor loss(const M& model, const Batch& b) {
    return kMse(model(b.x), b.y);
  }
};

/// The word model with the loss inside the replica, because its outputs have 10,000 numbers for
/// each word.
struct WordLoss : braid::nn::Module {
  LstmLm model{LstmLmSizes{}};
  braid::LossSum operator()(const Tensor& words, const Tensor& next) const {
    return braid::cross_entropy_sum(model(words), next.flatten());
  }
  BRAID_FIELDS(model)
};
struct Words {
  static WordLoss net() { return {}; }
  static Batch batch(std::int64_t texts) {
    const LstmLmSizes s;
    const auto words = [&](std::uint64_t seed) {
      return braid::tensor(labels(s.steps * texts, static_cast<std::uint32_t>(s.words), seed))
          .reshape({s.steps, texts});
    };
    return {words(kInputSeed), words(kTargetSeed)};
  }
  template <class M> static Tensor loss(const M& model, const Batch& b) {
    return parallel::total(model.replicas(b.x, b.y), b.x.device()).mean();
  }
  static void between(const std::vector<Tensor>& parameters) {
    braid::optim::clip_grad_norm_(parameters, kClip);
  }
  static constexpr int kDim = 1;
};

template <class Kind> auto over(const std::vector<Device>& devices, Update update) {
  auto net = Kind::net();
  braid::to(net, devices.front());
  return parallel::DataParallel(
      std::move(net), devices,
      parallel::DataParallelOptions{
          .dim = Kind::kDim,
          .update = update == Update::local ? parallel::Update::local : parallel::Update::first});
}

/// The common part of both kinds of update.
template <class Kind> class Base : public Training {
 public:
  [[nodiscard]] const std::vector<Tensor>& parameters() const override { return parameters_; }

 protected:
  Base(const std::vector<Device>& devices, std::int64_t rows, Update update)
      : model_(over<Kind>(devices, update)), batch_(Kind::batch(rows)) {
    batch_.x = batch_.x.to(devices.front());
    batch_.y = batch_.y.to(devices.front());
    parameters_ = braid::parameters(model_);
  }

  decltype(over<Kind>({}, Update::broadcast)) model_;
  Batch batch_;
  std::vector<Tensor> parameters_;
};

template <class Kind> class Broadcast final : public Base<Kind> {
 public:
  Broadcast(const std::vector<Device>& devices, std::int64_t rows)
      : Base<Kind>(devices, rows, Update::broadcast) {
    reset();
  }
  void reset() override {
    fill(this->parameters_);
    optimizer_.emplace(this->parameters_, kSgd);
  }
  Tensor step() override {
    optimizer_->zero_grad();
    Tensor loss = Kind::loss(this->model_, this->batch_);
    loss.backward();
    Kind::between(this->parameters_);
    optimizer_->step();
    return loss;
  }
  void count_memory(parallel::DataParallelReport::Recording& recording) const override {
    recording.count_memory(this->model_, *optimizer_);
  }

 private:
  std::optional<braid::optim::SGD> optimizer_;
};

template <class Kind> class Local final : public Base<Kind> {
 public:
  Local(const std::vector<Device>& devices, std::int64_t rows)
      : Base<Kind>(devices, rows, Update::local) {
    reset();
  }
  void reset() override {
    fill(this->parameters_);
    optimizer_.reset(new parallel::LocalUpdate<braid::optim::SGD>(
        this->model_, [](const std::vector<Tensor>& p) { return braid::optim::SGD(p, kSgd); }));
  }
  Tensor step() override {
    optimizer_->zero_grad();
    Tensor loss = Kind::loss(this->model_, this->batch_);
    loss.backward();
    optimizer_->reduce();
    Kind::between(this->parameters_);
    optimizer_->step();
    return loss;
  }
  void count_memory(parallel::DataParallelReport::Recording& recording) const override {
    recording.count_memory(this->model_, *optimizer_);
  }

 private:
  std::unique_ptr<parallel::LocalUpdate<braid::optim::SGD>> optimizer_;
};

template <class Kind>
std::unique_ptr<Training> make(const std::vector<Device>& devices, std::int64_t rows,
                               Update update) {
  if (update == Update::local) return std::make_unique<Local<Kind>>(devices, rows);
  return std::make_unique<Broadcast<Kind>>(devices, rows);
}

}  // namespace

std::vector<double> Training::losses(int count) {
  reset();
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const Tensor loss = step();
    values.push_back(loss.item<double>());
  }
  return values;
}

const std::vector<Net>& nets() {
  static const std::vector<Net> list = {
      {"mlp", "784-2048-2048-10", "rows", "mlp2048", 512, 256, 16, 10, true, make<Mlp>,
       [](std::int64_t rows, int steps) {
         return reference_losses({784, 2048, 2048, 10}, rows, false, steps);
       }},
      {"cnn", "convolutions 1-32-64 of 3x3, 1600-128-10", "images", "cnn", 128, 64, 16, 20, true,
       make<Images>,
       [](std::int64_t rows, int steps) { return reference_cnn_losses(rows, steps); }},
      {"lstm", "10,000 words, 2 LSTM layers of 200, 35 steps", "texts", "lstm_lm", 40, 20, 6, 6,
       false, make<Words>,
       [](std::int64_t texts, int steps) {
         return reference_lstm_lm_losses(steps, {.batch = texts});
       }},
      {"transformer", "a pre-norm block of width 256, 8 heads, 128 steps", "sequences", "block", 16,
       8, 6, 10, false, make<Sequences>,
       [](std::int64_t rows, int steps) { return block_reference(steps, rows); }},
  };
  return list;
}

}  // namespace bench::split

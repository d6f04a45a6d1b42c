#include "ddp/rows.hpp"

#include <cstdlib>
#include <optional>

#include "support/rows.hpp"

namespace bench::ddp {
namespace {

template <class Model> class Row final : public RankRow {
 public:
  /// `rows` of the batch of all ranks; this rank takes its own.
  Row(Model model, const braid::Tensor& x, const braid::Tensor& y, std::int64_t rows,
      parallel::Process& process)
      : model_(std::move(model), process),
        x_(x.narrow(0, process.rank() * rows, rows).contiguous()),
        y_(y.narrow(0, process.rank() * rows, rows).contiguous()) {
    reset();
  }
  void reset() override {
    const std::vector<braid::Tensor> all = braid::parameters(model_);
    fill(all);
    optimizer_.emplace(all, braid::optim::SgdOptions{.lr = kLearningRate});
  }
  braid::Tensor step() override {
    optimizer_->zero_grad();
    braid::Tensor loss = kCrossEntropy(model_(x_), y_);
    loss.backward();
    optimizer_->step();
    return loss;
  }

 private:
  parallel::DistributedDataParallel<Model> model_;
  braid::Tensor x_, y_;
  std::optional<braid::optim::SGD> optimizer_;
};

}  // namespace

std::unique_ptr<RankRow> make_row(const std::string& name, parallel::Process& process) {
  const auto at = name.find("_b");
  const std::string net = name.substr(0, at);
  const std::int64_t rows = at == std::string::npos ? 0 : std::atoll(name.c_str() + at + 2);
  const std::int64_t all = rows * process.size();
  const bool is_mlp = net.starts_with("mlp");
  const std::int64_t hidden = is_mlp ? std::atoll(net.c_str() + 3) : 0;
  if (rows < 1 || (is_mlp ? hidden < 1 : net != "cnn") || !name.ends_with("_ddp"))
    throw braid::ArgumentError("unknown row " + name);
  if (!is_mlp)
    return std::make_unique<Row<Cnn>>(Cnn{}, images(all), classes(all, 10), rows, process);
  return std::make_unique<Row<decltype(make_mlp(1))>>(make_mlp(hidden), input(all, 784),
                                                      classes(all, 10), rows, process);
}

}  // namespace bench::ddp

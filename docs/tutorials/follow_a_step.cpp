// One step of a DataParallel, with numbers that can be checked by head.
// docs/guides/follow_a_step.md follows it in gdb.
//   BRAID_CPU_DEVICES=2 ./follow_a_step
#include <braid/braid.hpp>

using namespace braid;

// The rows are [1, 10], [2, 20], [3, 30] and [4, 40].
struct Rows {
  int64_t size() const { return 4; }
  Tensor get(int64_t index) const { return tensor({1.0F, 10.0F}) * (index + 1); }
};

// With both weights 1 and the bias 0, the output of a row is the sum of its numbers.
struct Model : nn::Module {
  nn::Linear fc{2, 1};
  Model() {
    nn::init::ones_(fc.weight);
    nn::init::zeros_(fc.bias);
  }
  Tensor operator()(const Tensor& x) const { return fc(x); }
  BRAID_FIELDS(fc)
};

// The loss is the sum of the outputs, so the gradient of a weight is the sum of its column.
void one_step(const parallel::DataParallel<Model>& model, const Tensor& batch) {
  Tensor output = model(batch);
  Tensor loss = sum(output);
  loss.backward();
  print("loss ", loss.item<float>());
}

int main() {
  data::DataLoader loader(Rows(), {.batch_size = 4});
  parallel::DataParallel model(Model{});
  to(model, best_device());
  for (Tensor batch : loader) one_step(model, batch);
  print("gradient of the weight ", model->fc.weight.grad().cpu(), ", of the bias ",
        model->fc.bias.grad().cpu());
}

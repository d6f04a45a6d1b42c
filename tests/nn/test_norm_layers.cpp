// Normalization and dropout layers: state, printing, train and eval, errors.
#include <braid/braid.hpp>

#include "refused.hpp"
#include "support/on_device.hpp"
#include "trees.hpp"

namespace braid::test::on_device {

TEST_CASE("norm layers: parameters, buffers and printing", "[nn][layers]") {
  CHECK(keys(state_dict(nn::LayerNorm(5))) == Names{"weight", "bias"});
  CHECK(keys(state_dict(nn::LayerNorm(Shape{2, 5}, {.bias = false}))) == Names{"weight"});
  CHECK(keys(state_dict(nn::LayerNorm(5, {.elementwise_affine = false}))) == Names{});
  CHECK(keys(state_dict(nn::RMSNorm(5))) == Names{"weight"});
  CHECK(keys(state_dict(nn::GroupNorm(2, 4))) == Names{"weight", "bias"});
  CHECK(keys(state_dict(nn::InstanceNorm2d(4))) == Names{});
  CHECK(keys(state_dict(nn::InstanceNorm1d(4, {.affine = true}))) == Names{"weight", "bias"});
  CHECK(str(nn::InstanceNorm2d(4)) == "InstanceNorm2d(4, eps=1e-05, affine=false)");
  CHECK(keys(state_dict(nn::BatchNorm2d(3))) ==
        Names{"weight", "bias", "running_mean", "running_var", "num_batches_tracked"});
  CHECK(keys(state_dict(nn::BatchNorm1d(3, {.affine = false, .track_running_stats = false}))) ==
        Names{});
  CHECK(str(nn::LayerNorm(5)) == "LayerNorm((5,), eps=1e-05, elementwise_affine=true)");
  CHECK(str(nn::LayerNorm(Shape{2, 5})) == "LayerNorm((2, 5), eps=1e-05, elementwise_affine=true)");
  CHECK(str(nn::GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=true)");
  CHECK(str(nn::BatchNorm1d(3)) ==
        "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)");
  CHECK(str(nn::Dropout(0.25)) == "Dropout(p=0.25)");
  CHECK(nn::BatchNorm1d(3).weight.to_vector<float>() == std::vector<float>(3, 1));
  CHECK(nn::BatchNorm1d(3).running_var.to_vector<float>() == std::vector<float>(3, 1));
}

TEST_CASE("norm layers: they compute what the functions of their name do", "[nn][layers]") {
  const Tensor x = random_tensor({4, 6, 5}, DType::float32, here(), 1);
  CHECK_SAME_BITS(home(nn::LayerNorm(5))(x).detach(), layer_norm(x, {5}));
  CHECK_SAME_BITS(home(nn::RMSNorm(5, {.eps = 1e-3}))(x).detach(), rms_norm(x, {5}, {}, 1e-3));
  CHECK_SAME_BITS(home(nn::GroupNorm(3, 6))(x).detach(), group_norm(x, 3));
  CHECK_SAME_BITS(home(nn::InstanceNorm1d(6))(x), group_norm(x, 6));
  CHECK_SAME_BITS(home(nn::InstanceNorm1d(6))(x[1]), group_norm(x, 6)[1]);
  CHECK_SAME_BITS(home(nn::InstanceNorm2d(6, {.eps = 1e-3, .affine = true}))(x.unsqueeze(3))
                      .squeeze(3)
                      .detach(),
                  group_norm(x, 6, {}, {}, 1e-3));
  CHECK_SAME_BITS(home(nn::BatchNorm1d(6))(x).detach(),
                  batch_norm(x, Tensor(), Tensor(), {}, {}, true));
  CHECK_SAME_BITS(home(nn::BatchNorm2d(6))(x.unsqueeze(3)).squeeze(3).detach(),
                  batch_norm(x, Tensor(), Tensor(), {}, {}, true));
}

TEST_CASE("BatchNorm: train writes the buffers, eval reads them; without tracking there are none",
          "[nn][layers]") {
  const Tensor x = random_tensor({8, 3}, DType::float32, here(), 2);
  nn::BatchNorm1d bn = home(nn::BatchNorm1d(3));
  for (int i = 1; i <= 3; ++i) {
    (void)bn(x);
    CHECK(bn.num_batches_tracked.item<int>() == i);
  }
  const Tensor mean = bn.running_mean.clone(), var = bn.running_var.clone();
  eval(bn);
  CHECK_SAME_BITS(bn(x).detach(), batch_norm(x, mean, var));
  CHECK_SAME_BITS(bn.running_mean, mean);
  CHECK(bn.num_batches_tracked.item<int>() == 3);
  nn::BatchNorm1d bare = home(nn::BatchNorm1d(3, {.track_running_stats = false}));
  const Tensor y = bare(x).detach();
  eval(bare);
  CHECK_SAME_BITS(bare(x).detach(), y);
  // Without momentum, the statistics are the mean over all batches.
  nn::BatchNorm1d cumulative = home(nn::BatchNorm1d(3, {.momentum = {}}));
  (void)cumulative(x);
  (void)cumulative(x * 3.0);
  CHECK(allclose(cumulative.running_mean, x.mean({0}) * 2.0, 1e-5, 1e-6));
  // A trained state can be loaded into another layer.
  nn::BatchNorm1d other = home(nn::BatchNorm1d(3));
  load_state_dict(other, state_dict(bn));
  CHECK_SAME_BITS(other.running_var, var);
  CHECK(other.num_batches_tracked.item<int>() == 3);
}

TEST_CASE("dropout layers: only in training", "[nn][layers]") {
  nn::Dropout drop(0.5);
  const Tensor x = ones({1000});
  const double kept = drop(x).sum().item<double>() / 2;
  CHECK((kept > 420 && kept < 580));
  eval(drop);
  CHECK(drop(x).id() == x.id());
  CHECK(nn::Dropout2d(1)(ones({2, 3, 2, 2})).sum().item<double>() == 0);
}

TEST_CASE("norm and dropout layers: bad inputs", "[nn][layers][errors]") {
  refuses<ArgumentError>("")({
      {"LayerNorm: expected sizes >= 0*", [] { nn::LayerNorm(-1); }},
      {"GroupNorm: expected num_groups >= 1 that divides num_channels, got 3 and 4",
       [] { nn::GroupNorm(3, 4); }},
      {"GroupNorm: *got 0 and 4", [] { nn::GroupNorm(0, 4); }},
      {"BatchNorm1d: expected num_features >= 0, got -1", [] { nn::BatchNorm1d(-1); }},
      {"InstanceNorm2d: expected num_features >= 0, got -1", [] { nn::InstanceNorm2d(-1); }},
      {"batch_norm: expected more than 1 value per channel when training, got input size [1, 3]",
       [] { return home(nn::BatchNorm1d(3))(ones({1, 3})); }},
      {"instance_norm: expected more than 1 spatial element, got input size [4, 3, 1, 1]",
       [] { return home(nn::InstanceNorm2d(3))(ones({4, 3, 1, 1})); }},
      {"instance_norm: expected more than 1 spatial element, got input size [1, 3, 1]",
       [] { return home(nn::InstanceNorm1d(3))(ones({3, 1})); }},
      {"Dropout: expected 0 <= p <= 1, got 1.5", [] { nn::Dropout(1.5); }},
      {"Dropout1d: expected 0 <= p <= 1, got -0.5", [] { nn::Dropout1d(-0.5); }},
  });
  refuses<ShapeError>("")({
      {"LayerNorm: expected a normalized_shape*", [] { nn::LayerNorm(Shape{}); }},
      {"LayerNorm: expected at most 2^63 - 1 bytes, got [4294967296, "
       "4294967296]",
       [] { nn::LayerNorm(Shape{1LL << 32, 1LL << 32}, {.elementwise_affine = false}); }},
      {"RMSNorm: expected at most 2^63 - 1 bytes*",
       [] { nn::RMSNorm(Shape{1LL << 32, 1LL << 32}, {.elementwise_affine = false}); }},
      {"layer_norm: expected x that ends in normalized_shape [5], got [2, 4]",
       [] { return home(nn::LayerNorm(5))(ones({2, 4})); }},
      {"GroupNorm: expected x [n, 4, ..], got [2, 8]",
       [] { return home(nn::GroupNorm(2, 4))(ones({2, 8})); }},
      {"InstanceNorm1d: expected x of rank 3 or 2 with 3 features in dim 1, got [4, 2, 5]",
       [] { return home(nn::InstanceNorm1d(3))(ones({4, 2, 5})); }},
      {"InstanceNorm2d: expected x of rank 4 or 3 with 3 features in dim 0, got [4, 2]",
       [] { return home(nn::InstanceNorm2d(3))(ones({4, 2})); }},
      {"BatchNorm1d: expected x of rank 2 or 3 with 3 features in dim 1, got [4, 2]",
       [] { return home(nn::BatchNorm1d(3))(ones({4, 2})); }},
      {"BatchNorm2d: expected x of rank 4 with 3 features in dim 1, got [4, 3]",
       [] { return home(nn::BatchNorm2d(3))(ones({4, 3})); }},
  });
}

}  // namespace braid::test::on_device

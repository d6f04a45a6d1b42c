// Layers for images: initial values, printing, errors. Channels-last layout is kept from one
// convolution to the next.
#include <braid/braid.hpp>
#include <cmath>

#include "refused.hpp"

using namespace braid;
using braid::test::refuses;

namespace {

double largest(const Tensor& t) { return max(abs(t)).item<double>(); }

struct Net : nn::Module {
  nn::Conv2d conv1{1, 8, 3}, conv2{8, 16, 3, {.padding = 1}};
  nn::MaxPool2d pool{2};
  nn::Linear fc{16 * 3 * 3, 4};
  Tensor operator()(const Tensor& x) const {
    return fc(pool(relu(conv2(pool(relu(conv1(x)))))).flatten(1));
  }
  BRAID_FIELDS(conv1, conv2, pool, fc)
};

}  // namespace

TEST_CASE("images: layers print as PyTorch's", "[nn][images]") {
  CHECK(str(nn::Conv2d{1, 32, 3}) == "Conv2d(1, 32, kernel_size=(3, 3), stride=(1, 1))");
  const nn::Conv2dOptions o{
      .stride = 2, .padding = {1, 0}, .dilation = 2, .groups = 2, .bias = false};
  CHECK(str(nn::Conv2d{4, 6, {3, 2}, o}) ==
        "Conv2d(4, 6, kernel_size=(3, 2), stride=(2, 2), padding=(1, 0), dilation=(2, 2), "
        "groups=2, bias=false)");
  CHECK(str(nn::Conv2d{2, 2, 3, {.padding = "same"}}) ==
        "Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=same)");
  CHECK(str(nn::Conv1d{2, 4, 3, {.stride = 2, .padding = 1}}) ==
        "Conv1d(2, 4, kernel_size=(3,), stride=(2,), padding=(1,))");
  CHECK(str(nn::ConvTranspose2d{4,
                                6,
                                3,
                                {.stride = 2,
                                 .padding = 1,
                                 .output_padding = 1,
                                 .groups = 2,
                                 .bias = false,
                                 .dilation = 2}}) ==
        "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), "
        "output_padding=(1, 1), groups=2, bias=false)");
  CHECK(str(nn::ConvTranspose1d{2, 4, 3, {.padding = 1}}) ==
        "ConvTranspose1d(2, 4, kernel_size=(3,), stride=(1,), padding=(1,))");
  CHECK(str(nn::MaxPool2d{2}) ==
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=false)");
  CHECK(str(nn::MaxPool2d{{3, 2}, {.stride = Size2(2), .padding = 1}}) ==
        "MaxPool2d(kernel_size=(3, 2), stride=2, padding=1, dilation=1, ceil_mode=false)");
  CHECK(str(nn::MaxPool1d{3}) ==
        "MaxPool1d(kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=false)");
  CHECK(str(nn::AvgPool2d{{3, 2}}) == "AvgPool2d(kernel_size=(3, 2), stride=(3, 2), padding=0)");
  CHECK(str(nn::AvgPool1d{2}) == "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))");
  CHECK(str(nn::AdaptiveAvgPool2d{1}) == "AdaptiveAvgPool2d(output_size=1)");
  CHECK(str(nn::AdaptiveAvgPool2d{{2, 3}}) == "AdaptiveAvgPool2d(output_size=(2, 3))");
  CHECK(str(nn::AdaptiveAvgPool1d{4}) == "AdaptiveAvgPool1d(output_size=4)");
  CHECK(str(nn::AdaptiveMaxPool2d{2}) == "AdaptiveMaxPool2d(output_size=2)");
  CHECK(str(nn::Upsample{{.scale_factor = 2.0}}) == "Upsample(scale_factor=2.0, mode='nearest')");
  CHECK(str(nn::Upsample{{.size = Size2(4, 5), .mode = Interpolation::bilinear}}) ==
        "Upsample(size=(4, 5), mode='bilinear')");
  CHECK(str(nn::Upsample{{.scale_factor = Factor2(2.5, 1), .mode = Interpolation::bilinear}}) ==
        "Upsample(scale_factor=(2.5, 1.0), mode='bilinear')");
}

TEST_CASE("images: layers start in PyTorch's range", "[nn][images]") {
  const nn::Conv2d conv{6, 32, {3, 5}, {.groups = 2}};
  CHECK(conv.weight.shape() == Shape{32, 3, 3, 5});
  CHECK(conv.bias.shape() == Shape{32});
  const double bound = 1 / std::sqrt(3.0 * 3 * 5);
  CHECK(largest(conv.weight) <= bound);
  CHECK(largest(conv.weight) > 0.95 * bound);
  CHECK(largest(conv.bias) <= bound);
  CHECK(largest(conv.bias) > 0.6 * bound);
  const nn::ConvTranspose1d wide{8, 32, 4, {.groups = 2}};
  CHECK(wide.weight.shape() == Shape{8, 16, 4});
  CHECK(largest(wide.weight) <= 1 / std::sqrt(16.0 * 4));
  CHECK(largest(wide.weight) > 0.95 / std::sqrt(16.0 * 4));
  CHECK(!nn::Conv1d{1, 1, 1, {.bias = false}}.bias.defined());
  CHECK(nn::Conv1d{1, 1, 1, {.dtype = DType::float64}}.weight.dtype() == DType::float64);
}

TEST_CASE("images: layers are refused with their name", "[nn][images][errors]") {
  refuses<ArgumentError>("Conv")({
      {"2d: expected in_channels >= 1, got 0", [] { nn::Conv2d{0, 1, 1}; }},
      {"2d: expected out_channels >= 1, got -1", [] { nn::Conv2d{1, -1, 1}; }},
      {"2d: expected kernel_size >= 1, got 0", [] { nn::Conv2d{1, 1, {2, 0}}; }},
      {"2d: expected groups >= 1, got 0", [] { nn::Conv2d{1, 1, 1, {.groups = 0}}; }},
      {"2d: expected groups to divide in_channels 3, got 2",
       [] { nn::Conv2d{3, 2, 1, {.groups = 2}}; }},
      {"1d: expected groups to divide out_channels 3, got 2",
       [] { nn::Conv1d{2, 3, 1, {.groups = 2}}; }},
      {"Transpose1d: expected kernel_size >= 1, got -1", [] { nn::ConvTranspose1d{2, 3, -1}; }},
      {"Transpose2d: expected groups to divide in_channels 3, got 2",
       [] { nn::ConvTranspose2d{3, 2, 1, {.groups = 2}}; }},
  });
  constexpr std::int64_t kLarge = std::int64_t{1} << 30;
  refuses<ShapeError>("Conv")({
      {"2d: expected at most 2^63 - 1 bytes, got [1073741824, 1073741824, 1048576, "
       "1048576]",
       [] { nn::Conv2d{kLarge, kLarge, 1 << 20}; }},
      {"1d: expected at most 2^63 - 1 bytes, got [1073741824, 1073741824, 1048576]",
       [] { nn::Conv1d{kLarge, kLarge, 1 << 20}; }},
      {"Transpose2d: expected at most 2^63 - 1 bytes*",
       [] { nn::ConvTranspose2d{kLarge, kLarge, 1 << 20}; }},
      {"Transpose1d: expected at most 2^63 - 1 bytes*",
       [] { nn::ConvTranspose1d{kLarge, kLarge, 1 << 20}; }},
  });
}

TEST_CASE("images: from convolution to convolution no layout is changed", "[nn][images]") {
  const Tensor x = randn({2, 3, 6, 6});
  const Tensor y = conv2d(x, randn({4, 3, 3, 3}));
  CHECK(y.strides() == Shape{64, 1, 16, 4});  // channels last
  for (const Tensor& t :
       {relu(y), y + y, y * 2.0, max_pool2d(y, 2), avg_pool2d(y, 2), sub(y, relu(y))})
    CHECK(t.strides()[1] == 1);
  CHECK(y.contiguous().strides() == Shape{64, 16, 4, 1});
  CHECK(max_pool2d(y.contiguous(), 2).is_contiguous());
  CHECK(equal(max_pool2d(y.contiguous(), 2), max_pool2d(y, 2)));
  CHECK(equal(y.flatten(1), y.contiguous().view({2, 64})));
  CHECK(equal(relu(y), relu(y.contiguous())));
}

TEST_CASE("images: a small net learns", "[nn][images]") {
  manual_seed(3);
  Net net;
  optim::SGD optimizer(parameters(net), {.lr = 0.1});
  const Tensor x = randn({16, 1, 14, 14}),
               labels = tensor({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    const Tensor loss = nn::cross_entropy(net(x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (i == 0) first = last;
  }
  CHECK(first > 1.2);
  CHECK(last < 0.1 * first);
}

#include "digit_reader.hpp"

#include <algorithm>

#include "net.hpp"

namespace digits {

namespace {

/// The border: what Braid throws inside of f leaves as the library's own exception.
template <class F> auto guarded(F&& f) {
  try {
    return f();
  } catch (const braid::Error& e) {
    throw Error(std::string("digit reader: ") + e.what());
  }
}

}  // namespace

struct Reader::Model {
  Net net;

  /// Three checks: the file is undamaged (load_safetensors), it says what it is, and its tensors
  /// have the names, shapes and dtypes of the network (load_state_dict).
  explicit Model(const std::string& file) {
    const braid::Safetensors content = braid::load_safetensors(file);
    const auto& said = content.metadata;
    braid::check(std::find(said.begin(), said.end(), kFormat) != said.end(),
                 file + ": expected the format '" + kFormat.second + "'");
    braid::load_state_dict(net, content.tensors);
    for (const braid::Tensor& weight : braid::parameters(net))
      braid::check(isfinite(weight).all().item<bool>(), file + ": a weight is infinite or NaN");
    braid::eval(net);
  }

  Reading read(const braid::Tensor& pixels) const {
    braid::check(pixels.numel() == 784,
                 braid::str("expected 28 x 28 grey pixels, got the shape ", pixels.shape()));
    const braid::NoGrad guard;  // of this thread and this call: the caller's settings stay
    const braid::Tensor row = pixels.to(braid::DType::float32).reshape({1, 784}) / 255.0;
    const braid::Tensor probability = softmax(net(row), 1)[0];
    const int digit = probability.argmax(0).item<int>();
    return {digit, probability[digit].item<double>()};
  }
};

Reader::Reader(const std::string& model_file)
    : model_(guarded([&] { return std::make_unique<const Model>(model_file); })) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Reading Reader::read(std::span<const std::uint8_t> pixels) const {
  return guarded([&] {
    return model_->read(braid::tensor(std::vector<std::uint8_t>(pixels.begin(), pixels.end())));
  });
}

Reading Reader::read_file(const std::string& file) const {
  return guarded([&] { return model_->read(braid::data::read_image(file, {.channels = 1})); });
}

}  // namespace digits

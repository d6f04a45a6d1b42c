#include <braid/nn/training/summary.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>

#include <braid/nn/training/accuracy.hpp>

namespace braid::training {
namespace {

std::string with_commas(std::int64_t n) {
  std::string text = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(text.begin() + at, ',');
  return text;
}

std::string in_bytes(std::int64_t n) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(n);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  std::ostringstream out;
  out << std::fixed << std::setprecision(unit == 0 ? 0 : 1) << value << ' ' << units[unit];
  return out.str();
}

}  // namespace

namespace detail {

Summary summary_of(const tree::Flat& flat) {
  const std::vector<std::size_t> first = flat.first_of();
  Summary summary;
  for (std::size_t n = 0; n < flat.nodes.size(); ++n) {
    const tree::Node& node = flat.nodes[n];
    Summary::Layer layer{
        .path = flat.path(node),
        .type = std::string(::braid::detail::short_type_name(node.type->signature)),
        .shapes = {}};
    if (node.type->extra) layer.type += '(' + node.type->extra(node.object) + ')';
    for (std::size_t i = 0; i < flat.leaves.size(); ++i) {
      const tree::Leaf& leaf = flat.leaves[i];
      if (leaf.parent != static_cast<std::int32_t>(n) || leaf.kind == tree::Kind::tensor ||
          !leaf.tensor->defined())
        continue;
      layer.shapes +=
          str(layer.shapes.empty() ? "" : ", ",
              leaf.name.is_index ? std::to_string(leaf.name.index) : std::string(leaf.name.text),
              ' ', leaf.tensor->shape());
      if (first[i] != i) continue;
      const std::int64_t count = leaf.tensor->numel();
      (leaf.kind == tree::Kind::parameter ? layer.parameters : layer.buffers) += count;
      if (leaf.tensor->requires_grad()) layer.trained += count;
      layer.bytes += count * static_cast<std::int64_t>(size_of(leaf.tensor->dtype()));
    }
    const bool has_parts = std::any_of(
        flat.nodes.begin(), flat.nodes.end(),
        [&](const tree::Node& other) { return other.parent == static_cast<std::int32_t>(n); });
    if (layer.shapes.empty() && (has_parts || !node.type->training)) continue;
    summary.parameters += layer.parameters;
    summary.trained += layer.trained;
    summary.buffers += layer.buffers;
    summary.bytes += layer.bytes;
    summary.layers.push_back(std::move(layer));
  }
  return summary;
}

InputAndLabel input_and_label(const tree::Flat& batch) {
  if (batch.leaves.size() != 2)
    throw ArgumentError(
        str("accuracy: expected items of two tensors, input and label, got ", batch.leaves.size()));
  return {*batch.leaves[0].tensor, *batch.leaves[1].tensor};
}

std::int64_t count_right(const Tensor& scores, const Tensor& label) {
  if (scores.dim() != 2 || label.dim() != 1 || scores.size(0) != label.size(0))
    throw ShapeError(str("accuracy: expected scores [n, classes] for labels [n], got ",
                         scores.shape(), " for ", label.shape()));
  if (label.dtype() != DType::int64)
    throw DTypeError(str("accuracy: expected labels of int64, got ", label.dtype()));
  const std::vector<std::int64_t> said = scores.argmax(1).to_vector<std::int64_t>(),
                                  wanted = label.to_vector<std::int64_t>();
  std::int64_t right = 0;
  for (std::size_t i = 0; i < said.size(); ++i) right += said[i] == wanted[i] ? 1 : 0;
  return right;
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const Summary& summary) {
  std::size_t path = 5, type = 4, shapes = 6;
  for (const Summary::Layer& l : summary.layers) {
    path = std::max(path, l.path.size());
    type = std::max(type, l.type.size());
    shapes = std::max(shapes, l.shapes.size());
  }
  const auto row = [&](const std::string& a, const std::string& b, const std::string& c,
                       const std::string& d, const std::string& e) {
    const auto padded = [](const std::string& text, std::size_t width) {
      return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
    };
    const auto right = [](const std::string& text, std::size_t width) {
      return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
    };
    out << padded(a, path) << "  " << padded(b, type) << "  " << padded(c, shapes) << "  "
        << right(d, 14) << "  " << right(e, 10) << '\n';
  };
  row("layer", "type", "shapes", "parameters", "bytes");
  for (const Summary::Layer& l : summary.layers)
    row(l.path.empty() ? "." : l.path, l.type, l.shapes, with_commas(l.parameters),
        in_bytes(l.bytes));
  row("all", "", "", with_commas(summary.parameters), in_bytes(summary.bytes));
  return out << "trained " << with_commas(summary.trained) << ", frozen "
             << with_commas(summary.parameters - summary.trained) << ", buffers "
             << with_commas(summary.buffers);
}

}  // namespace braid::training

#include <braid/nn/training/summary.hpp>

#include <algorithm>
#include <iomanip>
#include <map>
#include <ostream>

#include <braid/core/internal/multiply_adds.hpp>
#include <braid/nn/training/accuracy.hpp>

#include "module/observer.hpp"

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
    Summary::Layer layer;
    layer.path = flat.path(node);
    layer.type = std::string(::braid::detail::short_type_name(node.type->signature));
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

namespace {

/// Gives each layer the multiply-adds of its calls, without those of layers that it calls.
class Watch final : public nn::detail::LayerObserver {
 public:
  Watch(Summary& summary, const tree::Flat& flat) : summary_(summary) {
    for (const tree::Node& node : flat.nodes)
      if (node.type->training) layers_[node.type->training(node.object)] = flat.path(node);
  }

  void begins(const nn::Module& layer) override {
    give_to_innermost();
    Summary::Layer* row = nullptr;  // stays null for a layer without a row, such as an encoder
    if (const auto path = layers_.find(&layer.training); path != layers_.end())
      for (Summary::Layer& candidate : summary_.layers)
        if (candidate.path == path->second) row = &candidate;
    open_.push_back(row);
  }
  void called(const nn::LayerCall& call) override {
    give_to_innermost();
    Summary::Layer* const row = open_.back();
    open_.pop_back();
    if (!row) return;
    ++row->calls;
    row->output.clear();
    for (const Tensor& t : call.outputs)
      if (t.defined()) row->output += str(row->output.empty() ? "" : ", ", t.shape());
  }
  [[nodiscard]] std::int64_t count() const noexcept { return count_.count(); }

 private:
  void give_to_innermost() {
    const std::int64_t count = count_.count(), own = count - std::exchange(given_, count);
    if (!open_.empty() && open_.back()) open_.back()->multiply_adds += own;
  }

  Summary& summary_;
  std::map<const bool*, std::string> layers_;
  std::vector<Summary::Layer*> open_;  // the calls that run
  ::braid::detail::CountMultiplyAdds count_;
  std::int64_t given_ = 0;
};

}  // namespace

void add_call(Summary& summary, const tree::Flat& flat, const std::function<void()>& call) {
  const NoGrad guard;
  const EvalMode mode(flat);
  Watch watch(summary, flat);
  call();
  summary.called = true;
  summary.multiply_adds = watch.count();
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
  using Row = std::vector<std::string>;
  std::vector<Row> rows{{"layer", "type", "shapes"}};
  if (summary.called) rows[0].push_back("output");
  const std::size_t texts = rows[0].size();  // the columns after them are numbers
  rows[0].insert(rows[0].end(), {"parameters", "bytes"});
  if (summary.called) rows[0].push_back("multiply-adds");
  for (const Summary::Layer& l : summary.layers) {
    Row& row = rows.emplace_back(Row{l.path.empty() ? "." : l.path, l.type, l.shapes});
    if (summary.called) row.push_back(l.output);
    row.insert(row.end(), {with_commas(l.parameters), in_bytes(l.bytes)});
    if (summary.called) row.push_back(with_commas(l.multiply_adds));
  }
  Row& all = rows.emplace_back(Row(texts));
  all[0] = "all";
  all.insert(all.end(), {with_commas(summary.parameters), in_bytes(summary.bytes)});
  if (summary.called) all.push_back(with_commas(summary.multiply_adds));

  // numbers as wide as they were in tables without an example input
  std::vector<std::size_t> width(rows[0].size(), 0);
  width[texts] = 14, width[texts + 1] = 10;
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blank(width[i] - row[i].size(), ' ');
      out << (i > 0 ? "  " : "") << (i < texts ? row[i] + blank : blank + row[i]);
    }
    out << '\n';
  }
  return out << "trained " << with_commas(summary.trained) << ", frozen "
             << with_commas(summary.parameters - summary.trained) << ", buffers "
             << with_commas(summary.buffers);
}

}  // namespace braid::training

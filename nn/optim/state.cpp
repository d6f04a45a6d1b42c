#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/nn/optim.hpp>

namespace braid::optim {

void Optimizer::braid_fill(const tree::detail::Fill& fill, const tree::Name& name) {
  static constexpr tree::NodeType type{
      tree::Form::structure, ::braid::detail::signature<Optimizer>(), nullptr, nullptr, nullptr};
  const std::size_t self = fill.flat.nodes.size();
  fill.flat.nodes.push_back({&type, this, name, fill.parent, 0});
  const tree::detail::Fill inside{fill.flat, static_cast<std::int32_t>(self)};
  const std::string_view names[] = {traits_.states.m, traits_.states.v, traits_.states.s};
  std::int64_t fields = 0;
  for (std::size_t k = 0; k < kStates; ++k)
    if (!names[k].empty()) inside(tree::Name(names[k]), state_[k]), ++fields;
  inside(tree::Name("steps"), steps_);
  fill.flat.nodes[self].size = fields + 1;
}

/// Checks the dict. Copies its tensors, unless `states` and `step_counts` are null.
LoadReport Optimizer::match_state(std::span<const StateDict::value_type> dict,
                                  const LoadOptions& options, States* states,
                                  nn::Buffer* step_counts) const {
  LoadReport report;
  std::vector<std::string> wrong;
  std::unordered_map<std::string_view, const Tensor*> unused;
  for (const auto& [name, tensor] : dict) {
    if (!unused.try_emplace(name, &tensor).second)
      wrong.push_back(name + ": expected once, got twice");
  }
  const auto find = [&](std::string_view key) -> const Tensor* {
    const auto at = unused.find(key);
    if (at == unused.end()) return nullptr;
    const Tensor* value = at->second;
    unused.erase(at);
    return value;
  };
  const auto fits = [&](const std::string& key, const Tensor& value, const Shape& shape,
                        DType dtype) {
    if (!value.defined()) wrong.push_back(key + ": expected a tensor, got an undefined one");
    else if (value.shape() != shape)
      wrong.push_back(str(key, ": expected shape ", shape, ", got ", value.shape()));
    else if (value.dtype() != dtype)
      wrong.push_back(str(key, ": expected ", dtype, ", got ", value.dtype()));
    else return true;
    return false;
  };

  const NoGrad guard;
  std::vector<std::int64_t> steps(parameters_.size(), 0);
  const Tensor* counts = find("steps");
  if (!counts) {
    wrong.emplace_back("steps: is missing");
  } else if (fits("steps", *counts, steps_.shape(), DType::int64)) {
    steps = counts->to_vector<std::int64_t>();
    for (const std::int64_t count : steps) {
      if (count < 0) wrong.push_back(str("steps: expected counts >= 0, got ", count));
      // the bias corrections are computed in double, which is exact up to there
      if (count > std::int64_t{1} << 53)
        wrong.push_back(str("steps: expected counts <= 2^53, got ", count));
    }
  }
  const std::string_view names[] = {traits_.states.m, traits_.states.v, traits_.states.s};
  std::size_t loaded = 1;
  for (std::size_t k = 0; k < kStates; ++k) {
    if (states) (*states)[k].resize(state_[k].size());
    for (std::size_t i = 0; i < state_[k].size(); ++i) {
      if (!keeps(group_of_[i], k)) continue;
      const Tensor& p = parameters_[i];
      const std::string key = str(names[k], '.', i);
      const Tensor* value = find(key);
      if (!value) {
        if (steps[i] > 0)
          wrong.push_back(
              str(key, ": is missing, and parameter ", i, " was updated ", steps[i], " times"));
      } else if (fits(key, *value, p.shape(), p.dtype()) && wrong.empty()) {
        if (states) (*states)[k][i] = nn::Buffer(value->detach().to(p.device(), p.dtype(), true));
        ++loaded;
      }
    }
  }
  for (const auto& [name, tensor] : dict) {
    if (!unused.contains(name)) continue;
    if (options.strict) wrong.push_back(name + ": was not expected");
    else report.unexpected.push_back(name);
  }
  if (!wrong.empty()) {
    std::string message =
        str("load_state_dict: expected the state of ", name_, " over ", parameters_.size(),
            parameters_.size() == 1 ? " parameter" : " parameters", ", got ", wrong.size(),
            wrong.size() == 1 ? " key that does not fit" : " keys that do not fit");
    for (const std::string& line : wrong) message += "\n  " + line;
    throw ArgumentError(message);
  }
  if (step_counts) *step_counts = nn::Buffer(counts->detach().to(Device(), DType::int64, true));
  report.loaded = loaded;
  return report;
}

LoadReport Optimizer::check_state(std::span<const StateDict::value_type> dict,
                                  const LoadOptions& options) const {
  return match_state(dict, options, nullptr, nullptr);
}

LoadReport Optimizer::load_state(std::span<const StateDict::value_type> dict,
                                 const LoadOptions& options) {
  States fresh;
  nn::Buffer fresh_steps;
  LoadReport report = match_state(dict, options, &fresh, &fresh_steps);
  state_.swap(fresh);
  steps_ = std::move(fresh_steps);
  ++loads_;
  return report;
}

}  // namespace braid::optim

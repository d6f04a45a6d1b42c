#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/nn/walks.hpp>

namespace braid::detail {

namespace {

constexpr std::string_view kPrefix = "module.";

using Entries = std::span<const StateDict::value_type>;

struct Target {
  std::string path;
  Tensor tensor;
};

bool is_saved(const tree::Leaf& leaf, bool tensors) {
  return (tensors || leaf.kind != tree::Kind::tensor) && leaf.tensor->defined();
}

std::vector<Target> targets_of(const tree::Flat& flat, bool tensors) {
  std::vector<Target> targets;
  for (const tree::Leaf& leaf : flat.leaves) {
    if (is_saved(leaf, tensors)) targets.push_back({flat.path(leaf), *leaf.tensor});
  }
  return targets;
}

/// Returns the dict's keys as the model names them: adds or removes `module.` if that is the
/// difference.
std::vector<std::string> keys_for(const std::vector<Target>& targets, Entries dict,
                                  const LoadOptions& options, LoadReport& report) {
  const auto starts = [](std::string_view key) { return key.starts_with(kPrefix); };
  const bool all_targets =
      std::all_of(targets.begin(), targets.end(), [&](const Target& t) { return starts(t.path); });
  const bool no_target =
      std::none_of(targets.begin(), targets.end(), [&](const Target& t) { return starts(t.path); });
  const bool all_keys =
      std::all_of(dict.begin(), dict.end(), [&](const auto& e) { return starts(e.first); });
  const bool no_key =
      std::none_of(dict.begin(), dict.end(), [&](const auto& e) { return starts(e.first); });
  const bool wanted =
      options.strip_prefix == StripPrefix::automatic && !targets.empty() && !dict.empty();
  if (wanted && all_keys && no_target) report.stripped = kPrefix;
  if (wanted && no_key && all_targets) report.added = kPrefix;
  std::vector<std::string> keys;
  keys.reserve(dict.size());
  for (const auto& [key, tensor] : dict)
    keys.push_back(report.added + key.substr(report.stripped.size()));
  return keys;
}

bool writable(const Tensor& t) {
  for (int i = 0; i < t.dim(); ++i) {
    if (t.shape()[i] > 1 && t.strides()[i] == 0) return false;
  }
  return true;
}

std::string joined(const char* what, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? str("\n  ", what, ": ") : std::string(", ")) + name;
  return text;
}

}  // namespace

void check_saves(const char* op, const tree::Flat& flat, bool tensors, const char* signature) {
  if (tensors) return;
  const auto plain = [](const tree::Leaf& leaf) { return leaf.kind == tree::Kind::tensor; };
  const auto there = [](const tree::Leaf& leaf) { return leaf.tensor->defined(); };
  if (std::all_of(flat.leaves.begin(), flat.leaves.end(), plain) &&
      std::any_of(flat.leaves.begin(), flat.leaves.end(), there)) {
    throw ArgumentError(str(op, ": expected parameters or buffers in ", short_type_name(signature),
                            ", got plain tensors alone: declare them as nn::Parameter or "
                            "nn::Buffer, or ask for them with {.tensors = true}"));
  }
}

StateDict state_of(const tree::Flat& flat, const StateDictOptions& options, const char* signature) {
  check_saves("state_dict", flat, options.tensors, signature);
  std::vector<StateDict::value_type> entries;
  for (const tree::Leaf& leaf : flat.leaves) {
    if (is_saved(leaf, options.tensors))
      entries.emplace_back(flat.path(leaf), leaf.tensor->detach());
  }
  return StateDict(std::move(entries));
}

LoadReport load_state(const tree::Flat& flat, Entries dict, const LoadOptions& options,
                      const char* signature) {
  check_saves("load_state_dict", flat, options.tensors, signature);
  LoadReport report;
  const std::vector<Target> targets = targets_of(flat, options.tensors);
  const std::vector<std::string> keys = keys_for(targets, dict, options, report);

  std::unordered_map<std::string_view, const Tensor*> values;
  std::vector<std::string> missing, unexpected, wrong;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!values.try_emplace(keys[i], &dict[i].second).second)
      wrong.push_back(keys[i] + ": expected once, got twice");
  }
  std::vector<std::pair<const Tensor*, const Tensor*>> writes;  // destination, source
  std::set<std::string_view> known;
  for (const Target& target : targets) {
    known.insert(target.path);
    const auto found = values.find(target.path);
    if (found == values.end()) {
      missing.push_back(target.path);
    } else if (const Tensor& value = *found->second; !value.defined()) {
      wrong.push_back(target.path + ": expected a tensor, got an undefined one");
    } else if (value.shape() != target.tensor.shape()) {
      wrong.push_back(
          str(target.path, ": expected shape ", target.tensor.shape(), ", got ", value.shape()));
    } else if (!writable(target.tensor)) {
      wrong.push_back(target.path +
                      ": expected a tensor whose elements each have their own memory, got an "
                      "expanded one in the model");
    } else if (value.dtype() != target.tensor.dtype()) {
      wrong.push_back(
          str(target.path, ": expected ", target.tensor.dtype(), ", got ", value.dtype()));
    } else {
      writes.emplace_back(&target.tensor, &value);
    }
  }
  for (const std::string& key : keys) {
    if (!known.contains(key)) unexpected.push_back(key);
  }
  if (!wrong.empty() || (options.strict && !(missing.empty() && unexpected.empty()))) {
    std::string details = options.strict
                              ? joined("missing", missing) + joined("unexpected", unexpected)
                              : std::string();
    for (const std::string& line : wrong) details += "\n  " + line;
    std::string prefix;
    if (!report.stripped.empty())
      prefix = str(" (after '", report.stripped, "' was taken off the dict's keys)");
    if (!report.added.empty())
      prefix = str(" (after '", report.added, "' was put before the dict's keys)");
    throw ArgumentError(str(
        "load_state_dict: expected the ", targets.size(), targets.size() == 1 ? " key" : " keys",
        " of ", short_type_name(signature), ", got ", missing.size(), " missing, ",
        unexpected.size(), " unexpected, ", wrong.size(), " that do not fit", prefix, details));
  }

  // Do everything that can fail first: copies from other devices, and copies of values that one of
  // the other writes would overwrite.
  const NoGrad guard;
  std::set<const Storage*> written;
  for (const auto& [into, from] : writes) written.insert(into->storage().get());
  std::vector<Tensor> staged;
  staged.reserve(writes.size());
  for (const auto& [into, from] : writes) {
    Tensor value = from->detach().to(into->device());
    const bool own = value.storage() == into->storage() &&
                     value.storage_offset() == into->storage_offset() &&
                     value.strides() == into->strides();
    staged.push_back(!own && written.contains(value.storage().get()) ? value.clone() : value);
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (staged[i].storage() != writes[i].first->storage()) writes[i].first->copy_(staged[i]);
  }
  report.loaded = writes.size();
  report.missing = std::move(missing);
  report.unexpected = std::move(unexpected);
  return report;
}

}  // namespace braid::detail

#include "distributed/module_sync.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

#include "copies.hpp"
#include "distributed/exchange.hpp"
#include "primitives/views.hpp"

namespace braid::parallel::distributed {
namespace {

constexpr std::size_t kFlatBytes = std::size_t{250} << 20;

/// One line for each parameter and buffer.
std::vector<std::string> describe(const tree::Flat& module) {
  std::vector<std::string> lines;
  const std::vector<std::size_t> first = module.first_of();
  for (std::size_t k = 0; k < module.leaves.size(); ++k) {
    const tree::Leaf& leaf = module.leaves[k];
    const Tensor& t = *leaf.tensor;
    if (!t.defined() || leaf.kind == tree::Kind::tensor || first[k] != k) continue;
    lines.push_back(str(leaf.kind == tree::Kind::parameter ? "parameter '" : "buffer '",
                        module.path(leaf), "' ", t.shape(), ", ", t.dtype(),
                        t.requires_grad() ? "" : ", without a gradient"));
  }
  return lines;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

std::size_t compare_models(ProcessCommunicator& ranks, const tree::Flat& module,
                           const std::string& error, std::size_t devices) {
  constexpr const char* kName = "DistributedDataParallel";
  std::string text = error.empty() ? std::string() : "!" + error + "\n";
  if (error.empty())
    for (const std::string& line : describe(module)) text += line + "\n";
  const auto hash = static_cast<std::int64_t>(std::hash<std::string>()(text));
  const auto hashes = exchange_numbers(
      ranks, {hash, static_cast<std::int64_t>(text.size()), static_cast<std::int64_t>(devices)},
      "models");
  bool same = true;
  std::int64_t most = 0;
  for (const auto& h : hashes) {
    same = same && h[0] == hashes.front()[0] && h[1] == hashes.front()[1];
    most = std::max(most, h[2]);
  }
  if (same && error.empty()) return static_cast<std::size_t>(most);
  const std::vector<std::string> texts = exchange_texts(ranks, text, "models");
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    if (texts[rank].starts_with("!"))
      throw ArgumentError(str(kName, ": ", texts[rank].substr(1, texts[rank].size() - 2),
                              same ? "" : str(" (rank ", rank, ")")));
  const std::vector<std::string> want = lines_of(texts.front());
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const std::vector<std::string> got = lines_of(texts[rank]);
    for (std::size_t i = 0; i < std::max(want.size(), got.size()); ++i) {
      if (i < want.size() && i < got.size() && want[i] == got[i]) continue;
      throw ArgumentError(
          str(kName, ": expected the same model on all ranks, got ",
              i < got.size() ? got[i] : std::string("no further parameter"), " on rank ", rank,
              " and ", i < want.size() ? want[i] : std::string("no further parameter"),
              " on rank 0 (", got.size(), " and ", want.size(), " parameters and buffers)"));
    }
  }
  return static_cast<std::size_t>(most);
}

std::vector<Tensor> tensors_of(const tree::Flat& module, bool parameters) {
  std::vector<Tensor> list;
  const std::vector<std::size_t> first = module.first_of();
  for (std::size_t k = 0; k < module.leaves.size(); ++k) {
    const tree::Leaf& leaf = module.leaves[k];
    if (!leaf.tensor->defined() || first[k] != k) continue;
    if (leaf.kind == (parameters ? tree::Kind::parameter : tree::Kind::buffer))
      list.push_back(*leaf.tensor);
  }
  return list;
}

void broadcast_values(ProcessCommunicator& ranks, std::span<const Tensor> tensors, int root,
                      bool counted, std::string_view name) {
  const NoGrad guard;
  const bool sends = ranks.rank() == root;
  std::map<DType, std::vector<Tensor>> by_type;
  for (const Tensor& t : tensors) by_type[t.dtype()].push_back(t.detach());
  for (const auto& [dtype, list] : by_type) {
    for (std::size_t begin = 0, end = 0; begin < list.size(); begin = end) {
      std::int64_t numel = 0;
      std::size_t bytes = 0;
      for (; end < list.size() && (end == begin || bytes + bytes_of(list[end]) <= kFlatBytes);
           ++end) {
        numel += list[end].numel();
        bytes += bytes_of(list[end]);
      }
      if (numel == 0) continue;
      const Tensor flat = make_tensor({numel}, dtype, list[begin].device());
      const auto part = [&](std::int64_t at, const Tensor& t) {
        return flat.narrow(0, at, t.numel()).reshape(t.shape());
      };
      std::int64_t at = 0;
      for (std::size_t k = begin; sends && k < end; at += list[k++].numel())
        part(at, list[k]).copy_(list[k]);
      ranks.start_broadcast(flat, root, name).wait();
      at = 0;
      for (std::size_t k = begin; !sends && k < end; at += list[k++].numel()) {
        const Tensor from = part(at, list[k]);
        if (counted || !list[k].is_contiguous()) {
          list[k].copy_(from);
          continue;
        }
        copy_flat(list[k].id()->data(), list[k].device(), from.id()->data(), from.device(),
                  bytes_of(from));
        list[k].storage()->expose();  // copies of it elsewhere are not reused
      }
      if (!sends && !device_context(flat.device()).host_memory) synchronize(flat.device());
    }
  }
}

}  // namespace braid::parallel::distributed

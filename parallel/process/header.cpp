#include "process/header.hpp"

#include <algorithm>
#include <cstring>

#include <braid/core/error.hpp>

namespace braid::parallel::process {
namespace {

CallKind kind_of(const Header& h) {
  return static_cast<CallKind>(std::min<std::uint8_t>(h.kind, 10));
}

/// True if the roots of the call are compared.
bool has_root(CallKind kind) { return kind == CallKind::broadcast || kind == CallKind::reduce; }
bool has_op(CallKind kind) {
  return kind == CallKind::reduce || kind == CallKind::all_reduce ||
         kind == CallKind::reduce_scatter;
}

std::string data_text(const Header& h) {
  Shape shape;
  for (int i = 0; i < std::min<int>(h.dims, kMaxRank); ++i)
    shape.push_back(h.shape[static_cast<std::size_t>(i)]);
  return str(static_cast<DType>(std::min<int>(h.dtype, kDTypeCount - 1)), " ", shape);
}

/// `rank 2 has float64 [3, 4], ranks 0, 1, 3 have float32 [3, 4]`: the smallest groups first.
template <class Text>
std::optional<std::string> differing(std::span<const Header> headers, const char* one,
                                     const char* many, const Text& text) {
  struct Group {
    std::string value;
    std::vector<int> ranks;
  };
  std::vector<Group> groups;
  for (std::size_t rank = 0; rank < headers.size(); ++rank) {
    std::string value = text(headers[rank]);
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const Group& g) { return g.value == value; });
    if (at == groups.end()) at = groups.insert(groups.end(), {std::move(value), {}});
    at->ranks.push_back(static_cast<int>(rank));
  }
  if (groups.size() == 1) return {};
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.ranks.size() < b.ranks.size(); });
  constexpr std::size_t kMost = 8;
  std::string all;
  for (std::size_t i = 0; i < std::min(groups.size(), kMost); ++i)
    all += str(i > 0 ? ", " : "", ranks_text(groups[i].ranks),
               groups[i].ranks.size() == 1 ? one : many, groups[i].value);
  if (groups.size() > kMost) all += str(", and ", groups.size() - kMost, " more differ");
  return all;
}

}  // namespace

Header header_of(const Call& call) {
  Header h;
  h.number = call.number;
  // the counts of all_to_all may differ, and are compared separately
  h.count = call.kind == CallKind::all_to_all ? 0 : call.count;
  h.root = call.peer;
  h.kind = static_cast<std::uint8_t>(call.kind);
  h.op = static_cast<std::uint8_t>(call.op);
  h.dtype = static_cast<std::uint8_t>(call.dtype);
  h.dims = static_cast<std::uint8_t>(call.shape.rank());
  h.nccl = call.nccl ? 1 : 0;
  std::copy(call.shape.begin(), call.shape.end(), h.shape.begin());
  std::memcpy(h.name.data(), call.name.data(), std::min(call.name.size(), h.name.size() - 1));
  return h;
}

std::optional<std::string> mismatch(std::span<const Header> headers) {
  const auto same = [&](const auto& equal) {
    return std::all_of(headers.begin(), headers.end(),
                       [&](const Header& h) { return equal(h, headers.front()); });
  };
  if (same([](const Header& a, const Header& b) {
        return a.number == b.number && a.count == b.count && a.root == b.root && a.kind == b.kind &&
               a.op == b.op && a.dtype == b.dtype && a.dims == b.dims && a.shape == b.shape &&
               a.nccl == b.nccl;
      }))
    return {};
  const Header& first = headers.front();
  if (const auto text = differing(headers, " is at call ", " are at call ",
                                  [](const Header& h) { return std::to_string(h.number); }))
    return str("collectives: ", *text);
  const std::string call = str("call ", first.number, ": ");
  if (const auto text = differing(
          headers, " calls ", " call ",
          [](const Header& h) {
            const std::string name(h.name.data(), ::strnlen(h.name.data(), h.name.size()));
            return str(name_of(kind_of(h)), name.empty() ? "" : "(", name, name.empty() ? "" : ")");
          });
      text && !same([](const Header& a, const Header& b) { return a.kind == b.kind; }))
    return call + *text;
  const CallKind kind = kind_of(first);
  const std::string where = str(name_of(kind), ", ", call);
  if (has_root(kind))
    if (const auto text = differing(headers, " has root ", " have root ",
                                    [](const Header& h) { return std::to_string(h.root); }))
      return where + *text;
  if (has_op(kind))
    if (const auto text = differing(headers, " has op ", " have op ", [](const Header& h) {
          return std::string(name_of(static_cast<ReduceOp>(std::min<std::uint8_t>(h.op, 4))));
        }))
      return where + *text;
  if (const auto text = differing(headers, " has ", " have ", data_text)) return where + *text;
  if (const auto text = differing(headers, " has elements: ", " have elements: ",
                                  [](const Header& h) { return std::to_string(h.count); }))
    return where + *text;
  if (const auto text = differing(
          headers, " has a tensor ", " have a tensor ",
          [](const Header& h) { return std::string(h.nccl ? "on a GPU" : "on the CPU"); }))
    return where + *text;
  return {};
}

}  // namespace braid::parallel::process

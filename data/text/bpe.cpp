#include <functional>
#include <queue>

#include <braid/data/bpe.hpp>

#include "text/tokens.hpp"
#include "text/unicode.hpp"

namespace braid::data {

const std::string& BytePairVocabulary::bytes(std::int64_t id) const {
  check_index("BytePairVocabulary", id, size());
  return tokens_[static_cast<std::size_t>(id)];
}

const BytePairVocabulary::Merge* BytePairVocabulary::merge_of(std::int64_t first,
                                                              std::int64_t second) const {
  const auto found =
      merges_.find((static_cast<std::uint64_t>(first) << 32) | static_cast<std::uint64_t>(second));
  return found == merges_.end() ? nullptr : &found->second;
}

/// A heap has the merges that are possible, so that a long piece takes n log n steps.
void BytePairVocabulary::encode_piece(std::string_view piece,
                                      std::vector<std::int64_t>& ids) const {
  constexpr std::size_t kNone = std::string_view::npos;
  struct Symbol {
    std::int64_t token;
    std::size_t before, after;
  };
  using Candidate = std::pair<std::int64_t, std::size_t>;  // rank, index of the first symbol
  std::vector<Symbol> symbols;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto merge_at = [&](std::size_t i) -> const Merge* {
    const std::size_t after = symbols[i].after;
    return after == kNone ? nullptr : merge_of(symbols[i].token, symbols[after].token);
  };
  const auto consider = [&](std::size_t i) {
    if (const Merge* merge = merge_at(i)) candidates.emplace(merge->rank, i);
  };
  for (std::size_t i = 0; i < piece.size(); ++i)
    symbols.push_back({of_byte_[static_cast<unsigned char>(piece[i])], i == 0 ? kNone : i - 1,
                       i + 1 == piece.size() ? kNone : i + 1});
  for (std::size_t i = 0; i < symbols.size(); ++i) consider(i);
  for (; !candidates.empty();) {
    const auto [rank, i] = candidates.top();
    candidates.pop();
    // a merge since then may have taken one of the two
    const Merge* merge = symbols[i].token < 0 ? nullptr : merge_at(i);
    if (merge == nullptr || merge->rank != rank) continue;
    Symbol &first = symbols[i], &second = symbols[first.after];
    first.token = merge->token;
    first.after = second.after;
    second.token = -1;
    if (first.after != kNone) symbols[first.after].before = i;
    if (first.before != kNone) consider(first.before);
    consider(i);
  }
  for (const Symbol& s : symbols)
    if (s.token >= 0) ids.push_back(s.token);
}

void BytePairVocabulary::encode_plain(std::string_view text, std::vector<std::int64_t>& ids) const {
  constexpr std::size_t kLongest = 64, kMost = 1 << 18;
  // where the tokens of a piece that was there before are
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, detail::first_piece(text));
    text.remove_prefix(piece.size());
    if (const auto found = known.find(piece); found != known.end()) {
      const auto [begin, end] = found->second;
      for (std::size_t i = begin; i < end; ++i) ids.push_back(std::int64_t{ids[i]});
      continue;
    }
    const std::size_t begin = ids.size();
    encode_piece(piece, ids);
    if (piece.size() <= kLongest && known.size() < kMost) known[piece] = {begin, ids.size()};
  }
}

Tensor BytePairVocabulary::encode(std::string_view text, bool special) const {
  std::vector<std::int64_t> ids;
  while (special && end_) {
    const std::size_t at = text.find(kEndOfText);
    if (at == text.npos) break;
    encode_plain(text.substr(0, at), ids);
    ids.push_back(*end_);
    text.remove_prefix(at + kEndOfText.size());
  }
  encode_plain(text, ids);
  return detail::as_tensor(ids);
}

std::string BytePairVocabulary::decode(const Tensor& tokens) const {
  std::string text;
  for (const std::int64_t id : detail::checked_tokens("BytePairVocabulary", tokens, size()))
    text += tokens_[static_cast<std::size_t>(id)];
  return text;
}

}  // namespace braid::data

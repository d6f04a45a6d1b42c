#include <algorithm>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/data/text.hpp>

#include "text/tokens.hpp"

namespace braid::data {
namespace {

using detail::checked_tokens;

constexpr std::int64_t kUnknownId = 0, kEndOfLineId = 1;

/// Calls f for every word and, with WordVocabulary::kEndOfLine, for the end of every line.
template <class F> void for_each_word(std::string_view text, F f) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    for (std::size_t at = 0; (at = line.find_first_not_of(kSpace, at)) != std::string_view::npos;) {
      const std::size_t end = std::min(line.find_first_of(kSpace, at), line.size());
      f(line.substr(at, end - at));
      at = end;
    }
    f(WordVocabulary::kEndOfLine);
    text.remove_prefix(std::min(newline + 1, text.size()));
  }
}

}  // namespace

WordVocabulary::WordVocabulary(std::string_view text, std::int64_t limit) {
  if (limit < 2)
    throw ArgumentError(str("WordVocabulary: expected a limit of at least 2, ", kUnknown, " and ",
                            kEndOfLine, ", got ", limit));
  ids_.emplace(kUnknown, static_cast<std::size_t>(kUnknownId));
  ids_.emplace(kEndOfLine, static_cast<std::size_t>(kEndOfLineId));
  struct Entry {
    std::int64_t count;
    std::string_view word;
  };
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<Entry> entries;  // in the order of first occurrence
  for_each_word(text, [&](std::string_view word) {
    const auto [place, is_new] = places.try_emplace(word, entries.size());
    if (is_new) entries.push_back({0, word});
    ++entries[place->second].count;
  });
  std::erase_if(entries, [&](const Entry& e) { return ids_.contains(e.word); });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.count > b.count; });
  if (limit - 2 < static_cast<std::int64_t>(entries.size()))
    entries.resize(static_cast<std::size_t>(limit - 2));
  words_ = {std::string(kUnknown), std::string(kEndOfLine)};
  for (const Entry& e : entries) {
    ids_.emplace(e.word, words_.size());
    words_.emplace_back(e.word);
  }
}

std::int64_t WordVocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? kUnknownId : static_cast<std::int64_t>(found->second);
}

const std::string& WordVocabulary::word(std::int64_t id) const {
  check_index("WordVocabulary", id, size());
  return words_[static_cast<std::size_t>(id)];
}

Tensor WordVocabulary::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for_each_word(text, [&](std::string_view word) { ids.push_back(id(word)); });
  return detail::as_tensor(ids);
}

std::string WordVocabulary::decode(const Tensor& tokens) const {
  std::string text;
  for (const std::int64_t id : checked_tokens("WordVocabulary", tokens, size())) {
    if (id == kEndOfLineId) {
      text += '\n';
    } else {
      if (!text.empty() && text.back() != '\n') text += ' ';
      text += words_[static_cast<std::size_t>(id)];
    }
  }
  return text;
}

CharVocabulary::CharVocabulary(std::string_view text) : ids_(256, -1) {
  for (const char c : text) ids_[static_cast<unsigned char>(c)] = 0;
  for (std::size_t byte = 0; byte < ids_.size(); ++byte) {
    if (ids_[byte] < 0) continue;
    ids_[byte] = size();
    characters_ += static_cast<char>(byte);
  }
}

Tensor CharVocabulary::encode(std::string_view text) const {
  Tensor tokens = make_tensor({static_cast<std::int64_t>(text.size())}, DType::int64, Device());
  auto* to = tokens.data<std::int64_t>();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (ids_[byte] < 0)
      throw ArgumentError(str("CharVocabulary: expected one of its ", size(),
                              " characters, got byte ", static_cast<int>(byte), " at position ",
                              i));
    to[i] = ids_[byte];
  }
  return tokens;
}

std::string CharVocabulary::decode(const Tensor& tokens) const {
  std::string text;
  for (const std::int64_t id : checked_tokens("CharVocabulary", tokens, size()))
    text += characters_[static_cast<std::size_t>(id)];
  return text;
}

}  // namespace braid::data

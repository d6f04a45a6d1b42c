#include "process/store.hpp"

#include <charconv>
#include <chrono>
#include <mutex>

#include <braid/core/error.hpp>

namespace braid::parallel::process {

void MemoryStore::put(std::string_view key, std::string value) {
  if (key.empty() || key.size() > kMaxKey)
    throw ArgumentError(str("store: expected a key of 1 to ", kMaxKey, " bytes, got ", key.size()));
  if (value.size() > kMaxValue)
    throw ArgumentError(
        str("store: expected a value of at most ", kMaxValue, " bytes, got ", value.size()));
  auto at = values_.find(key);
  const std::size_t before = at == values_.end() ? 0 : at->second.value.size();
  const std::size_t growth = at == values_.end() ? key.size() + value.size() : value.size();
  if ((at == values_.end() && values_.size() >= kMaxKeys) || bytes_ - before + growth > kMaxBytes)
    throw ArgumentError(
        str("store: expected at most ", kMaxKeys, " keys and ", kMaxBytes, " bytes, got more"));
  if (at == values_.end()) at = values_.emplace(std::string(key), Held{}).first;
  bytes_ = bytes_ - before + growth;
  at->second = {std::move(value), Clock::now()};
  changed_.notify_all();
}

void MemoryStore::set(std::string_view key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  put(key, std::string(value));
}

std::optional<Store::Entry> MemoryStore::get(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto at = values_.find(key);
  if (at == values_.end()) return {};
  return Entry{at->second.value,
               std::chrono::duration<double>(Clock::now() - at->second.set).count()};
}

std::string MemoryStore::wait(std::string_view key, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto at = values_.find(key); at != values_.end()) return at->second.value;
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout &&
        values_.find(key) == values_.end())
      throw CommTimeoutError(str("store: expected '", key, "' before the deadline, got none"));
  }
}

std::int64_t MemoryStore::add(std::string_view key, std::int64_t delta) {
  const std::lock_guard lock(mutex_);
  std::int64_t number = 0;
  if (const auto at = values_.find(key); at != values_.end()) {
    const std::string& text = at->second.value;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      throw ArgumentError(str("store: add: expected a number at '", key, "', got another value"));
  }
  if (__builtin_add_overflow(number, delta, &number))
    throw ArgumentError(str("store: add: expected a sum below 2^63 at '", key, "', got more"));
  put(key, std::to_string(number));
  return number;
}

std::string MemoryStore::compare_set(std::string_view key, std::string_view expected,
                                     std::string_view value) {
  const std::lock_guard lock(mutex_);
  const auto at = values_.find(key);
  const std::string_view present = at == values_.end() ? std::string_view() : at->second.value;
  if (present != expected) return std::string(present);
  put(key, std::string(value));
  return std::string(value);
}

void MemoryStore::append(std::string_view key, std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto at = values_.find(key);
  put(key, (at == values_.end() ? std::string() : at->second.value) + std::string(text));
}

}  // namespace braid::parallel::process

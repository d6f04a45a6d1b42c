#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace braid::parallel::process {

using Clock = std::chrono::steady_clock;

/// A timeout as a duration; 30 years at most, so that the sum with a time does not overflow.
[[nodiscard]] inline Clock::duration duration_of(double seconds) {
  constexpr double kMost = 1e9;
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds < kMost ? seconds : kMost));
}
[[nodiscard]] inline Clock::time_point after(double seconds) {
  return Clock::now() + duration_of(seconds);
}

/// A key-value store that the ranks use to meet, and to tell each other how far they are. Never for
/// tensors. Any thread may use it.
class Store {
 public:
  // What a store holds is limited, so that no peer can fill the memory of rank 0.
  static constexpr std::size_t kMaxKey = 256, kMaxValue = 64 * 1024, kMaxKeys = 1 << 20,
                               kMaxBytes = std::size_t{256} << 20;
  struct Entry {
    std::string value;
    double age = 0;  ///< seconds since it was set
  };

  virtual ~Store() = default;
  virtual void set(std::string_view key, std::string_view value) = 0;
  [[nodiscard]] virtual std::optional<Entry> get(std::string_view key) = 0;
  /// Waits until the key is there.
  ///
  /// Throws    CommTimeoutError
  virtual std::string wait(std::string_view key, Clock::time_point deadline) = 0;
  /// Adds to a number, 0 if there is none, and returns the sum.
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;
  /// Sets the value if the present one is `expected` (empty: there is none). Returns the value that
  /// is there afterwards.
  virtual std::string compare_set(std::string_view key, std::string_view expected,
                                  std::string_view value) = 0;
  /// Appends to a value.
  virtual void append(std::string_view key, std::string_view text) = 0;
};

/// The store in this process's memory: of ranks that are threads, and behind the server of rank 0.
class MemoryStore final : public Store {
 public:
  void set(std::string_view key, std::string_view value) override;
  std::optional<Entry> get(std::string_view key) override;
  std::string wait(std::string_view key, Clock::time_point deadline) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view value) override;
  void append(std::string_view key, std::string_view text) override;

 private:
  struct Held {
    std::string value;
    Clock::time_point set;
  };
  /// Replaces a value within the limits. Requires the lock.
  void put(std::string_view key, std::string value);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Held, std::less<>> values_;
  std::size_t bytes_ = 0;
};

/// The same store with a prefix before each key: of a part of the ranks.
class PrefixStore final : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}
  void set(std::string_view key, std::string_view value) override { store_->set(of(key), value); }
  std::optional<Entry> get(std::string_view key) override { return store_->get(of(key)); }
  std::string wait(std::string_view key, Clock::time_point deadline) override {
    return store_->wait(of(key), deadline);
  }
  std::int64_t add(std::string_view key, std::int64_t delta) override {
    return store_->add(of(key), delta);
  }
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view value) override {
    return store_->compare_set(of(key), expected, value);
  }
  void append(std::string_view key, std::string_view text) override {
    store_->append(of(key), text);
  }

 private:
  [[nodiscard]] std::string of(std::string_view key) const { return prefix_ + std::string(key); }
  std::shared_ptr<Store> store_;
  std::string prefix_;
};

}  // namespace braid::parallel::process

#pragma once
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

// The callbacks of at_end_of_backward(), which run when the last node of a backward is done.
namespace braid::detail {

class Joins {
 public:
  /// Thread-safe.
  void add(std::function<void()> join) {
    const std::lock_guard lock(mutex_);
    list_.push_back(std::move(join));
  }

  /// Runs the joins even if a node throws. In that case the errors of the joins, such as a wait for
  /// a lost device, are follow-up errors and are ignored.
  class Scope {
   public:
    explicit Scope(Joins& joins) : joins_(joins) {}
    ~Scope() {
      while (!joins_.list_.empty()) {
        try {
          next();
        } catch (...) {}
      }
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    void run() const {
      while (!joins_.list_.empty()) next();
    }

   private:
    void next() const {
      const std::function<void()> join = std::move(joins_.list_.back());
      joins_.list_.pop_back();
      join();
    }
    Joins& joins_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> list_;
};

}  // namespace braid::detail

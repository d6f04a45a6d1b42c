#pragma once
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

// What a backward still has to wait for when its last node is done: at_end_of_backward.
namespace braid::detail {

class Joins {
 public:
  /// From any thread.
  void add(std::function<void()> join) {
    const std::lock_guard lock(mutex_);
    list_.push_back(std::move(join));
  }

  /// The joins happen where a node throws, too. Then what a wait for a lost device throws says
  /// nothing more.
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

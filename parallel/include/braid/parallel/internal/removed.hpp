#pragma once

// Options and names that are gone. Each is a compile error that names the new one.
namespace braid::parallel {
namespace detail {

struct RemovedShards {
  RemovedShards() = default;
  template <class T> RemovedShards(T) {
    static_assert(!sizeof(T*),
                  "braid: DataParallelOptions::shards is now DeterministicDataParallel(model, "
                  "devices(), {.virtual_replicas = 24})");
  }
};
struct RemovedUpdate {
  RemovedUpdate() = default;
  template <class T> RemovedUpdate(T) {
    static_assert(!sizeof(T*),
                  "braid: Update::local is gone: a DataParallel needs no option for "
                  "ReplicatedOptimizer(model, make)");
  }
};
struct UpdateValue {};

}  // namespace detail

struct Update {
  static constexpr detail::UpdateValue first{}, local{};
};
template <class O = void> struct LocalUpdate {
  template <class... A> explicit LocalUpdate(A&&...) {
    static_assert(!sizeof(O*), "braid: LocalUpdate is now ReplicatedOptimizer(model, make)");
  }
};

}  // namespace braid::parallel

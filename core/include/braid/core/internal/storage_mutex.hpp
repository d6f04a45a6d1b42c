#pragma once
#include <mutex>

#include <braid/core/storage.hpp>

namespace braid::detail {

/// The lock for updates of a storage's values that replicas may make at the same time (BatchNorm's
/// running statistics). Storages share a table of locks, so a thread holds one at a time.
[[nodiscard]] std::mutex& mutex_of(const Storage& storage) noexcept;

}  // namespace braid::detail

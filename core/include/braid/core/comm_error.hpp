#pragma once
#include <braid/core/error.hpp>

namespace braid {

/// A collective did not end within its deadline, and was aborted. It may work over a new communicator.
struct CommTimeoutError : CommError {
  using CommError::CommError;
  [[nodiscard]] bool retryable() const noexcept override { return true; }
};
/// Communicator::abort was called before, or while the collective ran.
struct CommAbortedError : CommError {
  using CommError::CommError;
};

}  // namespace braid

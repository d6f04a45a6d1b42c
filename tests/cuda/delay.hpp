#pragma once

namespace braid { class Stream; }

namespace braid::test {

/// Queues something on the stream that takes some milliseconds and does nothing: a kernel that
/// watches the clock, or, on emulated devices, a host function that sleeps. What is queued after it
/// comes late, so whoever does not wait for it reads old numbers.
void delay(Stream& stream);

}  // namespace braid::test

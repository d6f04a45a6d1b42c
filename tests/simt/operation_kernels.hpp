#pragma once
namespace braid::simt_tests {

/// True if these kernels are compiled with the checker's instrumentation. Without it nothing but
/// fences, atomics and vector accesses is seen.
[[nodiscard]] bool instrumented();

/// The first statement of a test that needs the checker: false where the build has none. A build
/// that is meant to check must not skip the test. In a macro, so that files without Catch can
/// include this one.
#if defined(BRAID_SIMT_CHECK)
#define SIMT_CHECKED_OR_RETURN() REQUIRE(::braid::simt_tests::instrumented())
#else
#define SIMT_CHECKED_OR_RETURN() \
  if (!::braid::simt_tests::instrumented()) return
#endif

void fill(float* p, float value, int n);
void copy(const float* from, float* to, int n);
void fill_bytes(unsigned char* p, int n);
void copy_bytes(const unsigned char* from, unsigned char* to, int n);
void count(unsigned* sum);
void read_count(const unsigned* sum, unsigned* out);

}  // namespace braid::simt_tests

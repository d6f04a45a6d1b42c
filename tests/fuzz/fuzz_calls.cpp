// Input: any bytes, from which some calls with random arguments are drawn. Each call returns
// tensors that can be read and differentiated, or throws one of Braid's exceptions. No call hangs,
// and none takes more memory than the limit.
// BRAID_FUZZ_SHOW=1 prints the calls of an input: braid_fuzz_calls FILE. BRAID_FUZZ_SKIP=chunk,LSTM
// omits calls, so that other failures become visible.
#include <cstdlib>
#include <new>

#include <braid/core/autograd.hpp>
#include <braid/core/device.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/random.hpp>

#include "calls.hpp"
#include "fuzz.hpp"

// Heap allocations beyond this size fail as if there were no memory left. AddressSanitizer's own
// operator new would end the process.
namespace {
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
void* allocate(std::size_t bytes, std::size_t alignment) {
  void* const p = bytes > kMostBytes ? nullptr
                  : alignment == 0
                      ? std::malloc(bytes == 0 ? 1 : bytes)
                      : std::aligned_alloc(alignment, (bytes + alignment) & ~(alignment - 1));
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace
void* operator new(std::size_t bytes) { return allocate(bytes, 0); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return bytes > kMostBytes ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return bytes > kMostBytes ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace braid::fuzz {
namespace {

constexpr int kCallsAnInput = 10;

const std::vector<Call>& calls() {
  static const std::vector<Call> all = [] {
    set_memory_capacity(Device(), kMostBytes);
    set_num_threads(1);
    (void)set_warning_handler([](std::string_view) {});
    if (std::getenv("BRAID_FUZZ_SHOW") != nullptr) Draw::show();
    std::vector<Call> list = op_calls();
    for (const std::vector<Call>& more : {tensor_calls(), nn_calls()})
      list.insert(list.end(), more.begin(), more.end());
    if (const char* skipped = std::getenv("BRAID_FUZZ_SKIP")) {
      const std::string names = str(',', skipped, ',');
      std::erase_if(list,
                    [&](const Call& c) { return names.find(str(',', c.op, ',')) != names.npos; });
    }
    return list;
  }();
  return all;
}

/// Reads every element, unless the tensor is too large to materialize.
void read(const Tensor& t) {
  if (!t.defined()) return;
  for (const I size : t.shape()) require(size >= 0);
  constexpr I kMost = 1 << 16;
  if (t.numel() > kMost) return;
  const NoGrad guard;
  touch(t.contiguous());
}

void make(const Call& call, Draw& d) {
  try {
    d.begin(call.op);
    const List results = call.make(d);
    Draw::say("done");
    for (const Tensor& t : results) read(t);
    if (!d.one_in(2)) return;
    for (const Tensor& t : results)
      if (t.defined() && t.requires_grad() && t.numel() < 4096) {
        sum(t).backward();
        break;
      }
  } catch (const InternalError&) {
    throw;  // a broken internal invariant
  } catch (const Error& e) {
    Draw::say(e.what());
    require(std::strlen(e.what()) <= 4000);
  }
}

}  // namespace
}  // namespace braid::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid::fuzz;
  Draw d(std::span(data, size));
  braid::manual_seed(d.bits());
  for (int i = 0; i < kCallsAnInput; ++i)
    make(calls()[static_cast<std::size_t>(d.below(static_cast<I>(calls().size())))], d);
  return 0;
}

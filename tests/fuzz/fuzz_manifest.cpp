// Any bytes: read_manifest gives a manifest that is written and read again the same, or throws
// FormatError.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include <braid/core/error.hpp>
#include <braid/nn/training/manifest.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  try {
    const training::Manifest manifest =
        training::read_manifest(io::MemorySource(std::as_bytes(std::span(data, size))));
    const std::string text = to_json(manifest);
    if (to_json(training::read_manifest(io::MemorySource(std::as_bytes(std::span(text))))) != text)
      std::abort();
  } catch (const FormatError& e) {
    if (std::strlen(e.what()) > 2000) std::abort();
  }
  return 0;
}

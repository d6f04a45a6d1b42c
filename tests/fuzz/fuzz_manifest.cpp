// Input: any bytes. read_manifest returns a manifest that is unchanged after it is written and read
// again, or throws FormatError.
#include <braid/nn/training/manifest.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  const auto read = [](auto bytes) {
    return training::read_manifest(io::MemorySource(std::as_bytes(bytes)));
  };
  fuzz::attempt([&] {
    const std::string text = to_json(read(std::span(data, size)));
    fuzz::require(to_json(read(std::span(text))) == text);
  });
  return 0;
}

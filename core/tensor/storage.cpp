#include <braid/core/storage.hpp>

#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>

namespace braid {

Ref<Storage> Storage::allocate(std::size_t bytes, Device device) {
  const DeviceContext& context = device_context(device);
  Ref<Storage> s(new Storage);
  s->device_ = device;
  if (bytes) {  // an empty tensor has no memory
    const Block block = context.backend->allocate(bytes, *context.stream);
    s->data_ = block.data;
    s->bytes_ = bytes;
    s->block_ = block.tag;
  }
  return s;
}

Ref<Storage> Storage::wrap(void* data, std::size_t bytes, Device device, std::function<void()> deleter) {
  (void)device_context(device);  // must exist
  Ref<Storage> s(new Storage);
  s->kind_ = Kind::wrapped;
  s->device_ = device;
  s->data_ = data;
  s->bytes_ = bytes;
  if (deleter) s->deleter_ = new std::function<void()>(std::move(deleter));
  return s;
}

Ref<Storage> Storage::slice(const Ref<Storage>& whole, std::size_t offset, std::size_t bytes) {
  if (offset > whole->bytes_ || bytes > whole->bytes_ - offset)
    throw InternalError(str("Storage::slice: expected a part of ", whole->bytes_, " bytes, got ", bytes, " at ", offset));
  Ref<Storage> s(new Storage);
  s->kind_ = Kind::slice;
  s->device_ = whole->device_;
  s->data_ = static_cast<char*>(whole->data_) + offset;
  s->bytes_ = bytes;
  s->whole_ = whole;
  return s;
}

std::uint64_t Storage::id() const noexcept {
  static std::atomic<std::uint64_t> next{1};
  std::uint64_t id = id_.load(std::memory_order_relaxed);
  if (id) return id;
  const std::uint64_t fresh = next.fetch_add(1, std::memory_order_relaxed);
  return id_.compare_exchange_strong(id, fresh, std::memory_order_relaxed) ? fresh : id;
}

void Storage::destroy() const noexcept {
  if (kind_ == Kind::allocated) {
    if (data_) {
      const DeviceContext& context = device_context(device_);
      context.backend->release({data_, bytes_, block_}, *context.stream);
    }
  } else if (deleter_) {
    try {
      (*deleter_)();
    } catch (...) {  // a destructor does not throw; the owner's deleter failed after we were done with the memory
      warn("from_blob: the deleter threw an exception; it was dropped");
    }
    delete deleter_;
  }
  delete this;
}

}  // namespace braid

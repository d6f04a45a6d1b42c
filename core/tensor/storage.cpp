#include <braid/core/storage.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/internal/storage_mutex.hpp>

namespace braid {

struct Storage::Streams {
  // the stream that the memory was allocated for; null: the device's default stream
  std::shared_ptr<Stream> home;
  std::vector<std::shared_ptr<Stream>> others;  // other streams that use it
};

namespace {

/// Storages share them: a mutex in each would make <mutex> a part of every compilation.
using Mutexes = std::array<std::mutex, 64>;
Mutexes stream_mutexes;  // for the lists of streams

bool recorded() noexcept { return detail::recording_threads.load(std::memory_order_relaxed) != 0; }
void note_made(const Storage& storage) {
  if (recorded()) [[unlikely]]
    detail::note_made(storage);
}

/// Returns a pointer that keeps the stream alive. A device's default stream needs no owner, because
/// it is never destroyed.
std::shared_ptr<Stream> share(Stream& stream) {
  if (std::shared_ptr<Stream> shared = stream.weak_from_this().lock()) return shared;
  return {std::shared_ptr<Stream>(), &stream};
}

}  // namespace

std::mutex& detail::mutex_of(const Storage& storage) noexcept {
  static Mutexes mutexes;
  return mutexes[storage.id() % mutexes.size()];
}

Ref<Storage> Storage::allocate(std::size_t bytes, Device device) {
  const DeviceContext& context = device_context(device);
  Ref<Storage> s(new Storage);
  s->device_ = device;
  if (bytes) {  // an empty tensor has no memory
    Stream& stream = thread_state().streams ? current_stream(device) : *context.stream;
    std::unique_ptr<Streams> streams;
    if (&stream != context.stream && !context.host_memory)
      streams.reset(new Streams{share(stream), {}});
    const Block block = context.backend->allocate(bytes, stream);
    s->streams_ = streams.release();
    s->data_ = block.data;
    s->bytes_ = bytes;
    s->block_ = block.tag;
  }
  note_made(*s);
  return s;
}

Ref<Storage> Storage::allocate_pinned(std::size_t bytes, Device device) {
  PinnedAllocator& allocator = pinned_allocator_for("pin_memory", device);
  Ref<Storage> s(new Storage);
  s->kind_ = Kind::pinned;
  s->device_ = device;
  if (bytes) {
    const Block block = allocator.allocate(bytes);
    s->data_ = block.data;
    s->bytes_ = bytes;
    s->block_ = block.tag;
  }
  note_made(*s);
  return s;
}

Ref<Storage> Storage::wrap(void* data, std::size_t bytes, Device device,
                           std::function<void()> deleter) {
  (void)device_context(device);  // throws if the device does not exist
  if (const auto* const capture = detail::StepCapture::current();
      capture != nullptr && capture->device() == device)
    detail::StepCapture::refuse("from_blob",
                                "a call outside of a captured step, because a replay uses the same "
                                "memory again, got one inside");
  Ref<Storage> s(new Storage);
  s->kind_ = Kind::wrapped;
  s->expose();
  s->device_ = device;
  s->data_ = data;
  s->bytes_ = bytes;
  if (deleter) s->deleter_ = new std::function<void()>(std::move(deleter));
  note_made(*s);
  return s;
}

Ref<Storage> Storage::slice(const Ref<Storage>& whole, std::size_t offset, std::size_t bytes) {
  if (offset > whole->bytes_ || bytes > whole->bytes_ - offset)
    throw InternalError(str("Storage::slice: expected a part of ", whole->bytes_, " bytes, got ",
                            bytes, " at ", offset));
  Ref<Storage> s(new Storage);
  s->kind_ = Kind::slice;
  s->device_ = whole->device_;
  s->data_ = static_cast<char*>(whole->data_) + offset;
  s->bytes_ = bytes;
  s->whole_ = whole;
  if (auto* const capture = detail::StepCapture::current()) capture->sliced(*s, *whole);
  return s;
}

std::uint64_t Storage::id() const noexcept {
  static std::atomic<std::uint64_t> next{1};
  std::uint64_t id = id_.load(std::memory_order_relaxed);
  if (id) return id;
  const std::uint64_t fresh = next.fetch_add(1, std::memory_order_relaxed);
  return id_.compare_exchange_strong(id, fresh, std::memory_order_relaxed) ? fresh : id;
}

void Storage::record_stream(Stream& stream) {
  if (stream.device() != device_)
    throw DeviceError(str("record_stream: expected a stream of the tensor's device ", device_,
                          ", got one of ", stream.device()));
  if (const auto* const capture = detail::StepCapture::current();
      capture != nullptr && capture->device() == device_) {
    capture->check_stream(stream);
    return;  // the capture keeps the memory that it uses
  }
  if (kind_ == Kind::slice) return whole_->record_stream(stream);
  const DeviceContext& context = device_context(device_);
  if (kind_ == Kind::wrapped || !data_ || context.host_memory) return;
  const std::lock_guard lock(stream_mutexes[id() % stream_mutexes.size()]);
  const Stream* const home = streams_ && streams_->home ? streams_->home.get() : context.stream;
  if (&stream == home) return;
  if (!streams_) streams_ = new Streams;
  const auto same = [&](const std::shared_ptr<Stream>& other) { return other.get() == &stream; };
  if (std::none_of(streams_->others.begin(), streams_->others.end(), same))
    streams_->others.push_back(share(stream));
}

// Releases the memory on its home stream, after the work of the other streams that use it.
void Storage::release_in_order() const noexcept {
  const DeviceContext& context = device_context(device_);
  Stream& home = streams_->home ? *streams_->home : *context.stream;
  context.backend->release_after({data_, bytes_, block_}, home, streams_->others);
}

void Storage::destroy() const noexcept {
  if (recorded()) detail::note_destroyed(*this);
  if (kind_ == Kind::allocated) {
    if (data_) {
      const DeviceContext& context = device_context(device_);
      if (!streams_) context.backend->release({data_, bytes_, block_}, *context.stream);
      else release_in_order();
    }
    delete streams_;
  } else if (kind_ == Kind::pinned) {
    if (data_) pinned_allocator()->release({data_, bytes_, block_});
  } else if (deleter_) {
    try {
      (*deleter_)();
    } catch (...) {
      // destroy() must not throw, and Braid no longer needs the memory
      warn("from_blob: the deleter threw an exception; it was dropped");
    }
    delete deleter_;
  }
  delete this;
}

}  // namespace braid

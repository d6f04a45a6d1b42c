// The engine on Gloo, over TCP. Gloo's collectives block, so a thread of the engine runs them while
// the caller looks at its deadline. An abort breaks the connections, which ends every wait.
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "process/engine.hpp"

namespace {

using namespace braid::parallel::process;
using Milliseconds = std::chrono::milliseconds;

void write(BraidEngineText to, const std::string& text) {
  if (to.capacity == 0) return;
  const std::size_t n = std::min(text.size(), to.capacity - 1);
  std::memcpy(to.data, text.data(), n);
  to.data[n] = '\0';
}

/// Gloo's texts begin with a place in its sources: `[…/pair.cc:598] Connection closed by peer …`.
std::string plain(const std::exception& e) {
  std::string text = e.what();
  if (const auto end = text.find("] "); text.starts_with("[") && end != std::string::npos)
    text.erase(0, end + 2);
  return "gloo: " + text;
}

// ---- sums

template <class T> T sum_of(T a, T b) { return static_cast<T>(a + b); }
template <> std::int32_t sum_of(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
template <> std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class T> T product_of(T a, T b) { return static_cast<T>(a * b); }
template <> std::int32_t product_of(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}
template <> std::int64_t product_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

template <class T>
void combine(std::int32_t op, void* out, const void* a, const void* b, size_t n) {
  auto* const to = static_cast<T*>(out);
  const auto* const x = static_cast<const T*>(a);
  const auto* const y = static_cast<const T*>(b);
  const auto all = [&](auto f) {
    for (std::size_t i = 0; i < n; ++i) to[i] = f(x[i], y[i]);
  };
  switch (op) {
    case kBraidProduct: return all(&product_of<T>);
    case kBraidMin: return all([](T u, T v) { return std::min(u, v); });
    case kBraidMax: return all([](T u, T v) { return std::max(u, v); });
    default: return all([](T u, T v) { return sum_of(u, v); });
  }
}

/// Calls f with a null pointer of the element type.
template <class F> void with_type(std::int32_t type, F&& f) {
  switch (type) {
    case kBraidInt32: return f(static_cast<std::int32_t*>(nullptr));
    case kBraidInt64: return f(static_cast<std::int64_t*>(nullptr));
    case kBraidFloat32: return f(static_cast<float*>(nullptr));
    case kBraidFloat64: return f(static_cast<double*>(nullptr));
    default: return f(static_cast<std::uint8_t*>(nullptr));
  }
}

// ---- the store

class StoreOfRankZero final : public gloo::rendezvous::Store {
 public:
  StoreOfRankZero(const BraidEngineStore& store, std::string prefix, double timeout)
      : store_(store), prefix_(std::move(prefix)), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    char text[512] = {};
    if (store_.set(store_.context, (prefix_ + key).c_str(), data.data(), data.size(),
                   {text, sizeof text}) != 0)
      throw gloo::Exception(text);
  }
  std::vector<char> get(const std::string& key) override { return get(key, timeout_); }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) (void)get(key, timeout_);
  }
  void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override {
    for (const std::string& key : keys)
      (void)get(key, std::min(timeout_, static_cast<double>(timeout.count()) / 1000));
  }

 private:
  std::vector<char> get(const std::string& key, double seconds) {
    std::vector<char> value(std::size_t{64} * 1024);
    char text[512] = {};
    std::size_t size = 0;
    if (store_.get(store_.context, (prefix_ + key).c_str(), seconds, value.data(), value.size(),
                   &size, {text, sizeof text}) != 0)
      throw gloo::Exception(text);
    value.resize(size);
    return value;
  }
  BraidEngineStore store_;
  std::string prefix_;
  double timeout_;
};

// ---- the engine

/// What the engine's thread works on.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool given = false, done = false, ends = false, ended = false;  // with the mutex
  BraidEngineCall call{};                                         // with the mutex
  std::vector<std::int64_t> in_counts, out_counts;
  std::string error;  // with the mutex
  std::shared_ptr<gloo::rendezvous::Context> context;
};

/// Goes before the data of a message, because Gloo ends the process if more arrives than the
/// receiver has room for. The data then have a slot of their own, with this number.
struct MessageHeader {
  std::int64_t bytes = 0, dtype = 0;
  std::uint64_t number = 0;  // of those from this sender to this receiver
};

struct Message {
  std::mutex mutex;
  bool done = false;  // with the mutex
  std::string error;  // with the mutex
  MessageHeader header;
  std::unique_ptr<gloo::transport::UnboundBuffer> header_buffer, data;  // data: null without any
};

struct Gloo {
  std::shared_ptr<Shared> shared;
  std::shared_ptr<gloo::transport::Device> device;
  BraidEngineOpen options{};
  std::string address;
  std::map<int, std::uint64_t> sent;  // messages, by receiver
  std::atomic<bool> aborted{false};
};

Gloo& of(void* engine) { return *static_cast<Gloo*>(engine); }

template <class Options>
void add_or_copy(Options& options, const BraidEngineCall& call, bool input) {
  with_type(call.type, [&]<class T>(T*) {
    const auto n = static_cast<std::size_t>(call.count);
    if (input && call.in != call.out)
      options.setInput(static_cast<T*>(const_cast<void*>(call.in)), n);
    options.setOutput(static_cast<T*>(call.out), n);
    const std::int32_t op = call.op;
    options.setReduceFunction([op](void* out, const void* a, const void* b, size_t count) {
      combine<T>(op, out, a, b, count);
    });
  });
}

void run_call(const std::shared_ptr<gloo::rendezvous::Context>& context,
              const BraidEngineCall& call, std::vector<char>& scratch) {
  const auto bytes = static_cast<std::size_t>(call.count * call.element_bytes);
  auto* const in = static_cast<char*>(const_cast<void*>(call.in));
  auto* const out = static_cast<char*>(call.out);
  const auto ranks = static_cast<std::size_t>(context->size);
  switch (call.kind) {
    case kBraidBroadcast: {
      gloo::BroadcastOptions options(context);
      options.setOutput(call.peer == context->rank ? in : out, bytes);
      options.setRoot(call.peer);
      return gloo::broadcast(options);
    }
    case kBraidReduce: {
      gloo::ReduceOptions options(context);
      BraidEngineCall mine = call;
      if (call.peer != context->rank) {  // Gloo needs an output everywhere
        scratch.resize(bytes);
        mine.out = scratch.data();
      }
      add_or_copy(options, mine, true);
      options.setRoot(call.peer);
      return gloo::reduce(options);
    }
    case kBraidAllReduce: {
      gloo::AllreduceOptions options(context);
      add_or_copy(options, call, true);
      return gloo::allreduce(options);
    }
    case kBraidAllGather: {
      if (call.out_counts == nullptr) {
        gloo::AllgatherOptions options(context);
        if (in != out + static_cast<std::size_t>(context->rank) * bytes)
          options.setInput(in, bytes);
        options.setOutput(out, bytes * ranks);
        return gloo::allgather(options);
      }
      std::vector<std::size_t> counts;
      std::size_t offset = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        counts.push_back(static_cast<std::size_t>(call.out_counts[r] * call.element_bytes));
        if (r < static_cast<std::size_t>(context->rank)) offset += counts.back();
      }
      gloo::AllgathervOptions options(context);
      if (in != out + offset) options.setInput(in, counts[static_cast<std::size_t>(context->rank)]);
      options.setOutput(out, counts);
      return gloo::allgatherv(options);
    }
    case kBraidAllToAll: {
      std::vector<std::int64_t> sent, received;
      for (std::size_t r = 0; r < ranks; ++r) {
        sent.push_back(call.in_counts[r] * call.element_bytes);
        received.push_back(call.out_counts[r] * call.element_bytes);
      }
      gloo::AlltoallvOptions options(context);
      options.setInput(in, sent);
      options.setOutput(out, received);
      return gloo::alltoallv(options);
    }
    default: throw gloo::Exception("expected a collective, got another call");
  }
}

/// The engine's thread.
void work(const std::shared_ptr<Shared>& shared) {
  std::vector<char> scratch;
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->given || shared->ends; });
    if (!shared->given) {
      shared->ended = true;
      shared->changed.notify_all();
      return;
    }
    shared->given = false;
    const BraidEngineCall call = shared->call;
    lock.unlock();
    std::string error;
    try {
      run_call(shared->context, call, scratch);
    } catch (const std::exception& e) {
      error = plain(e);
    }
    lock.lock();
    shared->error = std::move(error);
    shared->done = true;
    shared->changed.notify_all();
  }
}

/// Ends every wait in the context: Gloo breaks all connections when a wait runs out of time.
void break_connections(gloo::Context& context) noexcept {
  try {
    char byte = 0;
    const auto buffer = context.createUnboundBuffer(&byte, 1);
    (void)buffer->waitRecv(nullptr, Milliseconds(1));
  } catch (...) {  // as intended
  }
}

std::unique_ptr<Gloo> connect(const BraidEngineOpen& options,
                              std::shared_ptr<gloo::transport::Device> device,
                              const std::string& prefix, int rank, int size) {
  auto gloo = std::make_unique<Gloo>();
  gloo->options = options;
  gloo->address = options.address;
  gloo->options.address = gloo->address.c_str();
  gloo->device = std::move(device);
  gloo->shared = std::make_shared<Shared>();
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  // The caller's deadline comes first.
  context->setTimeout(
      Milliseconds(static_cast<std::int64_t>(std::min(options.timeout * 2 + 5, 1e7) * 1000)));
  StoreOfRankZero store(options.store, prefix, options.timeout);
  context->connectFullMesh(store, gloo->device);
  gloo->shared->context = std::move(context);
  std::thread([shared = gloo->shared] { work(shared); }).detach();
  return gloo;
}

void library(BraidEngineText text) {
  write(text, "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." +
                  std::to_string(GLOO_VERSION_MINOR) + "." + std::to_string(GLOO_VERSION_PATCH));
}

void* open(const BraidEngineOpen* options, BraidEngineText error) {
  try {
    gloo::transport::tcp::attr where;
    where.hostname = options->address;
    return connect(*options, gloo::transport::tcp::CreateDevice(where), "gloo/", options->rank,
                   options->size)
        .release();
  } catch (const std::exception& e) {
    write(error, plain(e));
    return nullptr;
  }
}

std::int32_t rank(void* engine) { return of(engine).shared->context->rank; }
std::int32_t size(void* engine) { return of(engine).shared->context->size; }
// Gloo's messages are waited for one by one, each on a thread
std::int32_t link(void*) { return kBraidLinkPlain; }

std::int32_t run(void* engine, const BraidEngineCall* call, const BraidEnginePoll* poll,
                 BraidEngineText error) {
  Gloo& gloo = of(engine);
  Shared& shared = *gloo.shared;
  std::unique_lock lock(shared.mutex);
  if (gloo.aborted) return kBraidStopped;
  shared.call = *call;
  const auto keep = [&](std::vector<std::int64_t>& kept, const std::int64_t*& counts) {
    if (counts == nullptr) return;  // the thread may outlive this call
    kept.assign(counts, counts + shared.context->size);
    counts = kept.data();
  };
  keep(shared.in_counts, shared.call.in_counts);
  keep(shared.out_counts, shared.call.out_counts);
  shared.done = false;
  shared.given = true;
  shared.changed.notify_all();
  while (!shared.done) {
    (void)shared.changed.wait_for(lock, Milliseconds(1));
    if (shared.done) break;
    lock.unlock();
    const bool stopped = poll->stopped(poll->context) != 0;
    lock.lock();
    if (!stopped || shared.done) continue;
    gloo.aborted = true;
    lock.unlock();
    break_connections(*shared.context);
    lock.lock();
    (void)shared.changed.wait_for(lock, std::chrono::seconds(2), [&] { return shared.done; });
    return kBraidStopped;
  }
  if (shared.error.empty()) return kBraidDone;
  write(error, shared.error);
  return kBraidFailed;
}

// ---- messages

// 64 bits: outside of the slots of Gloo's collectives, whose first byte is 1 to 8.
std::uint64_t header_slot(std::int32_t tag) {
  return (std::uint64_t{0x7f} << 56) | static_cast<std::uint32_t>(tag);
}
std::uint64_t data_slot(std::uint64_t number) { return (std::uint64_t{0x7e} << 56) | number; }

std::string dtype_text(std::int64_t dtype) {
  const bool known = dtype >= 0 && dtype < static_cast<std::int64_t>(std::size(kBraidDTypes));
  return known ? kBraidDTypes[dtype] : "another dtype";
}

/// What is wrong with a message that arrives; empty if nothing is.
std::string mismatch(const MessageHeader& want, const MessageHeader& got, int peer) {
  const std::string where = "recv from rank " + std::to_string(peer) + ": expected a message of ";
  if (want.bytes != got.bytes)
    return where + std::to_string(want.bytes) + " bytes, got " + std::to_string(got.bytes);
  if (want.dtype != got.dtype)
    return where + dtype_text(want.dtype) + ", got " + dtype_text(got.dtype);
  return {};
}

void send(Message& message, const gloo::Context& context) {
  (void)message.header_buffer->waitSend(nullptr, context.getTimeout());
  if (message.data) (void)message.data->waitSend(nullptr, context.getTimeout());
}

void receive(Message& message, const gloo::Context& context, const MessageHeader& want, int peer) {
  (void)message.header_buffer->waitRecv(nullptr, context.getTimeout());
  if (const std::string wrong = mismatch(want, message.header, peer); !wrong.empty())
    throw gloo::Exception(wrong);
  if (!message.data) return;
  message.data->recv(peer, data_slot(message.header.number));
  (void)message.data->waitRecv(nullptr, context.getTimeout());
}

void* start(void* engine, const BraidEngineCall* call, BraidEngineText error) {
  Gloo& gloo = of(engine);
  try {
    auto* const message = new std::shared_ptr<Message>(std::make_shared<Message>());
    const bool sends = call->kind == kBraidSend;
    const MessageHeader mine{call->count * call->element_bytes, call->op,
                             sends ? gloo.sent[call->peer]++ : 0};
    gloo::Context& context = *gloo.shared->context;
    Message& of_call = **message;
    of_call.header_buffer = context.createUnboundBuffer(&of_call.header, sizeof(MessageHeader));
    if (mine.bytes > 0)
      of_call.data = context.createUnboundBuffer(sends ? const_cast<void*>(call->in) : call->out,
                                                 static_cast<std::size_t>(mine.bytes));
    if (sends) {
      of_call.header = mine;
      of_call.header_buffer->send(call->peer, header_slot(call->tag));
      if (of_call.data) of_call.data->send(call->peer, data_slot(mine.number));
    } else {
      of_call.header_buffer->recv(call->peer, header_slot(call->tag));
    }
    // A wait that runs out of time would break the context, so each message has a thread.
    std::thread([m = *message, context = gloo.shared->context, sends, mine, peer = call->peer] {
      std::string failure;
      try {
        if (sends) send(*m, *context);
        else receive(*m, *context, mine, peer);
      } catch (const std::exception& e) {
        failure = plain(e);
      }
      const std::lock_guard lock(m->mutex);
      m->error = std::move(failure);
      m->done = true;
    }).detach();
    return message;
  } catch (const std::exception& e) {
    write(error, plain(e));
    return nullptr;
  }
}

std::int32_t test(void*, void* request, BraidEngineText error) {
  auto* const message = static_cast<std::shared_ptr<Message>*>(request);
  std::string failure;
  {
    const std::lock_guard lock((*message)->mutex);
    if (!(*message)->done) return kBraidPending;
    failure = (*message)->error;
  }
  delete message;
  if (failure.empty()) return kBraidDone;
  write(error, failure);
  return kBraidFailed;
}

void* split(void* engine, const char* id, std::int32_t color, std::int32_t new_rank,
            std::int32_t new_size, BraidEngineText error) {
  if (color < 0) return nullptr;
  Gloo& gloo = of(engine);
  try {
    return connect(gloo.options, gloo.device, std::string("gloo/") + id, new_rank, new_size)
        .release();
  } catch (const std::exception& e) {
    write(error, plain(e));
    return nullptr;
  }
}

void abort(void* engine) {
  Gloo& gloo = of(engine);
  if (!gloo.aborted.exchange(true)) break_connections(*gloo.shared->context);
}

void close(void* engine, std::int32_t orderly) {
  const std::unique_ptr<Gloo> gloo(&of(engine));
  const std::shared_ptr<Shared> kept = gloo->shared;  // outlives the lock
  if (orderly == 0 && !gloo->aborted.exchange(true)) break_connections(*gloo->shared->context);
  Shared& shared = *gloo->shared;
  std::unique_lock lock(shared.mutex);
  shared.ends = true;
  shared.changed.notify_all();
  (void)shared.changed.wait_for(lock, std::chrono::seconds(2), [&] { return shared.ended; });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const BraidEngineTable* braid_engine() {
  static const BraidEngineTable table{kEngineVersion, 1,      "gloo", &library, &open,
                                      &rank,          &size,  &link,  &run,     &start,
                                      &test,          &split, &abort, &close};
  return &table;
}

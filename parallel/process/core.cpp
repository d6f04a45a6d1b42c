#include "process/core.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/trace.hpp>

#include "copies.hpp"
#include "process/collective_log.hpp"
#include "process/header.hpp"
#include "process/run_soon.hpp"

namespace braid::parallel::process {
namespace {

// How long an engine may take to return after it was stopped.
constexpr std::chrono::seconds kGrace{1};

static_assert(std::size(kBraidDTypes) == kDTypeCount);

}  // namespace

Core::Core(std::unique_ptr<HostEngine> engine, CoreOptions options)
    : engine_(std::move(engine)),
      options_(std::move(options)),
      rank_(engine_->rank()),
      size_(engine_->size()) {
  if (options_.ranks.empty())
    for (int r = 0; r < size_; ++r) options_.ranks.push_back(r);
  if (!options_.record) options_.record = std::make_shared<FlightRecord>();
  record_group_ = options_.record->add_group(options_.group, options_.ranks, options_.timeout);
}

void Core::start() {
  monitor_ = std::make_unique<Monitor>(
      options_.store, rank_, size_, options_.timeout, [this] { on_failure(); },
      [this] { watch(); });
  monitor_->start();
  const std::lock_guard lock(mutex_);
  std::thread thread([self = shared_from_this()] { self->loop(); });
  running_ = true;
  worker_ = thread.get_id();
  thread.detach();
}

void Core::stop(bool orderly) noexcept {
  bool stuck = false;
  {
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    orderly_ = orderly;
    wake_.notify_all();
    while (running_ && !stuck) {
      if (monitor_->failed() && failed_at_ != Clock::time_point::max()) {
        if (ended_.wait_until(lock, failed_at_ + 2 * kGrace) == std::cv_status::timeout) break;
      } else if (ends_at_ != Clock::time_point::max()) {
        const auto latest = ends_at_ + duration_of(options_.timeout) + kGrace;
        stuck = ended_.wait_until(lock, latest) == std::cv_status::timeout && running_;
      } else {
        ended_.wait_for(lock, kGrace);
      }
    }
  }
  if (stuck)
    monitor_->fail(FailureKind::timeout, str("rank ", rank_, ": the end of ", options_.engine_name,
                                             ", which all ranks have begun, is not complete after ",
                                             seconds_text(options_.timeout)));
  monitor_->stop();
}

std::shared_ptr<Work::State> Core::add(std::shared_ptr<Call> call) {
  if (monitor_->failed()) std::rethrow_exception(monitor_->failure());
  call->work = std::make_shared<Work::State>();
  call->queued = Clock::now();
  std::shared_ptr<Work::State> work = call->work;
  {
    const std::lock_guard lock(mutex_);
    if (failed_at_ != Clock::time_point::max()) {  // after the check above
      work->complete(monitor_->failure());
      return work;
    }
    if (stopping_) throw CommError(str(name_of(call->kind), ": the communicator has ended"));
    work->worker = worker_;
    if (is_collective(call->kind)) call->number = ++number_;
    call->rank = rank_;
    call->nccl = options_.nccl && NcclRank::takes(*call);
    call->record =
        options_.record->add(record_group_, call->nccl ? "nccl" : options_.engine_name, *call);
    queue_.push_back(std::move(call));
  }
  wake_.notify_one();
  return work;
}

std::int32_t Core::poll(void* core) noexcept {
  Core& self = *static_cast<Core*>(core);
  if (self.monitor_->failed() || Clock::now() > self.deadline_) return 1;
  (void)self.look_at_messages();
  return 0;
}

void Core::loop() {
  run_soon();
  bool alone = !options_.waits_at_end;
  for (;;) {
    std::shared_ptr<Call> call;
    auto pause = std::chrono::microseconds(20);
    for (bool open = look_at_messages();; open = look_at_messages()) {
      std::unique_lock lock(mutex_);
      if (!queue_.empty()) {
        call = std::move(queue_.front());
        queue_.pop_front();
        current_ = call;
        break;
      }
      if (!open && stopping_) {
        if (orderly_ && !alone) {
          alone = true;
          lock.unlock();
          monitor_->farewell();
          continue;
        }
        std::unique_ptr<HostEngine> engine = std::move(engine_);
        const bool orderly = orderly_ && !monitor_->failed();
        if (!orderly) engine->leave_at_once();
        ends_at_ = Clock::now();
        lock.unlock();
        if (nccl_ && !orderly) nccl_->abort();
        nccl_.reset();
        engine.reset();
        lock.lock();
        running_ = false;
        ended_.notify_all();
        return;
      }
      if (!open) {
        wake_.wait(lock);
      } else {
        wake_.wait_for(lock, pause);
        pause = std::min(pause * 2, std::chrono::microseconds(1000));
      }
    }
    run(call);
    const std::lock_guard lock(mutex_);
    current_.reset();
  }
}

double Core::seconds_of(const Call& call) const {
  return std::chrono::duration<double>(Clock::now() - call.entered).count();
}

void Core::run(const std::shared_ptr<Call>& shared) {
  Call& call = *shared;
  const bool collective = is_collective(call.kind);
  {
    const std::lock_guard lock(mutex_);
    call.entered = Clock::now();
    deadline_ = call.entered + duration_of(options_.timeout);
  }
  options_.record->started(call.record);
  if (collective) monitor_->entered(call.number, call.text());
  try {
    if (monitor_->failed()) throw Stopped{};
    for (const std::unique_ptr<Event>& event : call.ready)
      if (!call.nccl) event->synchronize();
    if (call.kind == CallKind::function) {
      while (look_at_messages()) std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (monitor_->failed()) throw Stopped{};
      try {
        call.function();
        finish(call, nullptr);
      } catch (...) {  // the communicator goes on
        finish(call, std::current_exception());
      }
      return;
    }
    if (!collective) return start_message(shared);
    Collectives collectives(*engine_, {this, &Core::poll}, scratch_);
    const std::int64_t begin = trace::enabled() ? trace::now() : 0;
    if (options_.check_collectives) check(call, collectives);
    const std::int64_t waited = begin != 0 && options_.check_collectives ? trace::now() - begin : 0;
    run_collective(call, collectives);
    if (begin != 0 && trace::enabled())
      log_collective(options_.ranks[static_cast<std::size_t>(rank_)], {.name = call.text(),
                                                                       .call = call.number,
                                                                       .bytes = call.in.bytes,
                                                                       .begin = begin,
                                                                       .end = trace::now(),
                                                                       .waited = waited});
    monitor_->completed(call.number);
    finish(call, nullptr);
  } catch (const Stopped&) {
    if (engine_->may_write()) kept_.push_back(shared);
    monitor_->look();
    if (monitor_->failed()) return finish(call, monitor_->failure());
    // the others' progress as it is now, not as it was before the deadline
    std::this_thread::sleep_for(monitor_->interval());
    fail(call, FailureKind::timeout, monitor_->missing(call.number, call.text(), seconds_of(call)));
  } catch (const CommTimeoutError& e) {  // of NCCL
    monitor_->look();
    if (monitor_->failed()) return finish(call, monitor_->failure());
    std::this_thread::sleep_for(monitor_->interval());
    fail(call, FailureKind::timeout,
         str(monitor_->missing(call.number, call.text(), seconds_of(call)), " (", e.what(), ")"));
  } catch (const CommError& e) {
    if (engine_->may_write()) kept_.push_back(shared);
    // If a connection broke because a rank ended, the monitor will say so.
    for (int i = 0; i < 30 && !monitor_->failed() && !call.checked_failure; ++i) {
      std::this_thread::sleep_for(monitor_->interval() / 10);
      monitor_->look();
    }
    fail(call, FailureKind::error, e.what());
  } catch (const std::exception& e) {
    fail(call, FailureKind::error, str("rank ", rank_, ": ", call.text(), ": ", e.what()));
  }
}

void Core::fail(Call& call, FailureKind kind, const std::string& reason) noexcept {
  monitor_->fail(kind, reason);
  finish(call, monitor_->failure());
}

void Core::finish(Call& call, std::exception_ptr failure) noexcept {
  call.completed = Clock::now();
  if (!failure) options_.record->completed(call.record);
  if (!failure && call.kept_out.defined()) call.kept_out.storage()->bump_version();
  call.work->complete(std::move(failure));
}

void Core::on_failure() noexcept {
  std::deque<std::shared_ptr<Call>> queued;
  std::vector<std::weak_ptr<Core>> children;
  {
    const std::lock_guard lock(mutex_);
    failed_at_ = Clock::now();
    queued.swap(queue_);
    children = children_;
    if (engine_) engine_->abort();
  }
  wake_.notify_all();
  const std::exception_ptr failure = monitor_->failure();
  if (const char* const prefix = std::getenv("BRAID_FLIGHT_RECORD");
      prefix != nullptr && *prefix != '\0')
    options_.record->write(prefix, options_.ranks[static_cast<std::size_t>(rank_)],
                           exception_message(failure));
  for (const std::shared_ptr<Call>& call : queued) call->work->complete(failure);
  for (const std::weak_ptr<Core>& weak : children)
    if (const std::shared_ptr<Core> child = weak.lock())
      child->monitor().fail(FailureKind::aborted, exception_message(failure));
}

void Core::watch() noexcept {
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    call = current_;
    // A function is no engine: only when it returns does it no longer use what it refers to.
    if (!call || call->kind == CallKind::function) return;
    const Clock::time_point now = Clock::now();
    if (failed_at_ != Clock::time_point::max()) {
      if (now < failed_at_ + kGrace) return;
    } else if (call->entered == Clock::time_point() ||
               now < call->entered + duration_of(options_.timeout) + kGrace) {
      return;
    }
  }
  if (!monitor_->failed())
    monitor_->fail(FailureKind::timeout,
                   monitor_->missing(call->number, call->text(), seconds_of(*call)));
  call->work->complete(monitor_->failure());
}

// ---- sends and receives

void Core::start_message(const std::shared_ptr<Call>& call) {
  BraidEngineCall message{};
  const bool sends = call->kind == CallKind::send;
  message.kind = sends ? kBraidSend : kBraidRecv;
  message.peer = call->peer;
  message.tag = call->tag;
  message.op = static_cast<std::int32_t>(call->dtype);
  message.element_bytes = 1;
  const Memory& memory = sends ? call->in : call->out;
  message.count = static_cast<std::int64_t>(memory.bytes);
  void* data = memory.data;
  if (!device_context(memory.device).host_memory) {
    call->staged.resize(memory.bytes);
    if (sends) (void)to_host(memory, call->staged);
    data = call->staged.data();
  }
  if (sends) message.in = data;
  else message.out = data;
  std::string error;
  void* const request = engine_->start(message, error);
  if (request == nullptr) return fail(*call, FailureKind::error, error);
  messages_.push_back({call, request});
}

bool Core::look_at_messages() {
  if (messages_.empty() || looking_) return !messages_.empty();
  looking_ = true;
  std::vector<OpenCall> open;
  open.swap(messages_);
  for (OpenCall& message : open) {
    Call& call = *message.call;
    if (monitor_->failed()) {
      engine_->abort();  // before the owner of the memory hears of it
      engine_->drop(message.request);
      if (engine_->may_write()) kept_.push_back(message.call);
      finish(call, monitor_->failure());
      continue;
    }
    const EngineResult result = engine_->test(message.request);
    if (result.result == kBraidPending) {
      if (const double seconds = seconds_of(call); seconds > options_.timeout)
        monitor_->fail(FailureKind::timeout, monitor_->silent(call.peer, call.text(), seconds));
      messages_.push_back(message);
    } else if (result.result == kBraidDone) {
      try {
        if (call.kind == CallKind::recv && !call.staged.empty())
          to_device(call.out, call.staged.data());
        finish(call, nullptr);
      } catch (const std::exception& e) {
        fail(call, FailureKind::error, str("rank ", rank_, ": ", call.text(), ": ", e.what()));
      }
    } else {
      fail(call, FailureKind::error, result.text);
    }
  }
  looking_ = false;
  return !messages_.empty();
}

// ---- memory of devices

Stream& Core::stream_of(Device device) {
  std::shared_ptr<Stream>& stream = streams_[device];
  if (!stream) {
    device_context(device).backend->own_thread();
    stream = make_stream(device);
  }
  return *stream;
}

const void* Core::to_host(const Memory& memory, std::vector<char>& staged) {
  if (memory.data == nullptr || device_context(memory.device).host_memory) return memory.data;
  if (staged.size() < memory.bytes) staged = std::vector<char>(memory.bytes);
  (void)stream_of(memory.device);
  const StreamGuard guard(streams_[memory.device]);
  copy_flat(staged.data(), Device(DeviceType::cpu, 0), memory.data, memory.device, memory.bytes);
  return staged.data();
}

void Core::to_device(const Memory& memory, const void* from) {
  if (memory.data == nullptr || memory.data == from) return;
  Stream& stream = stream_of(memory.device);
  const StreamGuard guard(streams_[memory.device]);
  copy_flat(memory.data, memory.device, from, Device(DeviceType::cpu, 0), memory.bytes);
  stream.synchronize();
}

}  // namespace braid::parallel::process

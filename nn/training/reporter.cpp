#include "training/reporter.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>

namespace braid::training::detail {
namespace {

constexpr double kBarEvery = 0.1, kLineEvery = 10, kWriteEvery = 2;  // seconds
constexpr std::size_t kWriteAt = 1024;                               // number of reported values

template <class Clock> double now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Formats seconds as 1:05 or 2:03:04.
std::string duration(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  char text[40];
  if (s < 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld", static_cast<long long>(s / 60),
                  static_cast<long long>(s % 60));
  else
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", static_cast<long long>(s / 3600),
                  static_cast<long long>(s / 60 % 60), static_cast<long long>(s % 60));
  return text;
}

/// Formats a number with `digits` digits after the decimal point.
std::string fixed(double value, int digits) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
/// Formats a number with `digits` significant digits.
std::string rounded(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string bar(std::int64_t done, std::int64_t all) {
  constexpr std::int64_t kWidth = 24;
  const std::int64_t full = all > 0 ? done * kWidth / all : 0;
  return '[' + std::string(static_cast<std::size_t>(full), '=') +
         std::string(static_cast<std::size_t>(kWidth - full), ' ') + ']';
}

/// Quotes a text as in RFC 4180.
std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

Terminal standard_terminal() {
  Terminal t;
  t.write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  t.is_terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (t.is_terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    t.columns = size.ws_col;
  t.seconds = now<std::chrono::steady_clock>;
  t.clock = now<std::chrono::system_clock>;
  return t;
}

Reporter::Reporter(const Options& options, const Place& start, Terminal terminal)
    : terminal_(std::move(terminal)), start_(start), place_(start) {
  if (options.quiet) terminal_.write = nullptr;
  began_ = epoch_began_ = shown_ = written_ = step_ended_ = terminal_.seconds();
  if (!options.tensorboard.empty()) events_.emplace(options.tensorboard, terminal_.clock());
  if (!options.csv.empty()) {
    csv_.emplace(options.csv, io::LogFile::Start::append);
    constexpr std::string_view kHead = "step,epoch,seconds,name,value\n";
    if (csv_->size() == 0) csv_->write(kHead.data(), kHead.size());
  }
  if (!options.trace.empty()) {
    trace_.emplace(options.trace, io::LogFile::Start::truncate);
    // the closing bracket is optional in this format, so the file of a killed run is still valid
    trace_pending_ = "[\n";
  }
}

Reporter::~Reporter() {
  try {
    if (unshown_) show(true);
    write_files();
  } catch (const std::exception& e) {
    warn(str("progress: what was reported last could not be written: ", e.what()));
  }
}

void Reporter::step_begins(const Place& place, std::int64_t rows) {
  if (place.epoch != place_.epoch) {
    samples_ = 0;
    epoch_began_ = step_ended_;
  }
  place_ = place;
  rows_ = rows;
  step_began_ = terminal_.seconds();
  trace("wait for data", step_ended_, step_began_);
}

void Reporter::step_ends() {
  step_ended_ = terminal_.seconds();
  trace("step", step_began_, step_ended_);
  samples_ += rows_;
  ++steps_;
  unshown_ = true;
  const bool last = place_.batch + 1 == place_.batches;
  if (last || step_ended_ - shown_ >= (terminal_.is_terminal ? kBarEvery : kLineEvery)) show(last);
  if (pending_.size() >= kWriteAt || step_ended_ - written_ >= kWriteEvery) write_files();
}

void Reporter::report(std::string_view name, Value value) {
  if (events_ || csv_)
    pending_.push_back({place_.epoch * place_.batches + place_.batch, place_.epoch,
                        terminal_.clock(), std::string(name), value});
  for (auto& [known, newest] : newest_) {
    if (known == name) {
      newest = std::move(value);
      return;
    }
  }
  newest_.emplace_back(name, std::move(value));
}

std::string Reporter::line(bool bar_too) const {
  const std::int64_t done = place_.batch + 1;
  const std::int64_t all_left = (place_.epochs - place_.epoch) * place_.batches - done;
  const double epoch_time = step_ended_ - epoch_began_, time = step_ended_ - began_;
  std::string text = str("epoch ", place_.epoch + 1, '/', place_.epochs, "  ");
  if (bar_too) text += bar(done, place_.batches) + "  ";
  text += str(done, '/', place_.batches);
  if (epoch_time > 0)
    text += "  " + fixed(static_cast<double>(samples_) / epoch_time, 0) + " samples/s";
  text += "  ETA " + duration(time / static_cast<double>(steps_) * static_cast<double>(all_left));
  for (const auto& [name, value] : newest_) text += "  " + name + ' ' + rounded(value.read(), 4);
  return text;
}

/// `last` means the last step of the epoch, whose line is not overwritten.
void Reporter::show(bool last) {
  if (!terminal_.write) return;
  shown_ = step_ended_;
  unshown_ = terminal_.is_terminal && !last;  // a bar needs a final line
  if (!terminal_.is_terminal) return terminal_.write(line(false) + '\n');
  std::string text = line(true);
  // a line that wraps could not be overwritten
  if (terminal_.columns > 1 && text.size() >= terminal_.columns) text.resize(terminal_.columns - 1);
  terminal_.write('\r' + text + "\x1b[K" + (last ? "\n" : ""));
}

void Reporter::write_files() {
  written_ = terminal_.seconds();
  std::string rows;
  for (const Written& w : pending_) {
    const double value = w.value.read();
    if (events_) events_->add(w.step, w.clock, w.name, value);
    if (csv_)
      rows += str(w.step, ',', w.epoch, ',', fixed(w.clock, 3), ',', csv_text(w.name), ',',
                  rounded(value, 9), '\n');
  }
  pending_.clear();
  if (events_) events_->write();
  if (csv_) csv_->write(rows.data(), rows.size());
  if (trace_) {
    trace_->write(trace_pending_.data(), trace_pending_.size());
    trace_pending_.clear();
  }
}

void Reporter::trace(const char* name, double begin, double end) {
  if (!trace_) return;
  trace_pending_ +=
      str(R"({"name":")", name, R"(","ph":"X","pid":1,"tid":1,"ts":)",
          fixed((begin - began_) * 1e6, 1), R"(,"dur":)", fixed((end - begin) * 1e6, 1),
          R"(,"args":{"epoch":)", place_.epoch, R"(,"batch":)", place_.batch, "}},\n");
}

void ReporterDelete::operator()(Reporter* reporter) const noexcept { delete reporter; }
ReporterPtr make_reporter(const Options& options, const Place& start) {
  return ReporterPtr(new Reporter(options, start, standard_terminal()));
}
void step_begins(Reporter& reporter, const Place& place, std::int64_t rows) {
  reporter.step_begins(place, rows);
}
void step_ends(Reporter& reporter) { reporter.step_ends(); }
void report(Reporter& reporter, std::string_view name, double value) {
  reporter.report(name, Value(value));
}
void report(Reporter& reporter, std::string_view name, const Tensor& value) {
  if (!value.defined() || value.numel() != 1)
    throw ShapeError(str("report: expected a tensor of one element for '", name, "', got ",
                         value.defined() ? str(value.shape()) : "an undefined one"));
  reporter.report(name, Value(value.detach()));
}

}  // namespace braid::training::detail

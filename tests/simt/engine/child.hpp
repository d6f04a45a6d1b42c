#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>

// Runs a test in its own process: devices are found once per process, and a lost device stays lost.
namespace braid::test {

/// Runs `body` in a forked child. Returns what it returned, `exception: …`, or `ended by signal n`.
/// The parent must not have used a device.
template <class F> std::string in_child(F&& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    std::string text;
    try {
      text = body();
    } catch (const std::exception& e) {
      text = std::string("exception: ") + e.what();
    }
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = write(ends[1], text.data() + done, text.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return "ended by signal " + std::to_string(WTERMSIG(status)) + " after: " + text;
  return text;
}

/// The same, with `devices` emulated devices.
template <class F> std::string in_child(int devices, F&& body) {
  return in_child([&] {
    setenv("BRAID_SIMT_DEVICES", std::to_string(devices).c_str(), 1);
    unsetenv("BRAID_DEVICE");
    return body();
  });
}

}  // namespace braid::test

#include "tools/startup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

#include "tools/interrupt.h"

namespace autotune {
namespace {

/// Runs `body` in a child, whose exit code it gives: 0 when all it asked for was so. 128 and up: a signal ended it.
int in_child(const std::function<bool()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body() ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Startup, AClosedDescriptorIsNoPlaceForTheNextFile) {
    EXPECT_EQ(in_child([] {
                  for (const int descriptor : {0, 1, 2}) close(descriptor);
                  prepare_process();
                  char byte = 0;
                  const bool empty = read(0, &byte, 1) == 0;
                  const bool refused = write(1, "x", 1) < 0 && errno == EBADF && write(2, "x", 1) < 0 && errno == EBADF;
                  return empty && refused && open("/dev/null", O_RDWR) > 2;
              }),
              0);
}

TEST(Startup, OpenDescriptorsStayAsTheyAre) {
    EXPECT_EQ(in_child([] {
                  int ends[2];
                  if (pipe(ends) != 0 || dup2(ends[1], 1) != 1) return false;
                  prepare_process();
                  char byte = 0;
                  return write(1, "x", 1) == 1 && read(ends[0], &byte, 1) == 1 && byte == 'x';
              }),
              0);
}

TEST(Startup, AWriteThatCannotBeIsAnErrorAndNoSignal) {
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(in_child([file] {
                  prepare_process();
                  int ends[2];
                  if (pipe(ends) != 0) return false;
                  close(ends[0]);
                  const bool gone = write(ends[1], "x", 1) < 0 && errno == EPIPE;
                  const rlimit none{.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
                  setrlimit(RLIMIT_FSIZE, &none);
                  return gone && write(fileno(file), "x", 1) < 0 && errno == EFBIG;
              }),
              0);
    std::fclose(file);
}

TEST(Interrupt, TheFirstSignalAsksAndTheSecondKills) {
    EXPECT_EQ(in_child([] {
                  watch_interrupts();
                  std::raise(SIGHUP);
                  return interrupted() == 129;
              }),
              0);
    EXPECT_EQ(in_child([] {
                  watch_interrupts();
                  std::raise(SIGINT);
                  std::raise(SIGINT);
                  return true;
              }),
              128 + SIGINT);
}

TEST(Interrupt, AHangUpThatIsIgnoredFromTheStartGoesOnBeingIgnored) {
    EXPECT_EQ(in_child([] {
                  std::signal(SIGHUP, SIG_IGN);
                  watch_interrupts();
                  std::raise(SIGHUP);
                  std::raise(SIGHUP);
                  return interrupted() == 0;
              }),
              0);
}

}  // namespace
}  // namespace autotune

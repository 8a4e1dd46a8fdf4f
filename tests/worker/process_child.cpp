// A worker that does as it is told by its first argument: what process_test starts.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/worker/frame.h"
#include "tuner/worker/process.h"

int main(int argc, char** argv) {
    using namespace autotune;
    const std::string task = argc > 1 ? argv[1] : "";
    const pid_t parent = argc > 3 ? std::atoi(argv[argc - 1]) : 0;
    become_worker(parent, task == "memory" ? 512ull << 20 : 0);
    if (task == "exit") return 3;
    if (task == "crash") raise(SIGABRT);
    if (task == "hang")
        for (;;) pause();
    if (task == "stubborn") {
        signal(SIGTERM, SIG_IGN);
        const pid_t child = fork();
        if (child == 0)
            for (;;) pause();
        send_frame(3, 1, {{"child", child}});
        for (;;) pause();
    }
    if (task == "shout") {
        const std::string line(1000, 'x');
        for (int i = 0; i < 1000; ++i) fmt::print("{}\n", line);
        fmt::print("last words\n");
        std::fflush(stdout);
    }
    if (task == "memory") {
        std::vector<char*> all;
        try {
            for (;;) {
                all.push_back(new char[64 << 20]);
                std::memset(all.back(), 1, 64 << 20);
            }
        } catch (const std::bad_alloc&) {
            send_frame(3, 2, {{"blocks", all.size()}});
        }
    }
    if (task == "descriptors") {
        std::vector<int> open;
        for (int fd = 0; fd < 1024; ++fd)
            if (fd != 3 && lseek(fd, 0, SEEK_CUR) >= 0) open.push_back(fd);
        send_frame(3, 3, {{"seekable", open}});
    }
    FrameReader reader;
    try {
        reader.wait(3);
    } catch (const FrameError&) {
    }
    return 0;
}

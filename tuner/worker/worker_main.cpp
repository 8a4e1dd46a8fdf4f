#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "tuner/worker/frame.h"
#include "tuner/worker/process.h"
#include "tuner/worker/serve.h"

namespace autotune {
namespace {

constexpr int parent_socket = 3;

struct Arguments {
    std::string mode;
    pid_t parent = 0;
    std::uint64_t memory_bytes = 0;
    std::string scratch;
};

Arguments read_arguments(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const char* next = i + 1 < argc ? argv[i + 1] : "";
        if (word == "--compile" || word == "--run" || word == "--reference") arguments.mode = word;
        if (word == "--parent") arguments.parent = static_cast<pid_t>(std::atol(next));
        if (word == "--memory-bytes") arguments.memory_bytes = std::strtoull(next, nullptr, 10);
        if (word == "--scratch") arguments.scratch = next;
    }
    return arguments;
}

int serve(const std::string& mode, const WorkerHooks& hooks) {
    if (mode == "--compile") return serve_compile(parent_socket, hooks.compiler());
    if (mode == "--run") return serve_run(parent_socket, hooks.run);
    return serve_reference(parent_socket, hooks.references);
}

}  // namespace

int worker_main(int argc, char** argv, const WorkerHooks& hooks) {
    const Arguments arguments = read_arguments(argc, argv);
    if (arguments.mode.empty() || arguments.parent == 0) {
        std::fputs("autotune-worker is started by autotune itself\n", stderr);
        return 1;
    }
    become_worker(arguments.parent, arguments.memory_bytes);
    if (!arguments.scratch.empty()) setenv("TMPDIR", arguments.scratch.c_str(), 1);
    try {
        return serve(arguments.mode, hooks);
    } catch (const FrameError&) {
        return 0;  // the parent is done with us
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 70;
    }
}

}  // namespace autotune

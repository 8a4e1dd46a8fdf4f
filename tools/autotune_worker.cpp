// autotune-worker: what the tuner starts to compile, to run and to compute references. Not meant for people.
#include "tuner/references/table.h"
#include "tuner/worker/serve.h"

int main(int argc, char** argv) {
    using namespace autotune;
    return worker_main(argc, argv, {.compiler = nvrtc_compile, .run = cuda_devices(), .references = builtin_reference});
}

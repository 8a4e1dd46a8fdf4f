/* An application in C that runs softmax through the dispatcher: the tuned kernel where the user's database has one for
 * this GPU and shape, else the default. It checks the result with a loop of its own and says where the answer came
 * from.
 *
 *     dispatch_c [ROWS [COLS [BUNDLE]]]
 *
 * BUNDLE: a file of `autotune db bundle`, which answers as well, and needs neither a database nor a compiler.
 * Tune first to see the difference:  autotune --op softmax --problem rows=4096,cols=4096,dtype=f32 */
#include <autotune/autotune.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu.h"

enum { skipped = 77 }; /* what ctest takes for "cannot run here" */

static void note(void* context, const char* sentence) {
    (void)context;
    fprintf(stderr, "note: %s\n", sentence);
}

static int fail(const char* doing) {
    fprintf(stderr, "error: %s: %s\n", doing, autotune_error_message());
    if (*autotune_error_help()) fprintf(stderr, "help: %s\n", autotune_error_help());
    return 1;
}

/* The largest difference between y and the softmax of x's rows, computed in double. */
static double largest_error(const float* x, const float* y, int64_t rows, int64_t cols) {
    double largest = 0;
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        double top = x[0], sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = fmax(top, x[c]);
        for (int64_t c = 0; c < cols; ++c) sum += exp(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) {
            const double error = fabs(y[c] - exp(x[c] - top) / sum);
            if (!(error <= largest)) largest = error; /* also for NaN */
        }
    }
    return largest;
}

/* x and y: on the GPU. Returns 0 where it was launched. */
static int softmax(const autotune_handle* handle, const void* x, const void* y, int64_t rows, int64_t cols) {
    const int64_t shape[] = {rows, cols};
    const autotune_tensor tensors[] = {{.data = x, .shape = shape, .rank = 2, .dtype = AUTOTUNE_F32},
                                       {.data = y, .shape = shape, .rank = 2, .dtype = AUTOTUNE_F32}};
    autotune_decision decision = {.size = sizeof decision};
    if (autotune_launch(handle, tensors, 2, NULL, 0, NULL, &decision)) return fail("softmax was not launched");
    printf("softmax rows=%lld cols=%lld dtype=f32: %s (%s), %s%s\n", (long long)rows, (long long)cols,
           autotune_rung_name(decision.rung), decision.why, decision.config, decision.verified ? ", verified" : "");
    return 0;
}

static int run_on_gpu(const autotune_handle* handle, int64_t rows, int64_t cols) {
    const size_t count = (size_t)(rows * cols);
    float* x = malloc(2 * count * sizeof *x);
    if (!x) return 1;
    float* y = x + count;
    for (size_t i = 0; i < count; ++i) x[i] = (float)rand() / (float)RAND_MAX * 8 - 4, y[i] = 0;
    void *device_x = gpu_array(x, count), *device_y = gpu_array(y, count);
    int status = 1;
    if (!device_x || !device_y)
        fprintf(stderr, "error: the GPU has no room for 2 arrays of %zu floats\n", count);
    else if (softmax(handle, device_x, device_y, rows, cols) == 0 && gpu_read(y, device_y, count)) {
        const double error = largest_error(x, y, rows, cols);
        printf("largest error against the CPU: %.2g\n", error);
        status = error < 1e-6 ? 0 : 1;
    }
    gpu_free(device_x);
    gpu_free(device_y);
    free(x);
    return status;
}

/* A launch where there is no GPU is a status, and the sentence says why; nothing else happens. */
static int run_without_gpu(const autotune_handle* handle, int64_t rows, int64_t cols) {
    static const float nothing[1];
    const int64_t shape[] = {rows, cols};
    const autotune_tensor tensors[] = {{.data = nothing, .shape = shape, .rank = 2, .dtype = AUTOTUNE_F32},
                                       {.data = nothing, .shape = shape, .rank = 2, .dtype = AUTOTUNE_F32}};
    if (autotune_launch(handle, tensors, 2, NULL, 0, NULL, NULL) != AUTOTUNE_UNAVAILABLE) return 1;
    printf("skipped: %s; with one, softmax rows=%lld cols=%lld dtype=f32 would run here and be checked\n",
           autotune_error_message(), (long long)rows, (long long)cols);
    return skipped;
}

int main(int count, char** arguments) {
    const int64_t rows = count > 1 ? atoll(arguments[1]) : 4096, cols = count > 2 ? atoll(arguments[2]) : 4096;
    if (rows < 1 || cols < 1 || rows > (1 << 30) / cols) {
        fprintf(stderr, "usage: dispatch_c [ROWS [COLS [BUNDLE]]]\n");
        return 1;
    }
    /* Once an application, and once a call site. */
    const char* const bundles[] = {count > 3 ? arguments[3] : NULL};
    const autotune_options options = {
        .size = sizeof options, .log = note, .bundles = bundles, .bundle_count = count > 3};
    autotune_dispatcher* dispatcher = NULL;
    const autotune_handle* handle = NULL;
    int status;
    if (autotune_dispatcher_create(&options, &dispatcher) ||
        autotune_prepare(dispatcher, "softmax", "dtype=f32", &handle))
        status = fail("no softmax");
    else if (gpu_open())
        status = run_on_gpu(handle, rows, cols);
    else
        status = run_without_gpu(handle, rows, cols);
    autotune_dispatcher_destroy(dispatcher);
    return status;
}

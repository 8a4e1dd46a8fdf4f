/* Just enough of the CUDA driver for the example: the first GPU's context, and arrays. An application has its own way
 * to these, such as the CUDA runtime; the dispatcher takes any device memory. The driver is found at run time, so that
 * the example builds, and says what is missing, where there is no GPU. */
#ifndef EXAMPLES_DISPATCH_C_GPU_H
#define EXAMPLES_DISPATCH_C_GPU_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* CUdeviceptr is an unsigned integer of a pointer's width, CUresult an int that is 0 for success. */
static struct {
    int (*init)(unsigned);
    int (*retain)(void** context, int device);
    int (*set_current)(void* context);
    int (*alloc)(uintptr_t* memory, size_t bytes);
    int (*release)(uintptr_t memory);
    int (*to_device)(uintptr_t to, const void* from, size_t bytes);
    int (*to_host)(void* to, uintptr_t from, size_t bytes);
} cuda;

/* Enters the first GPU's primary context; 0 where there is none. */
static int gpu_open(void) {
    static const char* const names[] = {"cuInit",       "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2",
                                        "cuMemFree_v2", "cuMemcpyHtoD_v2",          "cuMemcpyDtoH_v2"};
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    void* context = NULL;
    if (!library) return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        void* call = dlsym(library, names[i]);
        if (!call) return 0;
        memcpy((char*)&cuda + i * sizeof call, &call, sizeof call); /* C has no cast from void* to a function */
    }
    return cuda.init(0) == 0 && cuda.retain(&context, 0) == 0 && cuda.set_current(context) == 0;
}

/* Floats on the GPU; NULL where it has no room. */
static void* gpu_array(const float* values, size_t count) {
    uintptr_t memory = 0;
    if (cuda.alloc(&memory, count * sizeof *values) != 0) return NULL;
    if (cuda.to_device(memory, values, count * sizeof *values) == 0) return (void*)memory;
    cuda.release(memory);
    return NULL;
}

static int gpu_read(float* out, const void* array, size_t count) {
    return cuda.to_host(out, (uintptr_t)array, count * sizeof *out) == 0;
}

static void gpu_free(void* array) {
    if (array) cuda.release((uintptr_t)array);
}

#endif

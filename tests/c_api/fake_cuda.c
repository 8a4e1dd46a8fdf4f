/* A libcuda.so.1 for machines without a GPU: one H200 whose memory is the host's, which loads any kernel and runs none.
 * What an application does around the launches runs to its end on it. Tests find it by LD_LIBRARY_PATH.
 * Its calls are those of device/driver_calls.def; what is not here answers "not
 * supported" (fake_cuda_rest.c). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0, invalid_value = 1, not_supported = 801 };
typedef uintptr_t address;

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags) { return flags == 0 ? success : invalid_value; }
EXPORT int cuDriverGetVersion(int* version) {
    *version = 13000;
    return success;
}
EXPORT int cuGetErrorName(int status, const char** name) {
    *name = status == success ? "CUDA_SUCCESS" : "CUDA_ERROR_OF_THE_FAKE";
    return success;
}
EXPORT int cuGetErrorString(int status, const char** text) { return cuGetErrorName(status, text); }
EXPORT int cuDeviceGetCount(int* count) {
    *count = 1;
    return success;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? success : 101;
}
EXPORT int cuDeviceGetName(char* name, int size, int device) {
    (void)device;
    strncpy(name, "NVIDIA H200", (size_t)size);
    return success;
}
EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    (void)device;
    *bytes = (size_t)141 << 30;
    return success;
}
EXPORT int cuDeviceGetUuid_v2(char* uuid, int device) {
    (void)device;
    memset(uuid, 7, 16);
    return success;
}
EXPORT int cuDeviceGetPCIBusId(char* id, int size, int device) {
    (void)device;
    strncpy(id, "0000:65:00.0", (size_t)size);
    return success;
}
/* By their numbers in cuda.h. */
EXPORT int cuDeviceGetAttribute(int* value, int which, int device) {
    (void)device;
    switch (which) {
        case 75:
            *value = 9;
            break; /* capability, major */
        case 76:
            *value = 0;
            break; /* minor */
        case 16:
            *value = 132;
            break; /* SMs */
        case 10:
            *value = 32;
            break; /* a warp */
        case 1:
            *value = 1024;
            break; /* threads a block */
        case 97:
            *value = 232448;
            break; /* shared memory a block, opted in */
        case 81:
            *value = 233472;
            break; /* shared memory an SM */
        case 82:
            *value = 65536;
            break; /* registers an SM */
        case 39:
            *value = 2048;
            break; /* threads an SM */
        case 106:
            *value = 32;
            break; /* blocks an SM */
        case 38:
            *value = 60 << 20;
            break; /* L2 */
        case 5:
            *value = 2147483647;
            break; /* grid x */
        case 6:
        case 7:
            *value = 65535;
            break; /* y, z */
        default:
            *value = 1024;
    }
    return success;
}

static char the_context;
EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
    *context = &the_context;
    return device == 0 ? success : 101;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return success;
}
EXPORT int cuCtxSetCurrent(void* context) {
    (void)context;
    return success;
}
EXPORT int cuCtxGetCurrent(void** context) {
    *context = &the_context;
    return success;
}
EXPORT int cuCtxGetDevice(int* device) {
    *device = 0;
    return success;
}
EXPORT int cuCtxGetId(void* context, uint64_t* id) {
    (void)context;
    *id = 1;
    return success;
}
EXPORT int cuCtxSynchronize(void) { return success; }

EXPORT int cuLibraryLoadData(void** library, const void* code, void* a, void* b, unsigned c, void* d, void* e,
                             unsigned f) {
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    if (memcmp(code, "\177ELF", 4) != 0) return 200;
    *library = &the_context;
    return success;
}
EXPORT int cuLibraryUnload(void* library) {
    (void)library;
    return success;
}
EXPORT int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
    (void)library;
    *kernel = &the_context;
    return *name ? success : 500;
}
EXPORT int cuKernelGetFunction(void** function, void* kernel) {
    *function = kernel;
    return success;
}
EXPORT int cuKernelSetAttribute(int which, int value, void* kernel, int device) {
    (void)which, (void)value, (void)kernel, (void)device;
    return success;
}
EXPORT int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** arguments, void** extra) {
    (void)shared, (void)stream, (void)extra;
    return function && arguments && gx && gy && gz && bx && by && bz ? success : invalid_value;
}
EXPORT int cuStreamIsCapturing(void* stream, int* status) {
    (void)stream;
    *status = 0;
    return success;
}

EXPORT int cuMemAlloc_v2(address* memory, size_t bytes) {
    void* got = NULL;
    if (bytes == 0 || posix_memalign(&got, 256, bytes) != 0) return bytes ? 2 : invalid_value;
    *memory = (address)got;
    return success;
}
EXPORT int cuMemFree_v2(address memory) {
    free((void*)memory);
    return success;
}
static int copy(address to, address from, size_t bytes) {
    memmove((void*)to, (void*)from, bytes);
    return success;
}
EXPORT int cuMemcpyHtoD_v2(address to, const void* from, size_t bytes) { return copy(to, (address)from, bytes); }
EXPORT int cuMemcpyDtoH_v2(void* to, address from, size_t bytes) { return copy((address)to, from, bytes); }
EXPORT int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void* stream) {
    (void)stream;
    return copy(to, from, bytes);
}
EXPORT int cuMemsetD8Async(address to, unsigned char byte, size_t bytes, void* stream) {
    (void)stream;
    memset((void*)to, byte, bytes);
    return success;
}

/* NVRTC asks for it wherever it finds a driver. */
EXPORT int cuGetExportTable(const void** table, const void* id) {
    (void)id;
    *table = NULL;
    return not_supported;
}

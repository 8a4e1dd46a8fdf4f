/// The C ABI between autotune and the host code of an op: its CPU reference and its input generator.
///
/// A built-in op's reference is linked in; a user's is compiled with the system's compiler from the folder
/// named by `--ops`. Both are this one function type, called in a worker process of its own, so a crash in
/// it costs a message and not the run. C++ code is written against `reference.hpp`.
#ifndef AUTOTUNE_REFERENCE_H
#define AUTOTUNE_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AUTOTUNE_REFERENCE_ABI 1

/// Element types, in the order of `autotune::DType`.
enum autotune_dtype {
    AUTOTUNE_F64, AUTOTUNE_F32, AUTOTUNE_F16, AUTOTUNE_BF16, AUTOTUNE_F8E4M3, AUTOTUNE_F8E5M2,
    AUTOTUNE_I64, AUTOTUNE_I32, AUTOTUNE_I16, AUTOTUNE_I8, AUTOTUNE_U8, AUTOTUNE_U32, AUTOTUNE_BOOL
};

enum autotune_role { AUTOTUNE_IN, AUTOTUNE_OUT, AUTOTUNE_INOUT };

/// One tensor of the call. Shapes and strides are in elements.
/// data       in and inout: the elements as the kernel gets them, before the launch; NULL for an output and
///            for an optional tensor that is absent. An input generator writes here.
/// value      out and inout: the reference's result, row-major and contiguous in `shape`, in double
/// magnitude  the same extent: the sum of the magnitudes of the terms that make up each element
///            (for c = a x b: sum of |a||b|), from which the error bound is computed. It is handed over
///            filled with NaN; elements left NaN take |value|.
struct autotune_tensor_view {
    const char* name;
    int32_t dtype;
    int32_t role;
    int32_t rank;
    const int64_t* shape;
    const int64_t* strides;
    void* data;
    double* value;
    double* magnitude;
};

/// One problem field or scalar. Flags come as integers 0 and 1, choices and texts as `text`.
struct autotune_field {
    const char* name;
    int64_t integer;
    double real;
    const char* text; /* NULL for a number */
};

struct autotune_call {
    uint32_t abi;     /* AUTOTUNE_REFERENCE_ABI */
    int32_t threads;  /* how many threads the function may use */
    uint64_t seed;    /* for an input generator */
    size_t tensor_count;
    const struct autotune_tensor_view* tensors;
    size_t field_count;
    const struct autotune_field* fields;
    char* message; /* where a failure says why: NUL-terminated, at most message_size bytes */
    size_t message_size;
};

/// returns 0 when every output's `value` was written; anything else is a failure with `message`.
typedef int (*autotune_reference_fn)(const struct autotune_call* call);

#ifdef __cplusplus
}
#endif
#endif

/* autotune's C API, which libautotune.so exports; C99 and C++.
 *
 *     autotune_dispatcher* dispatcher = NULL;
 *     const autotune_handle* softmax = NULL;
 *     if (autotune_dispatcher_create(NULL, &dispatcher) ||                          // the user's database
 *         autotune_prepare(dispatcher, "softmax", "dtype=bf16", &softmax))          // once a call site
 *         fprintf(stderr, "%s\n", autotune_error_message());
 *     const int64_t shape[] = {rows, cols};
 *     const autotune_tensor tensors[] = {{x, shape, NULL, 2, AUTOTUNE_BF16}, {y, shape, NULL, 2, AUTOTUNE_BF16}};
 *     int status = autotune_launch(softmax, tensors, 2, NULL, 0, stream, NULL);     // each call
 *
 * Status. Every function that can fail returns an autotune_status, 0 for success. What went wrong is one sentence in
 * autotune_error_message() of the same thread. No C++ exception leaves the library, and one that a callback throws ends
 * in it.
 * Threads. Any number of them use one dispatcher and its handles at once. A call whose problem was seen before takes no
 * lock and allocates nothing. No function may be called in the child of a fork with what its parent made.
 * ABI. What a program compiled with this header uses stays as it is for as long as the library is libautotune.so.1:
 * functions and enumerators are added, never changed; structs that begin with `size` grow at their end; the others are
 * fixed.
 * Nothing of CUDA is needed to build: a stream is a CUstream or cudaStream_t, a device pointer an address. */
#ifndef AUTOTUNE_H
#define AUTOTUNE_H

#include <stddef.h>
#include <stdint.h>

#include "autotune/reference.h" /* enum autotune_dtype */

#if defined(__GNUC__)
#define AUTOTUNE_API __attribute__((visibility("default")))
#else
#define AUTOTUNE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised by each addition. A library of version n serves programs compiled with the header of any version up to n. */
#define AUTOTUNE_ABI_VERSION 1

/* The version of the library that is loaded, and its name: "0.1.0". */
AUTOTUNE_API uint32_t autotune_abi_version(void);
AUTOTUNE_API const char* autotune_version(void);

/* The same numbers as the exit codes of the command line. */
enum autotune_status {
    AUTOTUNE_OK = 0,
    AUTOTUNE_USAGE = 1,         /* bad use or input: the message says what of it */
    AUTOTUNE_NOTHING_FOUND = 2, /* no valid config, or nothing stored */
    AUTOTUNE_UNAVAILABLE = 3,   /* no usable device or compiler, or the driver failed: nothing was launched */
    AUTOTUNE_CHECK_FAILED = 4,  /* a check that was asked for failed */
    AUTOTUNE_NOT_STORED = 5,    /* the database could not be read or written */
    AUTOTUNE_INTERNAL = 70,     /* a fault of autotune's own */
    AUTOTUNE_INTERRUPTED = 130  /* ended by the caller; what was found out is kept */
};

/* Of the last call of this thread that returned another status than AUTOTUNE_OK: one sentence, and a line that helps,
 * mostly a command; "" where there is none. Valid until the thread's next such call; cut at 2047 bytes. */
AUTOTUNE_API const char* autotune_error_message(void);
AUTOTUNE_API const char* autotune_error_help(void);

/* -- Dispatching: launching the tuned kernel for a call, or the op's default where nothing is tuned */

typedef struct autotune_dispatcher autotune_dispatcher;
typedef struct autotune_handle autotune_handle; /* an op with some fields fixed; lives as long as its dispatcher */

enum autotune_dispatcher_flag {
    AUTOTUNE_NO_USER_DATABASE = 1, /* not the user's own: AUTOTUNE_DB, or ~/.cache/autotune/1/tune.db */
    AUTOTUNE_NO_PREDICTIONS = 2,   /* where nothing was measured, the default and not what a model predicts */
    AUTOTUNE_NO_COMPILE = 4,       /* kernels whose binary is stored only */
    AUTOTUNE_KEEP_NO_BINARIES = 8, /* what is compiled is not put beside the user's database */
    /* Not the machine's: AUTOTUNE_SYSTEM_DB, or autotune/1/tune.db in XDG_DATA_DIRS. */
    AUTOTUNE_NO_SYSTEM_DATABASE = 16,
    /* The machine's database changes in no way while this dispatcher lives: no lock is taken and no change seen. Wrong
     * answers follow where it does change. */
    AUTOTUNE_SYSTEM_DATABASE_IS_IMMUTABLE = 32,
    AUTOTUNE_ONLY_LOCAL = 64 /* refuses what was measured elsewhere: imported and embedded rows */
};

/* Bytes in the program; they must outlive what they are given to. */
typedef struct autotune_bytes {
    const void* data;
    size_t size;
} autotune_bytes;

/* What a call does whose problem has no record on this kind of GPU. None tunes in a capture, nor while frozen. */
enum autotune_on_miss {
    AUTOTUNE_RUN_DEFAULT = 0, /* runs the best that there is without one */
    AUTOTUNE_TUNE_NOW = 1,    /* waits until it is tuned; threads that call the same problem wait together */
    AUTOTUNE_TUNE_BEHIND = 2, /* runs the best that there is, while a thread of the dispatcher tunes */
    AUTOTUNE_FAIL = 3         /* launches nothing: AUTOTUNE_UNAVAILABLE */
};

/* What a dispatcher is made of. All zero but `size` is the usual one. */
typedef struct autotune_options {
    size_t size;    /* sizeof(autotune_options) */
    uint64_t flags; /* of autotune_dispatcher_flag, or-ed */
    /* Database files; rows of all compete. One that is no database of autotune is ignored with a line in the log. */
    const char* const* databases;
    size_t database_count;
    /* Folders with ops of your own, beside the built-in ones. Nothing of them is compiled before it is launched. */
    const char* const* op_folders;
    size_t op_folder_count;
    size_t most_problems; /* remembered; beyond it those used longest ago go. 0: 65536 */
    /* Told one sentence each, each once, from any thread; NULL: nobody. Must not call the dispatcher. */
    void (*log)(void* context, const char* sentence);
    void* log_context;
    int64_t on_miss; /* of enum autotune_on_miss. Tuning runs in processes of autotune-worker: see autotune_command */
    uint64_t tune_budget_ms;   /* of a problem; 0: 30 s */
    uint64_t tune_patience_ms; /* how long a call waits before it runs what there is; 0: 120 s */
    /* A database that takes what calls find out: configs that fail, and problems that are not tuned, which
     * `autotune --from-misses` works through; where `on_miss` tunes, the records too. It is read as well. NULL: none;
     * records then go to the user's own. */
    const char* learn;
    /* Bundles that the application brings along, as files and as bytes. Naming one is trusting it: its records count
     * like those of a database, and its binaries, which are code, are loaded before anything is compiled. One that is
     * damaged is ignored whole with a line in the log. */
    const char* const* bundles;
    size_t bundle_count;
    const autotune_bytes* embedded_bundles;
    size_t embedded_bundle_count;
    /* A database as bytes, which `autotune db export` makes. Read where it lies. What is no database of autotune is
     * ignored with a line in the log. */
    autotune_bytes embedded_database;
    /* Ops that are tuned by the application's own calls, where no fresh record answers: now and then a call also tries
     * another config. Only calls that change no input and may be run again; never in a capture, nor while frozen. */
    const char* const* online;
    size_t online_count;
    double online_share; /* of the GPU time of a problem's calls, at most 0.5. 0: 0.02 */
    /* Ops made of expressions, such as "bias_relu = relu(x + bias)": see `autotune help chains`. */
    const char* const* chains;
    size_t chain_count;
} autotune_options;

/* A dispatcher; options NULL: the usual one. Databases are read when a call needs them.
 * AUTOTUNE_USAGE  options of a newer library, an unknown flag or policy, an op folder that cannot be loaded, a chain
 *                 that is none, an unknown op or a wrong share for online tuning
 * cost            some milliseconds, and the driver's start where it has not started */
AUTOTUNE_API int autotune_dispatcher_create(const autotune_options* options, autotune_dispatcher** out);
/* Ends it and its handles; no other thread may be using them, and what it launched must have ended. NULL is nothing. */
AUTOTUNE_API void autotune_dispatcher_destroy(autotune_dispatcher* dispatcher);

/* An op with some fields fixed: "dtype=bf16" or "dtype=bf16,causal=true"; NULL or "": none. Fields left out are found
 * at each call: dims from shapes, dtypes from tensors, others by the op's defaults. The same words give the same
 * handle.
 * AUTOTUNE_USAGE  an unknown op, field or choice */
AUTOTUNE_API int autotune_prepare(autotune_dispatcher* dispatcher, const char* op, const char* fields,
                                  const autotune_handle** out);

/* A tensor of a call. An optional one that is absent has a NULL `data`. */
typedef struct autotune_tensor {
    const void* data;       /* device memory */
    const int64_t* shape;   /* `rank` extents */
    const int64_t* strides; /* in elements; NULL: packed */
    int32_t rank;
    int32_t dtype; /* of enum autotune_dtype */
} autotune_tensor;

/* A launch value that is no key, such as alpha; converted to the type that the op declares. */
typedef struct autotune_scalar {
    int64_t is_integer; /* 0: value.real */
    union {
        double real;
        int64_t integer;
    } value;
} autotune_scalar;

static inline autotune_scalar autotune_real(double number) {
    autotune_scalar scalar;
    scalar.is_integer = 0;
    scalar.value.real = number;
    return scalar;
}
static inline autotune_scalar autotune_integer(int64_t number) {
    autotune_scalar scalar;
    scalar.is_integer = 1;
    scalar.value.integer = number;
    return scalar;
}

#define AUTOTUNE_MOST_TENSORS 64 /* of a call; as many scalars */

/* How good an answer is, best first. Whatever the rung, a config is checked against the very problem and GPU. */
enum autotune_rung {
    AUTOTUNE_EXACT = 0,       /* tuned for this very problem on this kind of GPU, with today's source and compiler */
    AUTOTUNE_EXACT_STALE = 1, /* the same, but source, space or compiler have changed since */
    AUTOTUNE_NEAREST = 2,     /* tuned on this kind of GPU for a problem whose dims are close */
    AUTOTUNE_SIBLING = 3,     /* tuned for this problem on a GPU that is nearly the same */
    AUTOTUNE_SIBLING_NEAREST = 4, /* tuned on such a GPU for a problem whose dims are close */
    AUTOTUNE_ROBUST = 5,          /* loses least over the problems of the op that were tuned on such GPUs */
    AUTOTUNE_FAMILY = 6,          /* tuned on a GPU of the same capability's major number */
    AUTOTUNE_PREDICTED = 7,       /* nobody has measured it: a model of such a GPU put it before the default */
    AUTOTUNE_DEFAULT = 8,
    AUTOTUNE_NONE = 9 /* nothing could be launched */
};

/* Where an answer comes from, the nearest to the application first. */
enum autotune_layer {
    AUTOTUNE_LAYER_PINNED = 0,
    AUTOTUNE_LAYER_USER = 1,     /* the user's own database */
    AUTOTUNE_LAYER_PROJECT = 2,  /* autotune_options.databases */
    AUTOTUNE_LAYER_SYSTEM = 3,   /* the machine's */
    AUTOTUNE_LAYER_EMBEDDED = 4, /* in the program */
    AUTOTUNE_LAYER_OP = 5        /* the op's own files: a default */
};

/* What was decided for a call. The texts live as long as the dispatcher, and are never NULL. */
typedef struct autotune_decision {
    size_t size;    /* the caller sets it: sizeof(autotune_decision) */
    int32_t rung;   /* of enum autotune_rung; numbers may be added */
    int32_t layer;  /* of enum autotune_layer; numbers may be added */
    int32_t error;  /* CUresult of the last thing that failed; 0: nothing did */
    float distance; /* octaves between the stored problem and this one, over all dims; 0: the same */
    uint8_t launched;
    uint8_t verified; /* checked again after timing, with other seeds and ragged problems */
    uint8_t stale;    /* source, space or compiler have changed since it was tuned */
    uint8_t imported; /* measured elsewhere */
    uint8_t reserved[4];
    const char* config; /* "warp_row THREADS=256 VEC=8" */
    const char* why;    /* one sentence */
} autotune_decision;

/* How many rungs there are, and what they are called: "exact", "default", ...; "" for what is none. Layers likewise. */
AUTOTUNE_API int32_t autotune_rung_count(void);
AUTOTUNE_API const char* autotune_rung_name(int32_t rung);
AUTOTUNE_API const char* autotune_layer_name(int32_t layer);

/* Launches on the stream, which belongs to the current context. tensors: in the op's order, all of them. scalars: in
 * the op's order; those left out have the op's defaults. decision: filled, also where nothing was launched; may be
 * NULL.
 * AUTOTUNE_USAGE        arguments that contradict the op
 * AUTOTUNE_UNAVAILABLE  nothing was launched; the decision's `why` is the message
 * cost                  a problem that was seen before: one driver call and some 50 ns; the first call of one reads,
 *                       loads and perhaps compiles */
AUTOTUNE_API int autotune_launch(const autotune_handle* handle, const autotune_tensor* tensors, size_t tensor_count,
                                 const autotune_scalar* scalars, size_t scalar_count, void* stream,
                                 autotune_decision* decision);
/* Decides, loads and allocates for such a call, and launches nothing: before a capture. */
AUTOTUNE_API int autotune_ready(const autotune_handle* handle, const autotune_tensor* tensors, size_t tensor_count,
                                const autotune_scalar* scalars, size_t scalar_count, void* stream,
                                autotune_decision* decision);
/* The same for a call that is known by its problem alone: "rows=4096,cols=4096", the fields that the handle leaves
 * open, and "x.align=4" for a tensor aligned to less than 16 bytes. Its tensors are packed. */
AUTOTUNE_API int autotune_ready_problem(const autotune_handle* handle, const char* problem, void* stream,
                                        autotune_decision* decision);

/* While it lasts, calls of this thread behave as if their stream were being captured: nothing is loaded. Begins and
 * ends nest. */
AUTOTUNE_API int autotune_capture_begin(void);
AUTOTUNE_API int autotune_capture_end(void); /* AUTOTUNE_USAGE without a begin */

/* Reads the databases again now; otherwise that happens on a miss, at most once a second. Nothing while frozen. */
AUTOTUNE_API int autotune_refresh(autotune_dispatcher* dispatcher);

/* Calls answered by each rung so far: counts[rung], at most `capacity` of them; what is beyond the rungs becomes 0. */
AUTOTUNE_API int autotune_counts(const autotune_dispatcher* dispatcher, uint64_t* counts, size_t capacity);

/* -- What comes as text */

enum autotune_stream {
    AUTOTUNE_RESULT = 1, /* what the command line writes to stdout */
    AUTOTUNE_NOTICE = 2  /* what it writes to stderr */
};

/* Takes text as it comes, on the thread that made the call: mostly a line with its break. `text` has `size` bytes, and
 * a NUL behind them. Another answer than 0 asks for an end. */
typedef int (*autotune_output)(void* context, int stream, const char* text, size_t size);

/* Problems that ran the default or a prediction for want of a record, a line each:
 * {"op":...,"problem":...,"device":...} with the problem as `autotune tune` takes it. */
AUTOTUNE_API int autotune_misses(const autotune_dispatcher* dispatcher, autotune_output output, void* context);

/* How a problem, "rows=4096,cols=4096,dtype=bf16", would be answered on a GPU: one line of JSON with `rung`, `config`,
 * `layer`, `why`, `rows` (what there was to choose from, each with its layer, device and distance) and `closest`
 * (stored problems, and what differs). Launches nothing.
 * AUTOTUNE_UNAVAILABLE  there is no such GPU */
AUTOTUNE_API int autotune_explain(const autotune_dispatcher* dispatcher, const char* op, const char* problem,
                                  int device, autotune_output output, void* context);

/* Has calls of an op whose problems have these values, "dtype=bf16" or NULL for all, run this config, "warp_row
 * THREADS=256 VEC=8", whatever databases say: for experiments that must not tune themselves. Where it is not valid, or
 * has failed, the call goes on to the databases, with a line in the log. Of several pins that fit the last one counts.
 * AUTOTUNE_USAGE  an unknown op, field, variant, parameter or value, or the dispatcher is frozen */
AUTOTUNE_API int autotune_pin(autotune_dispatcher* dispatcher, const char* op, const char* fields, const char* config);
/* Drops every pin of the op. dropped: 1 where there was one, else 0; may be NULL.
 * AUTOTUNE_USAGE  the dispatcher is frozen */
AUTOTUNE_API int autotune_unpin(autotune_dispatcher* dispatcher, const char* op, int32_t* dropped);

/* -- One answer everywhere: graphs and eager calls, the ranks of a job */

/* From now on a problem keeps the config it got, whatever databases say or a capture allows; a new one is answered by
 * what was known then. Only a kernel that fails is still replaced. Thawed, what was decided meanwhile is decided anew.
 */
AUTOTUNE_API int autotune_freeze(autotune_dispatcher* dispatcher);
AUTOTUNE_API int autotune_thaw(autotune_dispatcher* dispatcher);

/* Which config each problem got, of those that are remembered, in one piece for other processes. Equal decisions give
 * equal bytes. */
AUTOTUNE_API int autotune_export_decisions(const autotune_dispatcher* dispatcher, autotune_output output,
                                           void* context);
/* Puts what another process decided before everything that the databases say, wherever it is valid here. The bytes are
 * not trusted. taken, refused: how many decisions, may be NULL; output: told a sentence of each of the first refused
 * ones, may be NULL.
 * AUTOTUNE_USAGE  bytes that are damaged or of a newer library, or the dispatcher is frozen: nothing is taken, and both
 *                 numbers are 0 */
AUTOTUNE_API int autotune_import_decisions(autotune_dispatcher* dispatcher, const void* bytes, size_t size,
                                           uint64_t* taken, uint64_t* refused, autotune_output output, void* context);
/* 64 bits over which config each problem got: equal on processes that run the same, whatever their GPUs. */
AUTOTUNE_API int autotune_decision_hash(const autotune_dispatcher* dispatcher, uint64_t* hash);

/* -- Everything else: a subcommand of `autotune` with its flags, in this process */

/* autotune_command(4, {"tune", "softmax", "rows=4096,cols=4096,dtype=bf16", "--json"}, output, context) searches,
 * checks and stores, and tells each trial as a line of JSON (share/autotune/json-lines.schema.json); `query`, `why`,
 * `verify`, `bench` and the others likewise, with or without --json. Nothing is written to stdout or stderr, and no
 * signal is handled. `output` may be NULL. What needs a GPU runs in processes of autotune-worker, which lies in
 * libexec/autotune beside the library, or where AUTOTUNE_WORKER says.
 * returns  the command's exit code
 *          AUTOTUNE_INTERRUPTED where `output` asked for an end: what was found out by then is stored */
AUTOTUNE_API int autotune_command(size_t word_count, const char* const* words, autotune_output output, void* context);

#ifdef __cplusplus
}
#endif
#endif

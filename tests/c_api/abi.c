/* Goal: a program compiled today runs with every libautotune.so.1 to come.
 * Method: sizes, offsets and numbers of the header are frozen here, in C99; what is added comes behind them. */
#include <autotune/autotune.h>
#include <stdio.h>
#include <string.h>

static int wrong = 0;

static void expect(int holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "no longer so: %s\n", what);
    wrong = 1;
}
#define EXPECT(claim) expect(claim, #claim)

static int count_bytes(void* context, int stream, const char* text, size_t size) {
    (void)stream;
    *(size_t*)context += strlen(text) == size ? size : 0;
    return 0;
}

int main(void) {
    autotune_options options;
    autotune_decision decision;
    autotune_dispatcher* dispatcher = NULL;
    const autotune_handle* handle = NULL;
    const char* const words[] = {"--version"};
    size_t bytes = 0;

    EXPECT(sizeof(autotune_tensor) == 32);
    EXPECT(offsetof(autotune_tensor, data) == 0);
    EXPECT(offsetof(autotune_tensor, shape) == 8);
    EXPECT(offsetof(autotune_tensor, strides) == 16);
    EXPECT(offsetof(autotune_tensor, rank) == 24);
    EXPECT(offsetof(autotune_tensor, dtype) == 28);
    EXPECT(sizeof(autotune_scalar) == 16);
    EXPECT(offsetof(autotune_scalar, value) == 8);
    /* These grow at their end. */
    EXPECT(sizeof(autotune_options) >= 176);
    EXPECT(offsetof(autotune_options, size) == 0);
    EXPECT(offsetof(autotune_options, flags) == 8);
    EXPECT(offsetof(autotune_options, databases) == 16);
    EXPECT(offsetof(autotune_options, database_count) == 24);
    EXPECT(offsetof(autotune_options, op_folders) == 32);
    EXPECT(offsetof(autotune_options, op_folder_count) == 40);
    EXPECT(offsetof(autotune_options, most_problems) == 48);
    EXPECT(offsetof(autotune_options, log) == 56);
    EXPECT(offsetof(autotune_options, log_context) == 64);
    EXPECT(offsetof(autotune_options, on_miss) == 72);
    EXPECT(offsetof(autotune_options, tune_budget_ms) == 80);
    EXPECT(offsetof(autotune_options, tune_patience_ms) == 88);
    EXPECT(offsetof(autotune_options, learn) == 96);
    EXPECT(offsetof(autotune_options, bundles) == 104);
    EXPECT(offsetof(autotune_options, bundle_count) == 112);
    EXPECT(offsetof(autotune_options, embedded_bundles) == 120);
    EXPECT(offsetof(autotune_options, embedded_bundle_count) == 128);
    EXPECT(offsetof(autotune_options, embedded_database) == 136);
    EXPECT(offsetof(autotune_options, online) == 152);
    EXPECT(offsetof(autotune_options, online_count) == 160);
    EXPECT(offsetof(autotune_options, online_share) == 168);
    EXPECT(sizeof(autotune_bytes) == 16);
    EXPECT(offsetof(autotune_bytes, size) == 8);
    EXPECT(AUTOTUNE_RUN_DEFAULT == 0 && AUTOTUNE_TUNE_NOW == 1 && AUTOTUNE_TUNE_BEHIND == 2 && AUTOTUNE_FAIL == 3);
    EXPECT(sizeof(autotune_decision) >= 48);
    EXPECT(offsetof(autotune_decision, size) == 0);
    EXPECT(offsetof(autotune_decision, rung) == 8);
    EXPECT(offsetof(autotune_decision, layer) == 12);
    EXPECT(offsetof(autotune_decision, error) == 16);
    EXPECT(offsetof(autotune_decision, distance) == 20);
    EXPECT(offsetof(autotune_decision, launched) == 24);
    EXPECT(offsetof(autotune_decision, verified) == 25);
    EXPECT(offsetof(autotune_decision, stale) == 26);
    EXPECT(offsetof(autotune_decision, imported) == 27);
    EXPECT(offsetof(autotune_decision, config) == 32);
    EXPECT(offsetof(autotune_decision, why) == 40);
    EXPECT(AUTOTUNE_EXACT == 0 && AUTOTUNE_EXACT_STALE == 1 && AUTOTUNE_NEAREST == 2 && AUTOTUNE_SIBLING == 3);
    EXPECT(AUTOTUNE_SIBLING_NEAREST == 4 && AUTOTUNE_ROBUST == 5 && AUTOTUNE_FAMILY == 6 && AUTOTUNE_PREDICTED == 7);
    EXPECT(AUTOTUNE_DEFAULT == 8 && AUTOTUNE_NONE == 9);
    EXPECT(AUTOTUNE_LAYER_PINNED == 0 && AUTOTUNE_LAYER_USER == 1 && AUTOTUNE_LAYER_PROJECT == 2);
    EXPECT(AUTOTUNE_LAYER_SYSTEM == 3 && AUTOTUNE_LAYER_EMBEDDED == 4 && AUTOTUNE_LAYER_OP == 5);
    EXPECT(AUTOTUNE_F64 == 0 && AUTOTUNE_F32 == 1 && AUTOTUNE_F16 == 2 && AUTOTUNE_BF16 == 3 && AUTOTUNE_BOOL == 12);
    EXPECT(AUTOTUNE_OK == 0 && AUTOTUNE_USAGE == 1 && AUTOTUNE_NOTHING_FOUND == 2 && AUTOTUNE_UNAVAILABLE == 3);
    EXPECT(AUTOTUNE_CHECK_FAILED == 4 && AUTOTUNE_NOT_STORED == 5 && AUTOTUNE_INTERNAL == 70);
    EXPECT(AUTOTUNE_INTERRUPTED == 130);
    EXPECT(AUTOTUNE_NO_USER_DATABASE == 1 && AUTOTUNE_NO_PREDICTIONS == 2 && AUTOTUNE_NO_COMPILE == 4);
    EXPECT(AUTOTUNE_KEEP_NO_BINARIES == 8 && AUTOTUNE_NO_SYSTEM_DATABASE == 16);
    EXPECT(AUTOTUNE_SYSTEM_DATABASE_IS_IMMUTABLE == 32 && AUTOTUNE_ONLY_LOCAL == 64);
    EXPECT(AUTOTUNE_RESULT == 1 && AUTOTUNE_NOTICE == 2);
    EXPECT(AUTOTUNE_MOST_TENSORS == 64);

    EXPECT(autotune_abi_version() == AUTOTUNE_ABI_VERSION);
    EXPECT(strlen(autotune_version()) >= 5);
    EXPECT(strcmp(autotune_rung_name(0), "exact") == 0);
    EXPECT(autotune_rung_count() > AUTOTUNE_NONE);
    EXPECT(strcmp(autotune_rung_name(AUTOTUNE_NONE), "none") == 0);
    EXPECT(strcmp(autotune_layer_name(AUTOTUNE_LAYER_PROJECT), "project") == 0);
    EXPECT(strcmp(autotune_layer_name(-1), "") == 0 && strcmp(autotune_layer_name(1000), "") == 0);
    EXPECT(strcmp(autotune_rung_name(-1), "") == 0 && strcmp(autotune_rung_name(1000), "") == 0);
    EXPECT(strcmp(autotune_error_message(), "") == 0);

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = AUTOTUNE_NO_USER_DATABASE;
    EXPECT(autotune_dispatcher_create(&options, &dispatcher) == AUTOTUNE_OK);
    EXPECT(autotune_prepare(dispatcher, "softmx", NULL, &handle) == AUTOTUNE_USAGE);
    EXPECT(strstr(autotune_error_message(), "did you mean 'softmax'?") != NULL);
    EXPECT(autotune_prepare(dispatcher, "softmax", "dtype=bf16", &handle) == AUTOTUNE_OK);
    memset(&decision, 0, sizeof decision);
    decision.size = sizeof decision;
    EXPECT(autotune_launch(handle, NULL, 0, NULL, 0, NULL, &decision) != AUTOTUNE_OK);
    autotune_dispatcher_destroy(dispatcher);
    EXPECT(autotune_command(1, words, count_bytes, &bytes) == AUTOTUNE_OK);
    EXPECT(bytes > 0);
    return wrong;
}

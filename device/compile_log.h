#ifndef AUTOTUNE_DEVICE_COMPILE_LOG_H
#define AUTOTUNE_DEVICE_COMPILE_LOG_H

#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// What ptxas reported of one function under `--ptxas-options=-v`.
struct CompiledFunction {
    std::string symbol;
    bool entry = false;  ///< a kernel; else a device function that was not inlined
    int registers = 0;
    int barriers = 0;
    int shared_bytes = 0;  ///< static
    int stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};

/// A remark of ptxas by its number: C7508 (setmaxnreg ignored), C7511, C7517, C7519 (an asynchronous path serialised).
struct CompileRemark {
    std::string code;  ///< "C7511"
    std::string text;  ///< the whole line
};

struct CompileLog {
    std::vector<CompiledFunction> functions;
    std::vector<CompileRemark> remarks;
};

/// Reads a log by keyword: its lines gained fields over the years.
CompileLog read_compile_log(std::string_view log);

/// Whether ptxas gave up an asynchronous path or a register split that a pipelined kernel relies on.
bool serialised(const CompileRemark& remark) noexcept;

}  // namespace autotune
#endif

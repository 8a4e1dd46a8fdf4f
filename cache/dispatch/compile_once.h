#ifndef AUTOTUNE_CACHE_DISPATCH_COMPILE_ONCE_H
#define AUTOTUNE_CACHE_DISPATCH_COMPILE_ONCE_H

#include <chrono>
#include <functional>
#include <string>

#include "cache/store/binaries.h"

namespace autotune {

/// Makes a binary once, however many threads of this process and, with a folder to keep it in, processes want it at the
/// same moment: one compiles, the others take what it made. Who has waited for `patience` compiles a copy of its own,
/// and so does the next one where the compiling thread failed.
/// keep_in  null: between the threads of this process only
/// throws   what `compile` throws
Binary compile_once(const std::string& key, BinaryStore* keep_in, const std::function<Binary()>& compile,
                    std::chrono::milliseconds patience = std::chrono::seconds{120});

}  // namespace autotune
#endif

#ifndef AUTOTUNE_TUNER_MODEL_COMPILE_REQUEST_H
#define AUTOTUNE_TUNER_MODEL_COMPILE_REQUEST_H

#include <string>

#include "device/compiler.h"
#include "tuner/model/instance.h"

namespace autotune {

/// What a compiler is asked for a source, for `arch` where it names none of its own.
inline CompileRequest compile_request(const SourceSpec& source, const std::string& arch) {
    CompileRequest request{.name = source.source,
                           .source = source.text,
                           .headers = {},
                           .defines = source.defines,
                           .options = source.options,
                           .entries = source.entries,
                           .arch = source.arch.empty() ? arch : source.arch};
    for (const auto& [name, text] : source.headers) request.headers.push_back({name, text});
    return request;
}

}  // namespace autotune
#endif

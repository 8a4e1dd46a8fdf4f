#include "c_api/output.h"

#include <nlohmann/json.hpp>

#include "c_api/guarded.h"

namespace autotune::c_api {

void Output::text(int stream, const std::string& text) noexcept {
    if (!call_ || stopped_) return;
    try {
        stopped_ = call_(context_, stream, text.c_str(), text.size()) != 0;
    } catch (...) {
        stopped_ = threw_ = true;
    }
}

void Output::line(const nlohmann::json& object) {
    // Names come from databases: what is no UTF-8 in them is replaced.
    text(AUTOTUNE_RESULT, object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

int Output::status() const noexcept {
    if (threw_) return failed(AUTOTUNE_USAGE, "the output callback threw an exception, so the call was ended");
    return stopped_ ? failed(AUTOTUNE_INTERRUPTED, "the output callback asked for an end") : AUTOTUNE_OK;
}

}  // namespace autotune::c_api

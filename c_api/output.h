#ifndef AUTOTUNE_C_API_OUTPUT_H
#define AUTOTUNE_C_API_OUTPUT_H

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "autotune/autotune.h"

namespace autotune::c_api {

/// A caller's callback for text. After it has asked for an end, or thrown, it is not called again.
class Output {
public:
    Output(autotune_output call, void* context) noexcept : call_{call}, context_{context} {}

    void text(int stream, const std::string& text) noexcept;
    void line(const nlohmann::json& object);

    bool stopped() const noexcept { return stopped_; }
    /// AUTOTUNE_OK, or why it was stopped.
    int status() const noexcept;

private:
    autotune_output call_;
    void* context_;
    bool stopped_ = false, threw_ = false;
};

}  // namespace autotune::c_api
#endif

#ifndef AUTOTUNE_DEVICE_EMULATOR_FAULT_H
#define AUTOTUNE_DEVICE_EMULATOR_FAULT_H

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "device/device.h"
#include "device/emulator/warp.h"

namespace autotune::emulator {

/// What a kernel did wrong, for people and for programs.
struct Report {
    DeviceFault::Kind kind = DeviceFault::Kind::crashed;
    std::string message;        ///< one sentence with all that is known
    std::string kernel, place;  ///< "softmax.cu:93"
    std::string other_place;    ///< of the conflicting access, or of the other lanes
    Dim3 block, thread;
    std::uint64_t address = 0;
};

/// Ends a launch.
class Fault : public std::exception {
public:
    explicit Fault(Report report) : report_{std::move(report)} {}
    const char* what() const noexcept override { return report_.message.c_str(); }
    const Report& report() const noexcept { return report_; }

private:
    Report report_;
};

/// Throws a Fault: "<what> at softmax.cu:93 of 'softmax_rows', block (1,0,0), thread (5,0,0)<more>".
/// lane  the one that is to blame
[[noreturn]] void fail(const Warp& warp, const Op& op, int lane, DeviceFault::Kind kind, const std::string& what,
                       const std::string& more = {}, std::uint64_t address = 0, const Op* other = nullptr);

/// "not emulated: tex.2d.v4.f32.s32".
[[noreturn]] void not_emulated(Warp& warp, const Op& op, std::uint32_t mask);

/// An op that takes whole warps is run by a part of one.
[[noreturn]] void incomplete_warp(Warp& warp, const Op& op, std::uint32_t mask);

}  // namespace autotune::emulator
#endif

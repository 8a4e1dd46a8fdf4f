#include "device/emulator/fault.h"

#include <fmt/format.h>

#include "device/emulator/block.h"

namespace autotune::emulator {

Dim3 Block::thread(const Warp& warp, int lane) const noexcept {
    const Dim3& shape = launch->block;
    const std::uint32_t linear = warp.index * lanes + static_cast<std::uint32_t>(lane);
    return {linear % shape.x, linear / shape.x % shape.y, linear / shape.x / shape.y};
}

void fail(const Warp& warp, const Op& op, int lane, DeviceFault::Kind kind, const std::string& what,
          const std::string& more, std::uint64_t address, const Op* other) {
    const Block& block = *warp.block;
    const Program& program = *warp.program;
    Report report{.kind = kind,
                  .kernel = std::string{block.launch->kernel.name},
                  .place = program.place(op),
                  .other_place = other ? program.place(*other) : std::string{},
                  .block = block.index,
                  .thread = block.thread(warp, lane),
                  .address = address};
    report.message =
        fmt::format("{} at {} of '{}', block ({},{},{}), thread ({},{},{}){}{}", what, report.place, report.kernel,
                    report.block.x, report.block.y, report.block.z, report.thread.x, report.thread.y, report.thread.z,
                    more, other ? fmt::format(" at {}", report.other_place) : std::string{});
    throw Fault{std::move(report)};
}

void not_emulated(Warp& warp, const Op& op, std::uint32_t mask) {
    fail(warp, op, mask ? __builtin_ctz(mask) : 0, DeviceFault::Kind::not_emulated,
         fmt::format("not emulated: {}", warp.program->names[op.instruction]));
}

}  // namespace autotune::emulator

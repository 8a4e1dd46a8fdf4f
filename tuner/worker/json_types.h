#ifndef AUTOTUNE_TUNER_WORKER_JSON_TYPES_H
#define AUTOTUNE_TUNER_WORKER_JSON_TYPES_H

// Tasks and answers as JSON values, for CBOR. Included by .cpp files only: nlohmann/json.hpp is heavy.

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "autotune/error.h"
#include "tuner/model/counters_json.h"
#include "tuner/worker/frame.h"
#include "tuner/worker/task.h"

namespace autotune {

/// An enum as its number, refused when it is beyond `count`: the sender is not trusted.
template <class Enum>
Enum enum_from(const nlohmann::json& json, int count) {
    const int number = json.get<int>();
    if (number < 0 || number >= count) throw FrameError{"a worker sent a number that stands for nothing"};
    return static_cast<Enum>(number);
}

/// What a worker's answer `failed` says: kind, message, help.
inline Error error_from(const nlohmann::json& body) {
    constexpr int last = static_cast<int>(Error::Kind::internal);
    const int kind = std::clamp(body.value("kind", last), 0, last);
    return Error{static_cast<Error::Kind>(kind), body.at("message").get<std::string>(), body.value("help", "")};
}

inline void to_json(nlohmann::json& json, const DType& dtype) { json = static_cast<int>(dtype); }
inline void from_json(const nlohmann::json& json, DType& dtype) {
    dtype = enum_from<DType>(json, static_cast<int>(dtypes.size()));
}
inline void to_json(nlohmann::json& json, const Role& role) { json = static_cast<int>(role); }
inline void from_json(const nlohmann::json& json, Role& role) { role = enum_from<Role>(json, 4); }
inline void to_json(nlohmann::json& json, const FillSpec::Kind& kind) { json = static_cast<int>(kind); }
inline void from_json(const nlohmann::json& json, FillSpec::Kind& kind) { kind = enum_from<FillSpec::Kind>(json, 9); }
inline void to_json(nlohmann::json& json, const ReferenceTask::Kind& kind) { json = static_cast<int>(kind); }
inline void from_json(const nlohmann::json& json, ReferenceTask::Kind& kind) {
    kind = enum_from<ReferenceTask::Kind>(json, 3);
}

inline void to_json(nlohmann::json& json, const std::vector<std::byte>& bytes) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    json = nlohmann::json::binary({data, data + bytes.size()});
}
inline std::vector<std::byte> bytes_from(const nlohmann::json& json) {
    const auto& binary = json.get_binary();
    const auto* data = reinterpret_cast<const std::byte*>(binary.data());
    return {data, data + binary.size()};
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorMapArgument, buffer, dtype, extents, strides_bytes, box, swizzle_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SymbolCopy, symbol, source, buffer, each_launch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ScratchBuffer, name, bytes, zeroed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceLimits, cc, sm_count, warp, max_threads, max_shared, shared_per_sm,
                                   reserved_shared, registers_per_sm, threads_per_sm, blocks_per_sm_limit, l2_bytes,
                                   memory_bytes, max_grid_x, max_grid_y, max_grid_z)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceIdentity, fp, name, vendor, bandwidth_gbs, core_khz, memory_khz, ecc, mig,
                                   pci_id, uuid, driver_version, driver, limits, emulated)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FillSpec, kind, seed, stream, low, high, modulus)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Bound, of_value, of_magnitude, absolute)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Comparison, elements, bad, still_poison, not_finite, first_bad, got, want, bound,
                                   largest_ratio)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimePlan, warmup, samples, at_least_us, drop_above_us, timeout_us, about_us, graph)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Samples, time_us, dropped, graph, predicted, clock_mhz)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourceSpec, source, text, headers, defines, options, entries, arch)

inline void to_json(nlohmann::json& json, const Argument& argument) {
    if (const auto* buffer = std::get_if<BufferArgument>(&argument))
        json = {{"buffer", buffer->buffer}};
    else if (const auto* value = std::get_if<ValueArgument>(&argument)) {
        std::uint64_t bits;
        std::memcpy(&bits, value->bytes.data(), sizeof bits);
        json = {{"bits", bits}, {"size", value->size}};
    } else
        json = {{"map", std::get<TensorMapArgument>(argument)}};
}
inline void from_json(const nlohmann::json& json, Argument& argument) {
    if (json.contains("buffer"))
        argument = BufferArgument{json.at("buffer").get<std::uint32_t>()};
    else if (json.contains("map"))
        argument = json.at("map").get<TensorMapArgument>();
    else {
        ValueArgument value;
        const auto bits = json.at("bits").get<std::uint64_t>();
        std::memcpy(value.bytes.data(), &bits, sizeof bits);
        value.size = json.at("size").get<std::uint8_t>();
        argument = value;
    }
}

}  // namespace autotune

// A variant is found by no argument-dependent look-up of ours, so it is told to the library.
template <>
struct nlohmann::adl_serializer<autotune::Argument> {
    static void to_json(json& out, const autotune::Argument& argument) { autotune::to_json(out, argument); }
    static void from_json(const json& in, autotune::Argument& argument) { autotune::from_json(in, argument); }
};

namespace autotune {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Launch, entry, source, repeat, grid, block, cluster, shared_bytes, cooperative,
                                   arguments)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LaunchSequence, scratch, symbols, launches)

inline void to_json(nlohmann::json& json, const Artefact& artefact) {
    json = {{"arch", artefact.arch}, {"ptx", artefact.ptx}, {"log", artefact.log}, {"kernels", artefact.kernels}};
    to_json(json["cubin"], artefact.cubin);
}
inline void from_json(const nlohmann::json& json, Artefact& artefact) {
    json.at("arch").get_to(artefact.arch);
    json.at("ptx").get_to(artefact.ptx);
    json.at("log").get_to(artefact.log);
    json.at("kernels").get_to(artefact.kernels);
    artefact.cubin = bytes_from(json.at("cubin"));
}

inline void to_json(nlohmann::json& json, const Outcome& o) {
    json = {{"ending", info(o.ending).name}, {"reason", o.reason},   {"log", o.log},
            {"samples_us", o.samples_us},    {"time_us", o.time_us}, {"predicted", o.predicted},
            {"tainted", o.tainted},          {"method", o.method},   {"max_error", o.max_error},
            {"check_ms", o.check_ms},        {"time_ms", o.time_ms}, {"clock_mhz", o.clock_mhz},
            {"counters", o.counters}};
}
inline void from_json(const nlohmann::json& json, Outcome& o) {
    const std::optional<Ending> ending = ending_named(json.at("ending").get<std::string>());
    if (!ending) throw FrameError{"a worker sent an ending that there is not"};
    o.ending = *ending;
    json.at("reason").get_to(o.reason);
    json.at("log").get_to(o.log);
    json.at("samples_us").get_to(o.samples_us);
    json.at("time_us").get_to(o.time_us);
    json.at("predicted").get_to(o.predicted);
    json.at("tainted").get_to(o.tainted);
    json.at("method").get_to(o.method);
    json.at("max_error").get_to(o.max_error);
    json.at("check_ms").get_to(o.check_ms);
    json.at("time_ms").get_to(o.time_ms);
    json.at("clock_mhz").get_to(o.clock_mhz);
    json.at("counters").get_to(o.counters);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CompileTask, source, arch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CompileAnswer, ok, artefact, log, milliseconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorTask, name, dtype, role, present, shape, strides, elements, bytes, misalign,
                                   fill, contents, bound)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProblemTask, slot, tensors, rotate, modelled)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CandidateTask, slot, id, sources, artefacts, sequence, deterministic, idempotent)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReferenceTask, slot, kind, candidate, may_be_nan)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrialTask, candidate, twice, measure, check, plan, most_ms, floor_us, expect_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RoundTask, order, about_us, plan, watch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceState, other_processes, throttled)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RoundSamples, samples, state, failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FieldTask, name, integer, real, text, is_text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EvaluateTask, op, library, inputs_library, tensors, fields, seed, threads,
                                   inputs_only, sizes)

}  // namespace autotune
#endif

#include "tools/record_text.h"

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/launch_scalars.h"
#include "tools/version.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

using Json = nlohmann::json;

std::string identifier(std::string_view text) {
    std::string name;
    for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
}

std::string json_text(std::string_view text) {
    return Json(std::string{text}).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string heading(const Record& record) {
    std::string text = fmt::format("{} {} on {}: {}{}", record.source.op, record.problem.text(), record.device.name,
                                   format_time(record.time_us), record.predicted ? " PREDICTED by an emulator" : "");
    if (record.default_us) text += fmt::format(", {} the default", format_speedup(*record.default_us / record.time_us));
    return one_line(text + fmt::format(" ({})", name_of(record.verified)));
}

std::string buffer_name(const Instance& instance, const LaunchSequence& sequence, std::uint32_t buffer) {
    const std::size_t tensors = instance.tensors().size();
    return buffer < tensors ? instance.tensors()[buffer].name : sequence.scratch.at(buffer - tensors).name;
}

/// The name of a tensor as a parameter: an op may call a tensor what C++ or the function itself has another use for.
std::string cpp_name(const std::string& name) {
    static constexpr std::string_view taken =
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl "
        "const "
        "const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern "
        "false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or "
        "or_eq private protected public register reinterpret_cast return short signed sizeof static static_assert "
        "static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned "
        "using virtual void volatile wchar_t while xor xor_eq char8_t concept consteval constinit co_await co_return "
        "co_yield requires kernel stream arguments attributes config turn result ";
    const bool number =
        name.size() > 1 && name[0] == 'a' && name.find_first_not_of("0123456789", 1) == std::string::npos;
    return number || taken.find(' ' + name + ' ') != std::string_view::npos ? name + '_' : name;
}

std::string dim3(const Dim3& d) { return fmt::format("{}, {}, {}", d.x, d.y, d.z); }

/// The C++ type that a scalar of a dtype is passed as; a small float by its bits.
std::string_view cpp_type(DType dtype) {
    switch (dtype) {
        case DType::f64:
            return "double";
        case DType::f32:
            return "float";
        case DType::i64:
            return "long long";
        case DType::i32:
            return "int";
        case DType::u32:
            return "unsigned";
        case DType::i16:
            return "short";
        case DType::i8:
            return "signed char";
        case DType::f16:
        case DType::bf16:
            return "unsigned short";
        case DType::f8e4m3:
        case DType::f8e5m2:
        case DType::u8:
        case DType::boolean:
            return "unsigned char";
    }
    return "";
}

/// A launch function as text, with what it is made from.
struct CppLaunch {
    const Instance& instance;
    const LaunchSequence& sequence;
    const LaunchScalars& scalars;
    std::size_t number;

    const Launch& launch() const { return sequence.launches[number]; }
    std::string argument_line(std::size_t i) const;
    std::string parameters() const;
    std::string about_scalars() const;
};

/// The C++ declaration of argument `i`.
std::string CppLaunch::argument_line(std::size_t i) const {
    const Argument& argument = launch().arguments[i];
    if (const auto* buffer = std::get_if<BufferArgument>(&argument))
        return fmt::format("    CUdeviceptr a{} = {};\n", i, cpp_name(buffer_name(instance, sequence, buffer->buffer)));
    if (const ScalarParameter* parameter = scalars.parameter(number, i))
        return fmt::format("    {} a{} = {};\n", cpp_type(parameter->scalar->dtype), i,
                           cpp_name(parameter->scalar->name));
    if (const auto* value = std::get_if<ValueArgument>(&argument)) {
        std::string bytes;
        for (std::size_t b = 0; b < value->size; ++b)
            bytes += fmt::format("{}{:#04x}", b ? ", " : "", std::to_integer<int>(value->bytes[b]));
        return fmt::format("    alignas(8) unsigned char a{}[8] = {{{}}};  // {}\n", i, bytes,
                           one_line(scalars.words(number, i)));
    }
    return fmt::format("    CUtensorMap a{} = {}_map;\n", i,
                       buffer_name(instance, sequence, std::get<TensorMapArgument>(argument).buffer));
}

/// A declaration of each tensor and scratch buffer, of each tensor map, and of each scalar.
std::string CppLaunch::parameters() const {
    std::string text;
    for (const BoundTensor& tensor : instance.tensors())
        text += fmt::format(", [[maybe_unused]] CUdeviceptr {}", cpp_name(tensor.name));
    for (const ScratchBuffer& scratch : sequence.scratch)
        text += fmt::format(", [[maybe_unused]] CUdeviceptr {}", cpp_name(scratch.name));
    for (const Argument& argument : launch().arguments)
        if (const auto* map = std::get_if<TensorMapArgument>(&argument))
            text += fmt::format(", const CUtensorMap& {}_map", buffer_name(instance, sequence, map->buffer));
    for (const ScalarParameter& parameter : scalars.parameters())
        text += fmt::format(", [[maybe_unused]] {} {}", cpp_type(parameter.scalar->dtype),
                            cpp_name(parameter.scalar->name));
    return text;
}

std::string CppLaunch::about_scalars() const {
    std::string text;
    for (const auto& [scalar, timed_with, fact] : scalars.parameters()) {
        const bool bits = info(scalar->dtype).floating && info(scalar->dtype).bytes < sizeof(float);
        text += fmt::format("/// {}: {} of each launch; {} where this was timed.{}\n", cpp_name(scalar->name),
                            bits ? fmt::format("the bits of an {}", name_of(scalar->dtype)) : "a value",
                            one_line(to_text(timed_with)),
                            fact.empty() ? "" : one_line(fmt::format(" It has to keep {}.", fact)));
    }
    return text;
}

/// The launch with its attributes, as the body of a function that has `arguments`.
std::string launch_with_attributes(const Launch& launch) {
    std::string text = "    CUlaunchAttribute attributes[2] = {};\n";
    unsigned count = 0;
    if (launch.cluster != Dim3{}) {
        text += fmt::format("    attributes[{}].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;\n", count);
        for (const auto& [axis, extent] :
             {std::pair{'x', launch.cluster.x}, {'y', launch.cluster.y}, {'z', launch.cluster.z}})
            text += fmt::format("    attributes[{}].value.clusterDim.{} = {};\n", count, axis, extent);
        ++count;
    }
    if (launch.cooperative) {
        text += fmt::format("    attributes[{}].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;\n", count);
        text += fmt::format("    attributes[{}].value.cooperative = 1;\n", count++);
    }
    text += "    CUlaunchConfig config = {};\n";
    for (const auto& [what, shape] : {std::pair{"grid", launch.grid}, {"block", launch.block}})
        text += fmt::format("    config.{0}DimX = {1}, config.{0}DimY = {2}, config.{0}DimZ = {3};\n", what, shape.x,
                            shape.y, shape.z);
    text += fmt::format("    config.sharedMemBytes = {};\n    config.hStream = stream;\n", launch.shared_bytes);
    return text + fmt::format("    config.attrs = attributes;\n    config.numAttrs = {};\n", count);
}

std::string launch_function(const CppLaunch& function) {
    const Launch& launch = function.launch();
    std::string declared, pointers;
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
        declared += function.argument_line(i);
        pointers += fmt::format("{}&a{}", i ? ", " : "", i);
    }
    std::string text = fmt::format("/// Launch {} of {}, of the kernel {}.\n{}", function.number + 1,
                                   function.sequence.launches.size(), one_line(launch.entry), function.about_scalars());
    const auto once = [&](std::string_view attribute, std::uint32_t value) {
        text += fmt::format("/// Once for each function: cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_{}, {}).\n",
                            attribute, value);
    };
    if (launch.shared_bytes > 48 * 1024) once("MAX_DYNAMIC_SHARED_SIZE_BYTES", launch.shared_bytes);
    if (launch.cluster.x * launch.cluster.y * launch.cluster.z > 8) once("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1);
    text += fmt::format(
        "inline CUresult launch_{}([[maybe_unused]] CUfunction kernel, [[maybe_unused]] CUstream stream{}) {{\n",
        function.number, function.parameters());
    text += declared;
    if (!pointers.empty()) text += fmt::format("    void* arguments[] = {{{}}};\n", pointers);
    const std::string_view arguments = pointers.empty() ? "nullptr" : "arguments";
    const bool plain = launch.cluster == Dim3{} && !launch.cooperative;
    if (!plain) text += launch_with_attributes(launch);
    const std::string call = plain ? fmt::format("cuLaunchKernel(kernel, {}, {}, {}, stream, {}, nullptr)",
                                                 dim3(launch.grid), dim3(launch.block), launch.shared_bytes, arguments)
                                   : fmt::format("cuLaunchKernelEx(&config, kernel, {}, nullptr)", arguments);
    if (launch.repeat == 1) return text + fmt::format("    return {};\n}}\n", call);
    return text + fmt::format(
                      "    for (unsigned turn = 0; turn < {}; ++turn)\n        if (const CUresult result = {}; result "
                      "!= CUDA_SUCCESS) return result;\n    return CUDA_SUCCESS;\n}}\n",
                      launch.repeat, call);
}

Json argument_json(const Instance& instance, const LaunchSequence& sequence, const Argument& argument) {
    if (const auto* buffer = std::get_if<BufferArgument>(&argument))
        return {{"buffer", buffer_name(instance, sequence, buffer->buffer)}};
    if (const auto* value = std::get_if<ValueArgument>(&argument)) {
        std::string hex;
        for (std::size_t b = 0; b < value->size; ++b)
            hex += fmt::format("{:02x}", std::to_integer<int>(value->bytes[b]));
        return {{"bytes", hex}};
    }
    const auto& map = std::get<TensorMapArgument>(argument);
    return {{"tensor_map",
             {{"buffer", buffer_name(instance, sequence, map.buffer)},
              {"dtype", name_of(map.dtype)},
              {"extents", map.extents},
              {"strides_bytes", map.strides_bytes},
              {"box", map.box},
              {"swizzle_bytes", map.swizzle_bytes}}}};
}

Json dim_json(const Dim3& d) { return {d.x, d.y, d.z}; }

Json launches_json(const Instance& instance, const LaunchSequence& sequence) {
    Json launches = Json::array();
    for (const Launch& launch : sequence.launches) {
        Json arguments = Json::array();
        for (const Argument& argument : launch.arguments)
            arguments.push_back(argument_json(instance, sequence, argument));
        launches.push_back({{"entry", launch.entry},
                            {"source", launch.source},
                            {"repeat", launch.repeat},
                            {"grid", dim_json(launch.grid)},
                            {"block", dim_json(launch.block)},
                            {"cluster", dim_json(launch.cluster)},
                            {"shared_bytes", launch.shared_bytes},
                            {"cooperative", launch.cooperative},
                            {"arguments", arguments}});
    }
    return launches;
}

Json value_json(const Value& value) {
    return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string toml_value(const Value& value) {
    return std::holds_alternative<std::string>(value) ? json_text(std::get<std::string>(value)) : to_text(value);
}

std::string where_source_is(const Instance& instance) {
    const Op& op = instance.op();
    if (!op.folder.empty()) return one_line(fmt::format("It lies in {}.", op.folder));
    const Value* chain = instance.problem().find("chain");
    return one_line(fmt::format("autotune ops --show {} prints it and what it includes.",
                                op.builtin || !chain ? op.name : fmt::format("--chain '{}'", to_text(*chain))));
}

}  // namespace

std::string record_as_cpp(const Record& record, const Instance& instance) {
    const LaunchSequence sequence = instance.launches(record.config);
    const std::vector<SourceSpec> sources = instance.sources(record.config);
    const LaunchScalars scalars{instance, record.config};
    std::string text = fmt::format(
        "// {}\n// {}\n// written by autotune {}: autotune query {} --as cpp\n#pragma once\n#include "
        "<cuda.h>\n\nnamespace tuned::{}_{} {{\n\n",
        heading(record), one_line(record.config.text()), version(), record.source.op, identifier(record.source.op),
        identifier(record.problem.text()));
    for (const SourceSpec& source : sources) {
        const std::string suffix = sources.size() == 1 ? "" : "_" + identifier(source.source);
        text += fmt::format("/// How {} is compiled: nvcc or NVRTC for sm_{}, with these defines in front. {}\n",
                            source.source, instance.limits().cc, where_source_is(instance));
        text += fmt::format("inline constexpr const char* defines{}[] = {{", suffix);
        for (const auto& [name, value] : source.defines)
            text += fmt::format("\n    {},", json_text(fmt::format("-D{}={}", name, value)));
        text += source.defines.empty() ? "\"\"};\n" : "\n};\n";
    }
    for (const ScratchBuffer& scratch : sequence.scratch)
        text += fmt::format("inline constexpr unsigned long long {}_bytes = {};{}\n", scratch.name, scratch.bytes,
                            scratch.zeroed ? "  // zeroed before each sequence" : "");
    for (const SymbolCopy& symbol : sequence.symbols)
        text += fmt::format("/// Before {}: copy the tensor {} to the variable {} of {} (cuModuleGetGlobal).\n",
                            symbol.each_launch ? "each sequence" : "the first sequence",
                            buffer_name(instance, sequence, symbol.buffer), one_line(symbol.symbol), symbol.source);
    for (std::size_t i = 0; i < sequence.launches.size(); ++i) {
        text +=
            fmt::format("\ninline constexpr const char* entry_{} = {};\n", i, json_text(sequence.launches[i].entry));
        text += launch_function({instance, sequence, scalars, i});
    }
    return text + "\n}  // namespace\n";
}

std::string record_as_toml(const Record& record) {
    std::string text = fmt::format("# {}\nop = {}\nvariant = {}\n\n[problem]\n", heading(record),
                                   json_text(record.source.op), json_text(record.config.variant));
    for (const auto& [name, value] : record.problem.fields) text += fmt::format("{} = {}\n", name, toml_value(value));
    text += "\n[config]\n";
    for (const auto& [name, value] : record.config.values) text += fmt::format("{} = {}\n", name, toml_value(value));
    text += fmt::format("\n[{}]\ngpu = {}\ntime_us = {}\nlow_us = {}\nhigh_us = {}\nsamples = {}\n",
                        record.predicted ? "predicted" : "measured", json_text(record.device.name), record.time_us,
                        record.low_us, record.high_us, record.samples);
    if (record.default_us) text += fmt::format("default_us = {}\n", *record.default_us);
    return text + fmt::format("nvrtc = \"{}.{}\"\nverified = \"{}\"\n", record.environment.nvrtc_major,
                              record.environment.nvrtc_minor, name_of(record.verified));
}

std::string record_as_json(const Record& record, const Instance& instance) {
    const LaunchSequence sequence = instance.launches(record.config);
    Json tensors = Json::array(), scratch = Json::array(), problem = Json::object();
    for (const BoundTensor& t : instance.tensors())
        tensors.push_back({{"name", t.name},
                           {"dtype", name_of(t.dtype)},
                           {"shape", t.shape},
                           {"strides", t.strides},
                           {"bytes", t.bytes},
                           {"present", t.present},
                           {"output", t.role != Role::in}});
    for (const ScratchBuffer& s : sequence.scratch)
        scratch.push_back({{"name", s.name}, {"bytes", s.bytes}, {"zeroed", s.zeroed}});
    for (const auto& [name, value] : record.problem.fields) problem[name] = value_json(value);
    Json json = {{"v", 1},
                 {"event", "record"},
                 {"id", record.id.text()},
                 {"op", record.source.op},
                 {"problem", problem},
                 {"config", record.config},
                 {"device", record.device},
                 {"time_us", record.time_us},
                 {"low_us", record.low_us},
                 {"high_us", record.high_us},
                 {"samples", record.samples},
                 {"verified", name_of(record.verified)},
                 {"stale", record.stale},
                 {"tuned_at", record.tuned_at},
                 {"nvrtc", fmt::format("{}.{}", record.environment.nvrtc_major, record.environment.nvrtc_minor)},
                 {"flops", instance.flops()},
                 {"bytes", instance.bytes()},
                 {"tensors", tensors},
                 {"scratch", scratch},
                 {"launches", launches_json(instance, sequence)}};
    if (record.default_us) json["default_us"] = *record.default_us;
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace autotune

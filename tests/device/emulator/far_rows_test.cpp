// Goal: rows, heads and batches that lie more than 2^31 elements apart are found: no index is taken in 32 bits.
// Method: problems of a few rows with such strides, in memory that is reserved and made where it is touched. Each
// variant that may run gives the bits that it gives where the same rows are packed.
#include <gtest/gtest.h>

#include <cstring>

#include "device/compiler.h"
#include "device/emulator/emulated_device.h"
#include "device/fill.h"
#include "tests/device/emulator/kernel.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/compile_request.h"
#include "tuner/model/instance.h"

namespace autotune {
namespace {

using Fields = std::vector<std::pair<std::string, Value>>;
using Strides = std::vector<std::pair<std::string, std::int64_t>>;

constexpr std::int64_t far = (std::int64_t{1} << 31) + 64;  // elements; as aligned as packed rows are

struct Case {
    std::string op;
    Fields problem;
    Strides strides;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.op << " " << Problem{one.problem}.text(); }

const Op& op_named(const std::string& name) {
    for (const Op& op : builtin_ops())
        if (op.name == name) return op;
    throw std::runtime_error{"there is no op " + name};
}

/// Calls at(bytes before it in a packed tensor, bytes before it in this one, bytes) for each contiguous row.
template <class At>
void each_row(const BoundTensor& tensor, At at) {
    const std::size_t unit = size_of(tensor.dtype), rank = tensor.shape.size();
    const auto cols = static_cast<std::uint64_t>(tensor.shape.back());
    for (std::uint64_t row = 0; row < tensor.elements / cols; ++row) {
        std::uint64_t rest = row;
        std::int64_t offset = 0;
        for (std::size_t d = rank - 1; d-- > 0;) {
            offset += static_cast<std::int64_t>(rest % static_cast<std::uint64_t>(tensor.shape[d])) * tensor.strides[d];
            rest /= static_cast<std::uint64_t>(tensor.shape[d]);
        }
        at(row * cols * unit, static_cast<std::uint64_t>(offset) * unit, cols * unit);
    }
}

std::vector<Artefact> compiled(const std::vector<SourceSpec>& sources, const std::string& arch) {
    static Compiler compiler;
    std::vector<Artefact> artefacts;
    for (const SourceSpec& source : sources) {
        CompileResult result = compiler.compile(compile_request(source, arch));
        if (!result.ok) throw std::runtime_error{result.log};
        artefacts.push_back(std::move(result.artefact));
    }
    return artefacts;
}

/// The outputs of a config, packed, one behind the other.
std::vector<std::byte> outputs_of(EmulatedDevice& device, const Instance& instance, const Config& config) {
    std::vector<Buffer> buffers;
    const std::vector<BoundTensor>& tensors = instance.tensors();
    for (const BoundTensor& tensor : tensors) {
        buffers.push_back(tensor.present ? device.reserve(tensor.bytes, 0, DType::u8, nullptr) : Buffer{});
        if (!tensor.present) continue;
        std::vector<std::byte> packed(tensor.elements * size_of(tensor.dtype), std::byte{0x77});
        if (tensor.role != Role::out)
            fill_on_host(packed, tensor.dtype, 0, tensor.elements, instance.fill_of(tensor, 1));
        each_row(tensor, [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
            device.write(buffers.back(), to, std::span{packed}.subspan(from, bytes));
        });
    }
    const std::vector<SourceSpec> sources = instance.sources(config);
    const std::vector<Artefact> artefacts = compiled(sources, "sm_" + std::to_string(instance.limits().cc));
    std::vector<std::pair<std::string, Module>> modules;
    for (std::size_t i = 0; i < sources.size(); ++i) modules.emplace_back(sources[i].source, device.load(artefacts[i]));
    const LaunchSequence sequence = instance.launches(config, 1);
    for (const ScratchBuffer& scratch : sequence.scratch) buffers.push_back(device.allocate(scratch.bytes));
    device.run({.sequence = &sequence, .module = modules.front().second, .buffers = buffers, .others = modules});

    std::vector<std::byte> outputs;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (!tensors[i].present || tensors[i].role == Role::in) continue;
        each_row(tensors[i], [&](std::uint64_t, std::uint64_t at, std::uint64_t bytes) {
            outputs.resize(outputs.size() + bytes);
            device.read(buffers[i], at, std::span{outputs}.last(bytes));
        });
    }
    for (const auto& [name, module] : modules) device.unload(module);
    for (const Buffer& buffer : buffers)
        if (buffer.bytes > 0) device.release(buffer);
    return outputs;
}

class FarRows : public testing::TestWithParam<Case> {};

TEST_P(FarRows, EachVariantFindsThem) {
    if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    const auto& [op, problem, strides] = GetParam();
    EmulatorOptions options;
    options.memory_bytes = std::uint64_t{1} << 36;
    const auto device = make_emulated_device("sm_90", options);
    const DeviceLimits& limits = device->identity().limits;
    const Instance near = Instance::make(op_named(op), problem, limits);
    const Instance apart = Instance::make(op_named(op), problem, limits, {.strides = strides});
    int tried = 0;
    for (const Variant& variant : near.op().variants) {
        const std::optional<Config> config = near.defaults_of(variant);
        if (!config || apart.objection(*config) || near.objection(*config)) continue;
        EXPECT_TRUE(outputs_of(*device, near, *config) == outputs_of(*device, apart, *config)) << config->text();
        ++tried;
    }
    EXPECT_GT(tried, 0);
}

std::vector<Case> cases() {
    const auto number = [](std::int64_t n) { return Value{n}; };
    const auto text = [](const char* word) { return Value{std::string{word}}; };
    const Fields rows{{"rows", number(3)}, {"cols", number(320)}},
        long_rows{{"rows", number(2)}, {"cols", number(8256)}};
    std::vector<Case> all;
    for (const Fields& size : {rows, long_rows}) {
        all.push_back({"softmax", size, {{"ldx", far}, {"ldy", far}}});
        all.push_back({"log_softmax", size, {{"ldx", far}, {"ldy", far}}});
        all.push_back({"softmax_backward", size, {{"ldy", far}, {"lddy", far}, {"lddx", far}}});
        all.push_back({"cross_entropy", size, {{"ldx", far}, {"lddx", far}}});
        all.push_back({"layernorm", size, {{"ldx", far}, {"ldy", far}}});
        all.push_back({"rmsnorm", size, {{"ldx", far}, {"ldy", far}}});
        all.push_back({"layernorm_backward", size, {{"ldx", far}, {"lddy", far}, {"lddx", far}}});
        all.push_back({"rmsnorm_backward", size, {{"ldx", far}, {"lddy", far}, {"lddx", far}}});
    }
    const auto heads = [&](std::int64_t count, std::int64_t batch, std::int64_t keys) {
        return Fields{{"batch", number(batch)}, {"q_heads", number(count)}, {"kv_heads", number(count)},
                      {"seq_q", number(3)},     {"seq_k", number(keys)},    {"head_dim", number(64)},
                      {"dtype", text("bf16")}};
    };
    all.push_back(
        {"attention", heads(1, 2, 65), {{"q_batch", far}, {"k_batch", far}, {"v_batch", far}, {"o_batch", far}}});
    all.push_back({"attention", heads(2, 1, 65), {{"q_head", far}, {"k_head", far}, {"v_head", far}, {"o_head", far}}});
    all.push_back({"attention", heads(1, 1, 3), {{"q_row", far}, {"k_row", far}, {"v_row", far}, {"o_row", far}}});
    const Fields matrices{{"batch", number(2)}, {"rows", number(70)}, {"cols", number(72)}};
    all.push_back({"transpose", matrices, {{"batch_x", far}, {"batch_y", far}}});
    all.push_back(
        {"transpose", {{"rows", number(8)}, {"cols", number(8)}, {"dtype", text("u8")}}, {{"ldx", far}, {"ldy", far}}});
    all.push_back({"copy", rows, {{"ldx", far}, {"ldy", far}}});
    all.push_back({"rope",
                   {{"tokens", number(3)}, {"q_heads", number(3)}, {"kv_heads", number(1)}, {"dim", number(64)}},
                   {{"ldx", far}}});
    for (const char* const dtype : {"f32", "bf16"}) {
        const Fields product{{"m", number(3)}, {"n", number(64)}, {"k", number(64)}, {"dtype", text(dtype)}};
        all.push_back({"gemm", product, {{"lda", far}, {"ldc", far}}});
        const Fields thin{{"m", number(64)}, {"n", number(64)}, {"k", number(3)}, {"dtype", text(dtype)}};
        all.push_back({"gemm", thin, {{"ldb", far}}});
    }
    return all;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
    return info.param.op + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Ops, FarRows, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace autotune

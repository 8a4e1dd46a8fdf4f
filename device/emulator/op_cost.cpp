#include "device/emulator/op_cost.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace autotune::emulator {
namespace {

constexpr bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// The opcode of an instruction, taken apart at its dots.
class Name {
public:
    explicit Name(std::string_view opcode) : rest_{opcode}, base_{opcode.substr(0, opcode.find('.'))} {}
    std::string_view base() const noexcept { return base_; }
    /// Whether a modifier is there; `bulk` is not `bulk_group`.
    bool has(std::string_view part) const noexcept {
        for (std::size_t at = rest_.find(part); at != std::string_view::npos; at = rest_.find(part, at + 1)) {
            const std::size_t end = at + part.size();
            if (at > 0 && rest_[at - 1] == '.' && (end == rest_.size() || rest_[end] == '.' || rest_[end] == ':'))
                return true;
        }
        return false;
    }
    std::string_view last() const noexcept { return rest_.substr(rest_.find_last_of('.') + 1); }
    bool is_half() const noexcept { return has("f16") || has("bf16") || has("f16x2") || has("bf16x2"); }
    bool is_wide() const noexcept { return is_any_of(last(), {"s64", "u64", "b64"}); }

private:
    std::string_view rest_, base_;
};

/// What the machine code of one instruction is like. Instructions of PTX that become several are counted as those that
/// a compiler of release 12 or 13 made of them.
struct Price {
    CodeKind kind = CodeKind::integer;
    Unit unit = Unit::alu;
    double slots = 1;
    double lanes = 0;  ///< of the unit; 0: what the machine has of it
    double latency = 0;
    double requests = 0;
    OpOrder order = OpOrder::none;
};

constexpr Price free_of_charge{.unit = Unit::none, .slots = 0};

/// loads and stores, of what is no tensor fragment
Price price_of_access(const Name& name, bool load) {
    if (name.has("param")) return free_of_charge;
    Price price{.unit = Unit::memory, .requests = 1};
    if (name.has("const"))
        price = {.kind = CodeKind::constant_load, .unit = Unit::none, .latency = 28};
    else if (name.has("shared") || name.has("shared::cta") || name.has("shared::cluster"))
        price.kind = load ? CodeKind::shared_load : CodeKind::shared_store;
    else if (name.has("local"))
        price.kind = CodeKind::local;
    else
        price.kind = load ? CodeKind::global_load : CodeKind::global_store;
    return price;
}

Price price_of_float(const Name& name) {
    if (name.has("f64")) return {.kind = CodeKind::fp64, .unit = Unit::fp64, .latency = 8};
    if (name.is_half()) return {.kind = CodeKind::half, .unit = Unit::fma, .lanes = 64};
    return {.kind = CodeKind::fp32, .unit = Unit::fma};
}

/// add, sub, mul, mad and fma, by type
Price price_of_sum(const Name& name) {
    const bool product = is_any_of(name.base(), {"mul", "mad", "fma", "mul24", "mad24"});
    if (is_any_of(name.last(), {"f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "f32x2"})) return price_of_float(name);
    if (!product) return {.slots = name.is_wide() ? 2.0 : 1.0};
    if (name.has("wide")) return {.unit = Unit::fma, .lanes = 32, .latency = 5};
    if (name.is_wide()) return {.unit = Unit::fma, .slots = 4, .lanes = 64, .latency = 15};
    return {.unit = Unit::fma, .slots = name.has("hi") ? 2.0 : 1.0, .lanes = 64};
}

/// Quotients, roots and what the special unit computes.
Price price_of_special(const Name& name) {
    constexpr double special_latency = 18;
    Price price{.kind = CodeKind::special, .unit = Unit::special, .latency = special_latency};
    if (name.has("f64")) return {.kind = CodeKind::fp64, .unit = Unit::fp64, .slots = 12, .latency = 100};
    const bool exact = name.has("rn") || name.has("rz") || name.has("rm") || name.has("rp");
    if (name.base() == "div") {
        if (!name.has("f32")) {  // of whole numbers
            const double slots = name.is_wide() ? 60 : 18;
            return {.slots = slots, .latency = slots * 4};
        }
        price.slots = exact ? 9 : name.has("full") ? 4 : 2;
        price.latency = exact ? 60 : 25;
    } else if (exact) {
        price.slots = 7;
        price.latency = 45;
    } else if (!name.has("ftz") && is_any_of(name.base(), {"ex2", "lg2", "rsqrt", "rcp", "sqrt"})) {
        price.slots = 3;  // tiny numbers are scaled before and after
        price.latency = special_latency + 8;
    }
    return price;
}

Price price_of_conversion(const Name& name) {
    const bool real = name.has("f32") || name.has("f64") || name.is_half() || name.has("e4m3x2") ||
                      name.has("e5m2x2") || name.has("tf32");
    if (!real) {
        if (name.has("s64") && name.has("s32")) return {};
        return free_of_charge;
    }
    const bool whole = is_any_of(name.last(), {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"}) ||
                       name.has("s32") || name.has("u32") || name.has("s64") || name.has("u64");
    if (whole || name.has("f64")) return {.kind = CodeKind::convert, .unit = Unit::special, .latency = 12};
    if (is_any_of(name.last(), {"f16", "bf16"})) return {.kind = CodeKind::half, .unit = Unit::fma, .lanes = 64};
    return {.kind = CodeKind::convert, .lanes = 64};
}

Price price_of_copy(const Name& name) {
    if (name.has("bulk") && (name.has("commit_group") || name.has("wait_group"))) return {};  // groups of their own
    if (name.has("wait_group") || name.has("wait_all")) return {.order = OpOrder::wait};
    if (name.has("commit_group")) return {.order = OpOrder::commit};
    if (name.has("bulk")) return {};
    return {.kind = CodeKind::copy_async, .unit = Unit::memory, .requests = 1, .order = OpOrder::copy};
}

Price price_of_barrier(const Name& name) {
    if (name.has("warp")) return {.latency = 4};
    if (name.has("cluster"))
        return {
            .kind = CodeKind::branch, .unit = Unit::none, .order = name.has("wait") ? OpOrder::cluster : OpOrder::none};
    return {
        .kind = CodeKind::branch, .unit = Unit::none, .order = name.has("arrive") ? OpOrder::arrive : OpOrder::barrier};
}

Price price_of_phase(const Name& name) {
    Price price{.unit = Unit::memory, .latency = 10, .requests = 1};
    if (name.has("try_wait") || name.has("test_wait"))
        price.order = OpOrder::phase_wait;
    else if (name.has("arrive") || name.has("arrive_drop"))
        price.order = OpOrder::phase_arrive;
    return price;
}

Price price_of_matrix(const Name& name) {
    if (name.has("commit_group")) return {.kind = CodeKind::branch, .unit = Unit::none, .order = OpOrder::commit};
    if (name.has("wait_group")) return {.kind = CodeKind::branch, .unit = Unit::none, .order = OpOrder::wait};
    if (name.has("fence")) return {.kind = CodeKind::branch, .unit = Unit::none};
    if (name.has("load") || name.has("store")) return price_of_access(name, name.has("load"));
    constexpr double tensor_latency = 17;  // and the clocks that it takes
    return {.kind = CodeKind::tensor, .unit = Unit::tensor, .latency = tensor_latency};
}

Price price_of(const Instruction& instruction) {
    const Name name{instruction.opcode};
    const std::string_view base = name.base();
    if (base == "ld" || base == "ldu") return price_of_access(name, true);
    if (base == "st") return price_of_access(name, false);
    if (base == "ldmatrix") return {.kind = CodeKind::shared_load, .unit = Unit::memory, .requests = 1};
    if (base == "stmatrix") return {.kind = CodeKind::shared_store, .unit = Unit::memory, .requests = 1};
    if (base == "atom" || base == "red") return {.unit = Unit::memory, .requests = 1};
    if (base == "cp") return price_of_copy(name);
    if (is_any_of(base, {"mma", "wmma", "wgmma"})) return price_of_matrix(name);
    if (base == "bar" || base == "barrier") return price_of_barrier(name);
    if (base == "mbarrier") return price_of_phase(name);
    if (base == "shfl") return {.kind = CodeKind::shuffle, .unit = Unit::memory, .latency = 24, .requests = 1};
    if (is_any_of(base, {"redux", "match"})) return {.unit = Unit::special, .slots = 2, .latency = 20};
    if (is_any_of(base, {"bra", "brx", "call", "ret", "exit", "trap"}))
        return {.kind = CodeKind::branch, .unit = Unit::none, .order = OpOrder::ends_run};
    if (is_any_of(base, {"mov", "cvta", "createpolicy", "nanosleep", "pragma"})) return free_of_charge;
    if (base == "neg" || base == "abs")
        return name.has("s32") || name.has("s64") ? Price{} : free_of_charge;  // else a sign of another's operand
    if (is_any_of(base, {"add", "sub", "mul", "mad", "fma", "mul24", "mad24", "addc", "subc", "madc"}))
        return price_of_sum(name);
    if (is_any_of(base, {"div", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"}))
        return price_of_special(name);
    if (base == "rem") return {.slots = name.is_wide() ? 60.0 : 18.0, .latency = 80};
    if (base == "cvt") return price_of_conversion(name);
    if (is_any_of(base, {"popc", "clz", "brev", "bfind"})) return {.unit = Unit::special, .latency = 12};
    if (is_any_of(base, {"dp4a", "dp2a"})) return {.unit = Unit::fma, .lanes = 64};
    if (name.has("f64")) return {.kind = CodeKind::fp64, .unit = Unit::fp64, .latency = 8};
    return {.slots = name.is_wide() ? 2.0 : 1.0};
}

double lanes_of(Unit unit, const Machine& machine) {
    switch (unit) {
        case Unit::fma:
            return machine.fp32_lanes;
        case Unit::alu:
            return machine.int_lanes;
        case Unit::special:
            return machine.special_lanes;
        case Unit::fp64:
            return machine.fp64_lanes;
        default:
            return 0;
    }
}

/// Clocks of all tensor cores of an SM for one warp's share of a product.
double tensor_clocks(const Name& name, const Op& op, const Machine& machine) {
    double rate = machine.tensor_flops;
    if (name.has("tf32"))
        rate /= 2;
    else if (name.has("s8") || name.has("u8") || name.has("e4m3") || name.has("e5m2"))
        rate *= 2;
    else if (name.has("f64"))
        rate = std::max(machine.fp64_lanes * 4, 1.0);
    // Only the products of warpgroups use all of Hopper's: Luo et al. 2024.
    if (machine.tensor_flops >= 4096 && name.base() != "wgmma") rate *= 0.62;
    return 32.0 * op.flops / rate;
}

OpCost cost_of(const Instruction& instruction, const Op& op, const Machine& machine) {
    const Price price = price_of(instruction);
    const Name name{instruction.opcode};
    OpCost cost{.kind = price.kind, .unit = price.unit, .order = price.order};
    cost.slots = static_cast<float>(price.slots);
    cost.requests = static_cast<float>(price.requests);
    cost.latency =
        static_cast<float>(price.latency > 0 || price.slots == 0 ? price.latency : machine.arithmetic_latency);
    if (price.unit == Unit::tensor) {
        const double clocks = tensor_clocks(name, op, machine);
        cost.clocks = static_cast<float>(clocks);
        cost.asynchronous = name.base() == "wgmma";
        cost.latency += static_cast<float>(4 * clocks);
    } else if (const double lanes = price.lanes > 0 ? std::min(price.lanes, lanes_of(price.unit, machine))
                                                    : lanes_of(price.unit, machine);
               lanes > 0) {
        // Of what takes several instructions one is the special unit's, the rest are arithmetic.
        const double slots = price.unit == Unit::special ? 1 : price.slots;
        cost.clocks = static_cast<float>(slots * 32 / lanes);
    }
    cost.past_l1 = name.has("cg") || name.has("volatile") || name.base() == "atom" || name.base() == "red";
    return cost;
}

bool writes_first_operand(std::string_view base, const Name& name) {
    if (is_any_of(base, {"st", "red", "barrier", "bra", "brx", "call", "ret", "exit", "trap", "cp", "membar", "fence",
                         "prefetch", "prefetchu", "nanosleep", "stmatrix", "wgmma", "griddepcontrol", "setmaxnreg"}))
        return false;
    if (base == "bar") return name.has("red");
    if (base == "wmma") return !name.has("store");
    if (base == "mbarrier") return !name.has("init") && !name.has("inval");
    return true;
}

/// Numbers of the registers in an operand.
void add_registers(const Operand& operand, std::uint32_t base, std::vector<std::uint32_t>& list) {
    if (operand.kind == Operand::Kind::reg) list.push_back(base + operand.number);
    for (const Operand& part : operand.parts) add_registers(part, base, list);
}

void list_registers(const Instruction& instruction, std::uint32_t base, OpCost& cost,
                    std::vector<std::uint32_t>& list) {
    const Name name{instruction.opcode};
    cost.first = static_cast<std::uint32_t>(list.size());
    std::size_t reads = 0;
    if (writes_first_operand(name.base(), name) && !instruction.operands.empty() &&
        instruction.operands[0].kind != Operand::Kind::address) {
        add_registers(instruction.operands[0], base, list);
        reads = 1;
    }
    cost.written = static_cast<std::uint16_t>(list.size() - cost.first);
    for (; reads < instruction.operands.size(); ++reads)
        if (!cost.asynchronous) add_registers(instruction.operands[reads], base, list);
    if (instruction.guard >= 0) list.push_back(base + static_cast<std::uint32_t>(instruction.guard));
    cost.read = static_cast<std::uint16_t>(list.size() - cost.first - cost.written);
}

/// How often the compiler unrolled beyond what the PTX shows: by the kind of which there is most.
double unrolling(const std::array<double, code_kinds>& written, const CodeCounts& made) {
    constexpr std::array kinds{CodeKind::tensor, CodeKind::fp32,         CodeKind::half,
                               CodeKind::fp64,   CodeKind::global_store, CodeKind::global_load};
    double most = 0, factor = 1;
    for (const CodeKind kind : kinds) {
        const auto k = static_cast<std::size_t>(kind);
        if (written[k] <= most || made[k] == 0) continue;
        most = written[k];
        factor = made[k] / written[k];
    }
    return std::clamp(factor, 0.25, 64.0);
}

/// By kind, what one instruction of the PTX became, where counts of machine code tell.
std::array<double, code_kinds> corrections(const std::array<double, code_kinds>& written, const CodeCounts& made,
                                           double unrolled) {
    std::array<double, code_kinds> factors{};
    factors.fill(1);
    const auto correct = [&](CodeKind kind, double least, double most) {
        const auto k = static_cast<std::size_t>(kind);
        if (written[k] > 0) factors[k] = std::clamp(made[k] / (written[k] * unrolled), least, most);
    };
    correct(CodeKind::shared_load, 0.25, 1);
    correct(CodeKind::shared_store, 0.25, 1);
    correct(CodeKind::global_load, 0.25, 1);
    correct(CodeKind::constant_load, 0, 1);
    correct(CodeKind::integer, 0.5, 2);
    return factors;
}

void apply(OpCosts& costs, const DecodedFunction& kernel, const CodeCounts& made) {
    std::array<double, code_kinds> written{};
    for (std::uint32_t at = kernel.first; at < kernel.last; ++at)
        written[static_cast<std::size_t>(costs.ops[at].kind)] += static_cast<double>(costs.ops[at].slots);
    double total = 0;
    for (const std::uint32_t count : made) total += count;
    if (total == 0) return;
    const double unrolled = unrolling(written, made);
    const auto factors = corrections(written, made, unrolled);
    for (OpCost& op : costs.ops) {
        const auto factor = static_cast<float>(factors[static_cast<std::size_t>(op.kind)]);
        op.slots *= factor;
        op.clocks *= factor;
        op.requests *= factor;
        if (op.kind == CodeKind::constant_load && factor < 0.5F) op.latency = 0;  // an operand of its reader
    }
    constexpr auto local = static_cast<std::size_t>(CodeKind::local);
    costs.local_requests = std::max(0.0, made[local] - written[local] * unrolled) / total;
}

}  // namespace

OpCosts op_costs(const Program& program, const DecodedFunction& kernel, const CodeCounts& machine_code,
                 const Machine& machine) {
    OpCosts costs;
    costs.ops.resize(program.ops.size());
    std::vector<const Instruction*> instructions(program.names.size());
    std::vector<std::uint32_t> bases(program.names.size());
    std::size_t number = 0;
    for (const Function& function : program.module.functions) {  // numbered as the decoder does
        for (const Instruction& instruction : function.instructions) {
            instructions[number] = &instruction;
            bases[number++] = costs.register_count;
        }
        ++number;  // the return behind its end
        costs.register_count += static_cast<std::uint32_t>(function.registers.size());
    }
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        const Op& op = program.ops[i];
        const Instruction* const instruction = instructions[op.instruction];
        const bool follows = i > 0 && instruction && program.ops[i - 1].instruction == op.instruction;
        if (!instruction) {
            costs.ops[i] = {.kind = CodeKind::branch, .order = OpOrder::ends_run};
            costs.ops[i].slots = 1;
            continue;
        }
        if (!follows) costs.ops[i] = cost_of(*instruction, op, machine);
        list_registers(*instruction, bases[op.instruction], costs.ops[i], costs.registers);
    }
    apply(costs, kernel, machine_code);
    return costs;
}

}  // namespace autotune::emulator

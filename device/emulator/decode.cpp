#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "autotune/error.h"
#include "device/emulator/control.h"
#include "device/emulator/decoder.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

constexpr std::uint32_t largest_register_file = 1u << 25;  ///< bytes a warp
constexpr std::uint32_t largest_local = 1u << 22;          ///< bytes a lane
constexpr std::uint32_t shared_gap = 128;                  ///< between shared variables: banks stay as they are

int row_bytes(PtxType type) {
    if (type == PtxType::pred) return 4;
    return std::max(2, bytes_of(type)) * lanes;
}

[[noreturn]] void contradiction(std::string message) { throw Error{Error::Kind::usage, std::move(message)}; }

std::uint32_t aligned(std::uint64_t at, std::uint64_t align) {
    return static_cast<std::uint32_t>((at + align - 1) / align * align);
}

}  // namespace

Decoder::Decoder(Program& program, const SymbolAddress& address_of)
    : program_{program}, address_of_{address_of}, rows_{row_build()} {}

void Decoder::run() {
    program_.register_bytes = 64;  // the predicate at 0 is always true
    for (const Variable& one : program_.module.variables) {
        if (one.space == StateSpace::shared) continue;
        const std::uint64_t at = address_of_(one.name);
        module_places_[one.name] = {Space::global, at, at};
    }
    lay_out_functions();
    for (const Function& one : program_.module.functions)
        for (const Instruction& instruction : one.instructions)
            program_.has_wgmma |= instruction.opcode.starts_with("wgmma");
    for (number_ = 0; number_ < program_.module.functions.size(); ++number_) {
        function_ = &program_.module.functions[number_];
        decode_function();
    }
    if (program_.constants.empty()) constant(0, 8);
}

std::uint32_t Decoder::local(std::uint32_t bytes, std::uint32_t align) {
    const std::uint32_t at = aligned(program_.local_bytes, std::min(std::max(align, 1u), 256u));
    if (bytes > largest_local || at > largest_local)
        contradiction("the PTX takes too much local memory to be emulated");
    program_.local_bytes = at + bytes;
    return at;
}

void Decoder::shared(const Variable& variable, std::vector<std::pair<std::uint32_t, std::uint32_t>>& ranges) {
    if (variable.bytes > 1u << 20)
        contradiction(fmt::format("shared variable '{}' is larger than any device's memory", variable.name));
    const std::uint32_t at = aligned(shared_bytes_, std::max<std::uint32_t>(variable.align, 1));
    ranges.emplace_back(at, static_cast<std::uint32_t>(variable.bytes));
    shared_bytes_ = aligned(at + variable.bytes, 1) + shared_gap;
}

void Decoder::lay_out_functions() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> common;
    for (const Variable& one : program_.module.variables) {
        if (one.space != StateSpace::shared || one.external) continue;
        shared(one, common);
        module_places_[one.name] = {Space::shared, common.back().first, shared_window + common.back().first};
    }
    const std::uint32_t common_bytes = shared_bytes_;
    std::uint32_t most = common_bytes;
    for (const Function& function : program_.module.functions) {
        DecodedFunction& made = program_.functions.emplace_back();
        made.name = function.name;
        made.entry = function.entry;
        made.max_threads = function.max_threads;
        made.required_threads = function.required_threads;
        std::copy_n(function.cluster, 3, made.cluster.begin());
        if (function.defined || !function_numbers_.contains(function.name))
            function_numbers_[function.name] = static_cast<std::uint32_t>(program_.functions.size() - 1);
        for (const Variable& parameter : function.parameters) {
            const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(parameter.bytes, 1u << 16));
            if (function.entry) {
                made.parameter_bytes = aligned(made.parameter_bytes, std::max(parameter.align, 1u));
                made.parameters.push_back({made.parameter_bytes, bytes});
                made.parameter_bytes += bytes;
                if (made.parameter_bytes > 1u << 16) contradiction("a kernel has too many parameters");
            } else {
                made.parameters.push_back({local(bytes, std::max(parameter.align, 8u)), bytes});
            }
        }
        for (const Variable& result : function.results) {
            const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(result.bytes, 1u << 16));
            made.results.push_back({local(bytes, std::max(result.align, 8u)), bytes});
        }
        // Functions that are called have their shared variables beside those of all kernels.
        if (function.entry) shared_bytes_ = common_bytes;
        made.shared_ranges = common;
        std::vector<Place>& places = variable_places_.emplace_back();
        for (const Variable& one : function.variables) {
            if (one.space == StateSpace::shared && one.external) {
                places.push_back({Space::shared, ~0ull, 0});
            } else if (one.space == StateSpace::shared) {
                shared(one, made.shared_ranges);
                const std::uint32_t at = made.shared_ranges.back().first;
                places.push_back({Space::shared, at, shared_window + at});
            } else {
                const std::uint32_t at = local(static_cast<std::uint32_t>(std::min<std::uint64_t>(one.bytes, 1u << 30)),
                                               std::max(one.align, 8u));
                places.push_back({Space::local, at, local_window + at});
            }
        }
        made.static_shared_bytes = shared_bytes_;
        most = std::max(most, shared_bytes_);
    }
    // Dynamic shared memory begins behind all of them, at one place for the whole module.
    const std::uint32_t dynamic = aligned(most, 1024);
    for (DecodedFunction& one : program_.functions) one.static_shared_bytes = dynamic;
    for (const Variable& one : program_.module.variables)
        if (one.space == StateSpace::shared && one.external)
            module_places_[one.name] = {Space::shared, dynamic, shared_window + dynamic};
    for (std::vector<Place>& places : variable_places_)
        for (Place& one : places)
            if (one.space == Space::shared && one.offset == ~0ull)
                one = {Space::shared, dynamic, shared_window + dynamic};
}

void Decoder::lay_out_registers() {
    register_rows_.clear();
    std::uint64_t at = program_.register_bytes;
    for (const PtxType type : function_->registers) {  // rows first, at steps that keep them aligned
        register_rows_.push_back(0);
        if (type == PtxType::pred) continue;
        register_rows_.back() = static_cast<std::int32_t>(at);
        at += static_cast<std::uint64_t>(row_bytes(type));
        if (at > largest_register_file) contradiction("the PTX has too many registers to be emulated");
    }
    for (std::size_t i = 0; i < function_->registers.size(); ++i) {
        if (function_->registers[i] != PtxType::pred) continue;
        register_rows_[i] = static_cast<std::int32_t>(at);
        at += 4;
    }
    program_.register_bytes = aligned(at, 64);
    if (program_.register_bytes > largest_register_file) contradiction("the PTX has too many registers to be emulated");
}

void Decoder::decode_function() {
    DecodedFunction& made = program_.functions[number_];
    lay_out_registers();
    made.first = static_cast<std::uint32_t>(program_.ops.size());
    std::vector<std::uint32_t> starts;
    for (const Instruction& instruction : function_->instructions) {
        starts.push_back(static_cast<std::uint32_t>(program_.ops.size()));
        scope_ = instruction.scope;
        Op base;
        base.instruction = static_cast<std::uint32_t>(program_.names.size());
        base.location = instruction.location;
        program_.names.push_back(instruction.opcode);
        program_.text_lines.push_back(instruction.text_line);
        if (instruction.guard >= 0) {
            const auto guard = static_cast<std::uint32_t>(instruction.guard);
            if (function_->registers[guard] != PtxType::pred)
                contradiction(fmt::format("PTX line {}: the guard is no predicate", instruction.text_line));
            base.guard = register_rows_[guard];
            base.guard_flip = instruction.guard_negated ? all_lanes : 0;
        }
        const auto first = static_cast<std::uint32_t>(program_.operand_list.size());
        if (program_.has_wgmma)
            for (const Operand& operand : instruction.operands) list_operands(operand);
        program_.operand_rows.emplace_back(first, static_cast<std::uint32_t>(program_.operand_list.size()) - first);
        const std::size_t before = program_.ops.size(), fixes = fixes_.size();
        try {
            decode_instruction(*this, instruction, base);
        } catch (const Refused&) {
            program_.ops.resize(before);
            fixes_.resize(fixes);
            base.run = not_emulated;
            program_.ops.push_back(base);
        }
    }
    starts.push_back(static_cast<std::uint32_t>(program_.ops.size()));
    Op end;
    end.run = leave;
    end.control = true;
    end.imm = number_;
    end.instruction = static_cast<std::uint32_t>(program_.names.size());
    program_.names.push_back("ret");
    program_.operand_rows.emplace_back(0, 0);
    program_.text_lines.push_back(0);
    program_.ops.push_back(end);
    made.last = static_cast<std::uint32_t>(program_.ops.size());
    labels_.clear();
    for (const Label& one : function_->labels) labels_[{one.name, one.scope}] = starts[one.instruction];
    finish_branches();
    special_rows_.clear();
}

/// Its registers other than predicates.
void Decoder::list_operands(const Operand& operand) {
    if (register_bytes(operand) > 0) program_.operand_list.push_back(register_rows_[operand.number]);
    for (const Operand& part : operand.parts) list_operands(part);
}

std::uint32_t Decoder::label(std::string_view name, std::uint32_t scope) const {
    while (true) {
        if (const auto found = labels_.find({name, scope}); found != labels_.end()) return found->second;
        if (scope == 0)
            contradiction(fmt::format("the PTX branches to '{}', which is nowhere in '{}'", name.substr(0, 60),
                                      function_->name.substr(0, 60)));
        scope = function_->scopes[scope];
    }
}

void Decoder::finish_branches() {
    for (const Fix& fix : fixes_) {
        const std::uint32_t to = label(fix.label, fix.scope);
        if (fix.extra < 0)
            program_.ops[fix.op].imm = to;
        else
            program_.extra[static_cast<std::size_t>(fix.extra)] = static_cast<std::int32_t>(to);
    }
    fixes_.clear();
}

void Decoder::branch_to(std::string_view name, std::uint32_t scope) {
    fixes_.push_back({program_.ops.size(), name, scope, -1});
}

void Decoder::indexed_branch_to(Op& op, std::string_view targets, std::uint32_t scope) {
    for (const BranchTargets& one : function_->targets) {
        if (one.name != targets || one.labels.size() > 60000) continue;
        op.small = static_cast<std::uint16_t>(one.labels.size());
        op.extra = static_cast<std::uint32_t>(program_.extra.size());
        for (const std::string_view name : one.labels) {
            fixes_.push_back({0, name, scope, static_cast<std::int64_t>(program_.extra.size())});
            program_.extra.push_back(0);
        }
        return;
    }
    throw Refused{};
}

int Decoder::register_bytes(const Operand& operand) const {
    if (operand.kind != Operand::Kind::reg) return 0;
    const PtxType type = function_->registers[operand.number];
    return type == PtxType::pred ? 0 : std::max(2, bytes_of(type));
}

std::int32_t Decoder::constant(std::uint64_t bits, int bytes) {
    bytes = std::max(bytes, 2);
    if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
    const auto [found, fresh] = constants_.try_emplace({bits, bytes}, 0);
    if (fresh) {
        const std::size_t at = program_.constants.size();
        program_.constants.resize(at + static_cast<std::size_t>(bytes) * lanes);
        for (int i = 0; i < lanes; ++i)
            std::memcpy(program_.constants.data() + at + static_cast<std::size_t>(bytes * i), &bits,
                        static_cast<std::size_t>(bytes));
        found->second = static_cast<std::int32_t>(INT32_MIN + static_cast<std::int64_t>(at));
    }
    return found->second;
}

std::int32_t Decoder::special(std::string_view name) {
    const int which = special_named(name);
    if (which < 0) throw Refused{};
    const auto [found, fresh] = special_rows_.try_emplace(which, 0);
    if (fresh) {
        for (const auto& [known, row] : program_.special_rows)
            if (known == static_cast<Special>(which)) return found->second = static_cast<std::int32_t>(row);
        found->second = static_cast<std::int32_t>(program_.register_bytes);
        program_.special_rows.emplace_back(static_cast<Special>(which), program_.register_bytes);
        program_.register_bytes += 4 * lanes;
    }
    return found->second;
}

std::int32_t Decoder::source(const Operand& operand, PtxType type) {
    const int bytes = std::max(2, bytes_of(type));
    switch (operand.kind) {
        case Operand::Kind::reg:
            if (register_bytes(operand) != bytes) throw Refused{};
            return register_rows_[operand.number];
        case Operand::Kind::integer:
            if (type == PtxType::f32)
                return constant(operand.value == 0 ? 0
                                                   : static_cast<std::uint64_t>(__builtin_bit_cast(
                                                         std::uint32_t, static_cast<float>(operand.value))),
                                4);
            if (type == PtxType::f64)
                return constant(
                    operand.value == 0 ? 0 : __builtin_bit_cast(std::uint64_t, static_cast<double>(operand.value)), 8);
            return constant(static_cast<std::uint64_t>(operand.value), bytes);
        case Operand::Kind::real: {
            const auto bits = static_cast<std::uint64_t>(operand.value);
            if (operand.single && bytes == 8)
                return constant(__builtin_bit_cast(std::uint64_t, static_cast<double>(__builtin_bit_cast(
                                                                      float, static_cast<std::uint32_t>(bits)))),
                                8);
            if (!operand.single && bytes == 4)
                return constant(__builtin_bit_cast(std::uint32_t, static_cast<float>(__builtin_bit_cast(double, bits))),
                                4);
            return constant(bits, bytes);
        }
        case Operand::Kind::special:
            if (operand.name == "%WARP_SZ") return constant(lanes, bytes);
            if (bytes != 4) throw Refused{};
            return special(operand.name);
        case Operand::Kind::symbol:
            if (operand.name == "WARP_SZ") return constant(lanes, bytes);
            if (bytes >= 4) {
                const Place where = place(operand.name);
                return constant(where.offset + static_cast<std::uint64_t>(operand.value), bytes);
            }
            throw Refused{};
        default:
            throw Refused{};
    }
}

std::int32_t Decoder::target(const Operand& operand, int bytes) const {
    if (operand.kind == Operand::Kind::sink) return 0;
    if (register_bytes(operand) != std::max(2, bytes)) throw Refused{};
    return register_rows_[operand.number];
}

std::int32_t Decoder::predicate(const Operand& operand) const {
    if (operand.kind == Operand::Kind::sink) return 0;
    if (operand.kind != Operand::Kind::reg || function_->registers[operand.number] != PtxType::pred) throw Refused{};
    return register_rows_[operand.number];
}

std::int32_t Decoder::predicate_source(const Operand& operand) {
    if (operand.kind == Operand::Kind::integer) return constant(operand.value ? all_lanes : 0, 4);
    const std::int32_t row = predicate(operand);
    if (row == 0) throw Refused{};
    return row;
}

std::int32_t Decoder::spare(int) {
    if (spare_ == 0) {
        spare_ = static_cast<std::int32_t>(program_.register_bytes);
        program_.register_bytes += 8 * lanes;
    }
    return spare_;
}

std::int64_t Decoder::immediate(const Operand& operand) const {
    if (operand.kind != Operand::Kind::integer) throw Refused{};
    return operand.value;
}

Decoder::Place Decoder::place(std::string_view name) const {
    for (std::uint32_t scope = scope_;; scope = function_->scopes[scope]) {
        for (std::size_t i = function_->variables.size(); i-- > 0;)
            if (function_->variables[i].name == name && function_->variable_scopes[i] == scope)
                return variable_places_[number_][i];
        if (scope == 0) break;
    }
    const DecodedFunction& made = program_.functions[number_];
    for (std::size_t i = 0; i < function_->parameters.size(); ++i)
        if (function_->parameters[i].name == name) {
            const std::uint32_t at = made.parameters[i].offset;
            return function_->entry ? Place{Space::param, at, param_window + at}
                                    : Place{Space::local, at, local_window + at};
        }
    for (std::size_t i = 0; i < function_->results.size(); ++i)
        if (function_->results[i].name == name)
            return {Space::local, made.results[i].offset, local_window + made.results[i].offset};
    if (const auto found = module_places_.find(name); found != module_places_.end()) return found->second;
    if (const auto found = function_numbers_.find(name); found != function_numbers_.end()) {
        const std::uint64_t at = code_window + 16 * std::uint64_t{found->second};
        return {Space::generic, at, at};
    }
    contradiction(fmt::format("the PTX names '{}', which is declared nowhere", name.substr(0, 60)));
}

std::int32_t Decoder::address_row(const Operand& operand, std::int64_t& offset, bool& wide, Space& space) {
    if (operand.kind != Operand::Kind::address) throw Refused{};
    offset = operand.value;
    wide = true;
    if (operand.parts.empty()) return constant(0, 8);
    const Operand& base = operand.parts[0];
    if (base.kind == Operand::Kind::reg) {
        const int bytes = register_bytes(base);
        if (bytes != 4 && bytes != 8) throw Refused{};
        wide = bytes == 8;
        return register_rows_[base.number];
    }
    if (base.kind != Operand::Kind::symbol) throw Refused{};
    const Place where = place(base.name);
    if (space == Space::generic) return constant(where.generic, 8);
    if (space == Space::param) space = where.space;  // of a function that is called: local memory
    return constant(where.offset, 8);
}

void Decoder::address(Op& op, const Operand& operand, Space asked) {
    op.space = asked;
    op.a = address_row(operand, op.imm, op.wide_address, op.space);
}

std::uint32_t Decoder::extra(std::span<const std::int32_t> rows) {
    const auto at = static_cast<std::uint32_t>(program_.extra.size());
    program_.extra.insert(program_.extra.end(), rows.begin(), rows.end());
    return at;
}

Handler Decoder::select(const Selector& selector) const {
    const Handler found = rows_.select(selector);
    if (!found) throw Refused{};
    return found;
}

CallSite::Move Decoder::move_of(const Operand& operand, bool in) {
    if (operand.kind == Operand::Kind::symbol) {
        const Place where = place(operand.name);
        if (where.space != Space::local) throw Refused{};
        for (std::size_t i = 0; i < function_->variables.size(); ++i)
            if (function_->variables[i].name == operand.name && variable_places_[number_][i].offset == where.offset)
                return {0, static_cast<std::uint32_t>(where.offset),
                        static_cast<std::int32_t>(function_->variables[i].bytes)};
        const DecodedFunction& made = program_.functions[number_];
        for (const std::vector<Formal>* const list : {&made.parameters, &made.results})
            for (const Formal& formal : *list)
                if (formal.offset == where.offset) return {0, formal.offset, static_cast<std::int32_t>(formal.bytes)};
        throw Refused{};
    }
    const int bytes = operand.kind == Operand::Kind::reg ? register_bytes(operand) : in ? 8 : 0;
    if (bytes == 0) throw Refused{};
    const std::int32_t row =
        operand.kind == Operand::Kind::reg ? register_rows_[operand.number] : source(operand, PtxType::b64);
    return {row, 0, -bytes};
}

void Decoder::decode_call(Op op, const Instruction& instruction) {
    std::span<const Operand> operands{instruction.operands};
    CallSite site;
    if (!operands.empty() && operands[0].kind == Operand::Kind::list) {
        for (const Operand& result : operands[0].parts) site.results.push_back(move_of(result, false));
        operands = operands.subspan(1);
    }
    if (operands.empty()) throw Refused{};
    const Operand& callee = operands[0];
    if (operands.size() > 1 && operands[1].kind == Operand::Kind::list)
        for (const Operand& argument : operands[1].parts) site.arguments.push_back(move_of(argument, true));
    if (callee.kind == Operand::Kind::reg) {
        op.a = source(callee, PtxType::b64);
    } else if (callee.kind == Operand::Kind::symbol) {
        const auto found = function_numbers_.find(callee.name);
        if (callee.name == "vprintf")
            site.callee = call_vprintf;
        else if (callee.name == "__assertfail")
            site.callee = call_assertfail;
        else if (found == function_numbers_.end() || !program_.module.functions[found->second].defined)
            site.callee = call_unknown;
        else
            site.callee = static_cast<std::int32_t>(found->second);
        if (site.callee == call_unknown) program_.names[op.instruction] = callee.name;
    } else {
        throw Refused{};
    }
    op.run = call;
    op.control = true;
    op.imm = static_cast<std::int64_t>(program_.calls.size());
    op.kind = OpClass::branch;
    program_.calls.push_back(std::move(site));
    emit(op);
    op.run = collect;
    op.control = false;
    op.kind = OpClass::move;
    emit(op);
}

Program decode(PtxModule module, const SymbolAddress& address_of) {
    Program program;
    program.module = std::move(module);
    Decoder{program, address_of}.run();
    return program;
}

}  // namespace autotune::emulator

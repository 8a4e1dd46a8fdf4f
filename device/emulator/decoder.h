#ifndef AUTOTUNE_DEVICE_EMULATOR_DECODER_H
#define AUTOTUNE_DEVICE_EMULATOR_DECODER_H

#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/emulator/program.h"
#include "device/emulator/rows.h"

namespace autotune::emulator {

/// An instruction that is not emulated: its op says so when it runs.
struct Refused {};

/// What decoding a function needs to know beyond its instructions: rows of registers and constants, places of names.
class Decoder {
public:
    Decoder(Program& program, const SymbolAddress& address_of);
    void run();

    // ---- For the decoders of instructions. Sizes are checked here: a row is never read beyond its end.

    /// Bytes of the register, or 0 for what is none.
    int register_bytes(const Operand& operand) const;
    PtxType register_type(const Operand& operand) const { return function_->registers[operand.number]; }
    /// A row of `bytes` a lane to read: a register of that size, or a constant.
    std::int32_t source(const Operand& operand, PtxType type);
    /// A register of that size to write; 0 for a sink.
    std::int32_t target(const Operand& operand, int bytes) const;
    std::int32_t predicate(const Operand& operand) const;
    std::int32_t predicate_source(const Operand& operand);
    /// A row with one value in all lanes.
    std::int32_t constant(std::uint64_t bits, int bytes);
    std::int32_t special(std::string_view name);
    /// A row that nobody reads.
    std::int32_t spare(int bytes);
    /// A whole number that has to stand in the instruction.
    std::int64_t immediate(const Operand& operand) const;

    struct Place {
        Space space = Space::global;
        std::uint64_t offset = 0;  ///< in its space
        std::uint64_t generic = 0;
    };
    Place place(std::string_view name) const;
    /// Fills address row, offset, width and the space where the name decides it; `asked` is generic for none.
    void address(Op& op, const Operand& operand, Space asked);
    /// The same for an address that does not go into op.a: returns the row; the offset goes to `offset`.
    std::int32_t address_row(const Operand& operand, std::int64_t& offset, bool& wide, Space& space);

    std::uint32_t extra(std::span<const std::int32_t> rows);
    Handler select(const Selector& selector) const;
    void emit(const Op& op) { program_.ops.push_back(op); }
    void branch_to(std::string_view label, std::uint32_t scope);
    void indexed_branch_to(Op& op, std::string_view targets, std::uint32_t scope);
    void decode_call(Op op, const Instruction& instruction);
    std::uint32_t function_number() const { return number_; }
    bool in_entry() const { return function_->entry; }
    void partial_barrier() { program_.partial_barriers = true; }

private:
    void lay_out_functions();
    void lay_out_registers();
    void decode_function();
    void list_operands(const Operand& operand);
    void finish_branches();
    std::uint32_t local(std::uint32_t bytes, std::uint32_t align);
    void shared(const Variable& variable, std::vector<std::pair<std::uint32_t, std::uint32_t>>& ranges);
    CallSite::Move move_of(const Operand& operand, bool in);
    std::uint32_t label(std::string_view name, std::uint32_t scope) const;

    Program& program_;
    const SymbolAddress& address_of_;
    const RowBuild& rows_;
    const Function* function_ = nullptr;
    std::uint32_t number_ = 0;
    std::uint32_t scope_ = 0;
    std::map<std::pair<std::uint64_t, int>, std::int32_t> constants_;
    std::map<std::string_view, Place> module_places_;
    std::map<std::string_view, std::uint32_t> function_numbers_;
    std::vector<std::vector<Place>> variable_places_;  ///< by function, then variable
    std::vector<std::int32_t> register_rows_;
    std::map<int, std::int32_t> special_rows_;
    std::int32_t spare_ = 0;
    std::map<std::pair<std::string_view, std::uint32_t>, std::uint32_t> labels_;
    struct Fix {
        std::size_t op;
        std::string_view label;
        std::uint32_t scope;
        std::int64_t extra;  ///< -1: the op's imm, else an index of Program::extra
    };
    std::vector<Fix> fixes_;
    std::uint32_t shared_bytes_ = 0;
};

/// Decodes one instruction into ops; throws Refused. `base` has the guard and the place already.
void decode_instruction(Decoder& decoder, const Instruction& instruction, const Op& base);

}  // namespace autotune::emulator
#endif

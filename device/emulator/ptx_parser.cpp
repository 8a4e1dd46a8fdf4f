#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "autotune/error.h"
#include "device/emulator/ptx_lexer.h"
#include "device/emulator/ptx_module.h"

namespace autotune::emulator {
namespace {

constexpr std::size_t largest_text = std::size_t{1} << 28;
constexpr std::uint64_t largest_variable = std::uint64_t{1} << 32;
constexpr std::uint32_t most_registers = 1u << 18;
constexpr int deepest_nesting = 64;

/// Names of registers by scope: `%r<9>` declares %r0 to %r8.
class RegisterNames {
public:
    void enter() { marks_.push_back(order_.size()); }
    void leave() {
        for (; order_.size() > marks_.back(); order_.pop_back()) groups_[order_.back()].pop_back();
        marks_.pop_back();
    }
    void add(std::string_view name, std::uint32_t first, std::uint32_t count) {
        groups_[name].push_back({first, count});
        order_.push_back(name);
    }
    /// The number of a register, or -1.
    std::int64_t find(std::string_view name) const {
        if (const auto found = groups_.find(name); found != groups_.end() && !found->second.empty())
            if (found->second.back().count == 0) return found->second.back().first;
        std::size_t digits = name.size();
        while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
        if (name.size() > 10) digits = std::max(digits, name.size() - 10);
        for (std::size_t split = std::max<std::size_t>(digits, 1); split < name.size(); ++split) {
            const auto found = groups_.find(name.substr(0, split));
            if (found == groups_.end() || found->second.empty()) continue;
            std::uint32_t number = 0;
            const auto [end, error] = std::from_chars(name.data() + split, name.data() + name.size(), number);
            if (error == std::errc{} && number < found->second.back().count) return found->second.back().first + number;
        }
        return -1;
    }

private:
    struct Group {
        std::uint32_t first, count;  ///< count 0: a single name
    };
    std::unordered_map<std::string_view, std::vector<Group>> groups_;
    std::vector<std::string_view> order_;
    std::vector<std::size_t> marks_;
};

StateSpace space_named(std::string_view directive) {
    if (directive == ".global") return StateSpace::global;
    if (directive == ".const") return StateSpace::constant;
    if (directive == ".shared") return StateSpace::shared;
    if (directive == ".local") return StateSpace::local;
    if (directive == ".param") return StateSpace::param;
    if (directive == ".reg") return StateSpace::reg;
    return StateSpace::none;
}

class Parser {
public:
    explicit Parser(PtxModule& module) : module_{module}, lexer_{*module.text} {
        module_.locations.push_back({});
        module_.files.push_back({});
    }

    void run() {
        while (lexer_.peek().kind != Token::Kind::end) top_level();
        if (module_.version == 0) lexer_.fail("the text is no PTX: it has no .version");
    }

private:
    // ---- Top level.

    void top_level() {
        const Token token = lexer_.take();
        if (token.kind != Token::Kind::directive) {
            if (token.is(";")) return;
            lexer_.fail("a directive is expected");
        }
        if (token.is(".version")) {
            const Token number = lexer_.take();
            if (number.kind != Token::Kind::real) lexer_.fail(".version takes a number such as 8.0");
            module_.version = static_cast<int>(__builtin_bit_cast(double, number.value) * 10 + 0.5);
        } else if (token.is(".target")) {
            target();
        } else if (token.is(".address_size")) {
            if (lexer_.take().value != 64) lexer_.fail("only addresses of 64 bits are emulated");
        } else if (token.is(".file")) {
            file();
        } else if (token.is(".loc")) {
            location();
        } else if (token.is(".section")) {
            skip_section();
        } else if (token.is(".pragma") || token.is(".alias")) {
            skip_statement();
        } else if (token.is(".func") || token.is(".entry")) {
            function(token.is(".entry"));
        } else if (token.is(".extern") || token.is(".visible") || token.is(".weak") || token.is(".common")) {
            external_ = token.is(".extern");
        } else if (const StateSpace space = space_named(token.text); space != StateSpace::none) {
            for (Variable& one : variables(space)) module_.variables.push_back(std::move(one));
            external_ = false;
        } else {
            lexer_.fail(fmt::format("the directive '{}' is not emulated", token.text));
        }
    }

    void target() {
        do {
            const Token token = lexer_.take();
            if (token.text.starts_with("sm_")) {
                const std::string_view digits = token.text.substr(3);
                std::from_chars(digits.data(), digits.data() + digits.size(), module_.target);
            }
        } while (lexer_.accept(","));
    }

    void file() {
        const Token number = lexer_.take(), name = lexer_.take();
        if (number.kind != Token::Kind::integer || name.kind != Token::Kind::text || number.value < 0 ||
            number.value > 65535)
            lexer_.fail(".file takes a number and a name");
        const auto index = static_cast<std::size_t>(number.value);
        if (module_.files.size() <= index) module_.files.resize(index + 1);
        module_.files[index] = name.text;
        while (lexer_.accept(",")) lexer_.take();
    }

    /// file line column [, function_name name[+offset], inlined_at file line column]
    void location() {
        SourceLine line;
        line.file = line.outer_file = small_number();
        line.line = line.outer_line = small_number();
        small_number();
        if (lexer_.accept(",")) {
            lexer_.expect("function_name");
            lexer_.take();
            if (lexer_.accept("+")) lexer_.take();
            lexer_.expect(",");
            lexer_.expect("inlined_at");
            line.outer_file = small_number();
            line.outer_line = small_number();
            small_number();
            // An inlined call's own place has been seen before, with the place it was inlined at.
            const auto outer = outermost_.find({line.outer_file, line.outer_line});
            if (outer != outermost_.end()) {
                line.outer_file = outer->second.first;
                line.outer_line = outer->second.second;
            }
            outermost_[{line.file, line.line}] = {line.outer_file, line.outer_line};
        } else {
            outermost_.erase({line.file, line.line});
        }
        module_.locations.push_back(line);
    }

    std::uint32_t small_number() {
        const Token token = lexer_.take();
        if (token.kind != Token::Kind::integer || token.value < 0 || token.value > 0x7fffffff)
            lexer_.fail("a small number is expected");
        return static_cast<std::uint32_t>(token.value);
    }

    void skip_section() {
        lexer_.take();
        while (!lexer_.peek().is("{")) {
            if (lexer_.peek().kind == Token::Kind::end) lexer_.fail("a section has no body");
            lexer_.take();
        }
        lexer_.take();
        while (!lexer_.accept("}")) {
            if (lexer_.peek().kind == Token::Kind::end) lexer_.fail("a section does not end");
            lexer_.take();
        }
    }

    void skip_statement() {
        while (!lexer_.accept(";")) {
            if (lexer_.peek().kind == Token::Kind::end) lexer_.fail("a statement does not end");
            lexer_.take();
        }
    }

    // ---- Variables.

    /// What follows the space up to and with the semicolon: one variable or several.
    std::vector<Variable> variables(StateSpace space) {
        std::vector<Variable> all;
        Variable shape = declaration(space);
        do {
            Variable one = shape;
            named(one);
            if (lexer_.accept("=")) initialisers(one);
            all.push_back(std::move(one));
        } while (lexer_.accept(","));
        lexer_.expect(";");
        return all;
    }

    /// The attributes and the type before a name; `bytes` is that of one element.
    Variable declaration(StateSpace space) {
        Variable shape{.space = space, .external = false};
        bool aligned = false;
        std::uint64_t count = 1;
        while (lexer_.peek().kind == Token::Kind::directive) {
            const Token token = lexer_.take();
            if (token.is(".align")) {
                const std::uint32_t align = small_number();
                if (align == 0 || (align & (align - 1)) != 0 || align > 65536)
                    lexer_.fail("an alignment is a power of two");
                shape.align = align;
                aligned = true;
            } else if (token.is(".v2") || token.is(".v4")) {
                count = token.is(".v2") ? 2 : 4;
            } else if (token.is(".attribute")) {
                while (!lexer_.accept(")")) {
                    if (lexer_.peek().kind == Token::Kind::end) lexer_.fail("an attribute does not end");
                    lexer_.take();
                }
            } else if (token.is(".ptr") || space_named(token.text) != StateSpace::none) {
                // .ptr .global: what a parameter points to
            } else if (const PtxType type = ptx_type_named(token.text.substr(1)); type != PtxType::none) {
                shape.type = type;
            } else {
                lexer_.fail(fmt::format("'{}' is no type", token.text));
            }
        }
        shape.bytes = static_cast<std::uint64_t>(bytes_of(shape.type)) * count;
        if (!aligned) shape.align = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, shape.bytes));
        return shape;
    }

    void named(Variable& one) {
        const Token name = lexer_.take();
        if (name.kind != Token::Kind::name) lexer_.fail("a name is expected");
        one.name = name.text;
        while (lexer_.accept("[")) {
            if (lexer_.accept("]")) {
                one.external = one.bytes > 0;
                one.bytes = 0;
                continue;
            }
            const Token count = lexer_.take();
            if (count.kind != Token::Kind::integer || count.value < 0 ||
                static_cast<std::uint64_t>(count.value) > largest_variable ||
                one.bytes * static_cast<std::uint64_t>(count.value) > largest_variable)
                lexer_.fail(fmt::format("'{}' has no sensible size", name.text.substr(0, 60)));
            one.bytes *= static_cast<std::uint64_t>(count.value);
            lexer_.expect("]");
        }
        if (external_ && one.space != StateSpace::shared && one.space != StateSpace::reg)
            lexer_.fail(fmt::format("'{}' is defined in another module, and there is no linker", name.text));
    }

    void initialisers(Variable& one, int depth = 0) {
        if (!lexer_.accept("{")) {
            one.values.push_back(initialiser());
            return;
        }
        if (depth > 8) lexer_.fail("an initialiser is nested too deeply");
        while (!lexer_.accept("}")) {
            initialisers(one, depth + 1);
            if (!lexer_.peek().is("}")) lexer_.expect(",");
        }
    }

    Initialiser initialiser() {
        Initialiser made;
        const bool minus = lexer_.accept("-");
        const Token token = lexer_.take();
        if (token.kind == Token::Kind::integer || token.kind == Token::Kind::real) {
            made.value = minus ? -static_cast<std::int64_t>(static_cast<std::uint64_t>(token.value)) : token.value;
            if (lexer_.peek().is("(")) lexer_.fail("a masked address as initialiser is not emulated");
            return made;
        }
        if (token.kind != Token::Kind::name) lexer_.fail("an initialiser is expected");
        made.symbol = token.text;
        if (token.is("generic")) {
            lexer_.expect("(");
            made.generic = true;
            made.symbol = lexer_.take().text;
            lexer_.expect(")");
        }
        if (lexer_.accept("+")) made.value = lexer_.take().value;
        return made;
    }

    // ---- Functions.

    void function(bool entry) {
        Function made{.entry = entry};
        external_ = false;
        if (lexer_.peek().is("(")) made.results = parameters();
        const Token name = lexer_.take();
        if (name.kind != Token::Kind::name) lexer_.fail("a function has no name");
        made.name = name.text;
        if (lexer_.peek().is("(")) made.parameters = parameters();
        function_ = &made;
        while (lexer_.peek().kind == Token::Kind::directive) performance_directive();
        if (lexer_.peek().is("{")) {
            made.defined = true;
            body();
        } else {
            lexer_.expect(";");
        }
        function_ = nullptr;
        module_.functions.push_back(std::move(made));
    }

    std::vector<Variable> parameters() {
        std::vector<Variable> all;
        lexer_.expect("(");
        while (!lexer_.accept(")")) {
            const Token space = lexer_.take();
            if (!space.is(".param")) lexer_.fail("parameters other than .param are not emulated");
            all.push_back(declaration(StateSpace::param));
            named(all.back());
            if (!lexer_.peek().is(")")) lexer_.expect(",");
        }
        return all;
    }

    void performance_directive() {
        const Token token = lexer_.take();
        if (token.is(".maxntid") || token.is(".reqntid")) {
            std::uint64_t threads = 1;
            do threads *= small_number();
            while (lexer_.accept(",") && threads < 1u << 16);
            function_->max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 1u << 16));
            function_->required_threads = token.is(".reqntid");
        } else if (token.is(".reqnctapercluster")) {
            for (std::uint32_t& extent : function_->cluster) extent = 1;
            int i = 0;
            do {
                if (i == 3) lexer_.fail("a cluster has three dimensions at most");
                function_->cluster[i++] = small_number();
            } while (lexer_.accept(","));
        } else if (token.is(".pragma")) {
            skip_statement();
        } else {  // .minnctapersm 2, .maxnreg 64, .noreturn, .explicitcluster, .maxclusterrank 8, ...
            while (lexer_.peek().kind == Token::Kind::integer || lexer_.peek().is(",")) lexer_.take();
        }
    }

    void body() {
        function_->scopes.push_back(0);
        names_ = RegisterNames{};
        open_.clear();
        lexer_.expect("{");
        names_.enter();
        open_.push_back(0);
        while (!open_.empty()) statement();
    }

    void statement() {
        const Token& token = lexer_.peek();
        if (token.kind == Token::Kind::end) lexer_.fail("a function does not end");
        if (token.kind == Token::Kind::directive) return body_directive();
        if (lexer_.accept(";")) return;
        if (lexer_.accept("{")) {
            if (open_.size() >= deepest_nesting) lexer_.fail("scopes are nested too deeply");
            function_->scopes.push_back(open_.back());
            open_.push_back(static_cast<std::uint32_t>(function_->scopes.size() - 1));
            names_.enter();
            return;
        }
        if (lexer_.accept("}")) {
            open_.pop_back();
            names_.leave();
            return;
        }
        instruction();
    }

    void body_directive() {
        const Token token = lexer_.take();
        if (token.is(".loc")) return location();
        if (token.is(".pragma")) return skip_statement();
        if (token.is(".reg")) return registers();
        const StateSpace space = space_named(token.text);
        if (space == StateSpace::none)
            lexer_.fail(fmt::format("the directive '{}' is not emulated", token.text.substr(0, 60)));
        for (Variable& one : variables(space)) {
            if (space == StateSpace::global || space == StateSpace::constant) {
                module_.variables.push_back(std::move(one));
                continue;
            }
            function_->variables.push_back(std::move(one));
            function_->variable_scopes.push_back(open_.back());
        }
    }

    void registers() {
        const Variable shape = declaration(StateSpace::reg);
        do {
            const Token name = lexer_.take();
            if (name.kind != Token::Kind::name) lexer_.fail("a register has no name");
            std::uint32_t count = 1;
            const bool group = lexer_.accept("<");
            if (group) {
                count = small_number();
                lexer_.expect(">");
            }
            const std::size_t first = function_->registers.size();
            if (first + count > most_registers) lexer_.fail("a function has too many registers to be emulated");
            function_->registers.resize(first + count, shape.type);
            names_.add(name.text, static_cast<std::uint32_t>(first), group ? count : 0);
        } while (lexer_.accept(","));
        lexer_.expect(";");
    }

    void instruction() {
        Instruction made{.scope = open_.back(),
                         .location = static_cast<std::uint32_t>(module_.locations.size() - 1),
                         .text_line = lexer_.peek().line};
        if (lexer_.accept("@")) {
            made.guard_negated = lexer_.accept("!");
            const Token name = lexer_.take();
            const std::int64_t number = names_.find(name.text);
            if (number < 0) lexer_.fail(fmt::format("there is no predicate '{}'", name.text.substr(0, 60)));
            made.guard = static_cast<std::int32_t>(number);
        }
        const Token opcode = lexer_.take();
        if (opcode.kind != Token::Kind::name) lexer_.fail("an instruction is expected");
        if (lexer_.accept(":")) return label(opcode.text);
        made.opcode = opcode.text;
        while (!lexer_.peek().is(";")) {
            made.operands.push_back(operand(0));
            if (lexer_.peek().is("|") && made.operands.back().kind != Operand::Kind::pair) {
                lexer_.take();
                Operand pair{.kind = Operand::Kind::pair};
                pair.parts.push_back(std::move(made.operands.back()));
                pair.parts.push_back(operand(0));
                made.operands.back() = std::move(pair);
            }
            if (!lexer_.peek().is(";")) lexer_.expect(",");
        }
        lexer_.expect(";");
        function_->instructions.push_back(std::move(made));
    }

    void label(std::string_view name) {
        if (lexer_.accept(".callprototype") || lexer_.accept(".calltargets")) return skip_statement();
        if (lexer_.accept(".branchtargets")) {
            BranchTargets targets{.name = name, .scope = open_.back()};
            do targets.labels.push_back(lexer_.take().text);
            while (lexer_.accept(","));
            lexer_.expect(";");
            function_->targets.push_back(std::move(targets));
            return;
        }
        function_->labels.push_back({name, open_.back(), static_cast<std::uint32_t>(function_->instructions.size())});
    }

    Operand operand(int depth) {
        if (depth > 4) lexer_.fail("an operand is nested too deeply");
        if (lexer_.accept("[")) return address();
        if (lexer_.accept("{")) return several(Operand::Kind::vector, "}", depth);
        if (lexer_.accept("(")) return several(Operand::Kind::list, ")", depth);
        const bool negated = lexer_.accept("!");
        const bool minus = lexer_.accept("-");
        const Token token = lexer_.take();
        Operand made;
        made.negated = negated;
        switch (token.kind) {
            case Token::Kind::integer:
                made.kind = Operand::Kind::integer;
                made.value =
                    minus ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(token.value)) : token.value;
                return made;
            case Token::Kind::real:
                made.kind = Operand::Kind::real;
                made.single = token.single;
                made.value = token.value;
                if (minus) made.value ^= static_cast<std::int64_t>(std::uint64_t{1} << (token.single ? 31 : 63));
                return made;
            case Token::Kind::name:
                name_operand(made, token.text);
                return made;
            default:
                lexer_.fail("an operand is expected");
        }
    }

    void name_operand(Operand& made, std::string_view name) {
        if (name == "_") return;
        if (const std::int64_t number = names_.find(name); number >= 0) {
            made.kind = Operand::Kind::reg;
            made.number = static_cast<std::uint32_t>(number);
            return;
        }
        made.kind = name.starts_with('%') ? Operand::Kind::special : Operand::Kind::symbol;
        made.name = name;
        if (lexer_.accept("+")) made.value = lexer_.take().value;
    }

    Operand several(Operand::Kind kind, std::string_view close, int depth) {
        Operand made{.kind = kind};
        while (!lexer_.accept(close)) {
            made.parts.push_back(operand(depth + 1));
            if (made.parts.size() > 4096) lexer_.fail("an operand has too many parts");
            if (!lexer_.peek().is(close)) lexer_.expect(",");
        }
        return made;
    }

    /// [register or symbol + offset], [number], and further parts of bulk copies.
    Operand address() {
        Operand made{.kind = Operand::Kind::address};
        Operand base = operand(1);
        if (base.kind == Operand::Kind::integer) {
            made.value = base.value;
        } else {
            if (base.kind == Operand::Kind::symbol) std::swap(made.value, base.value);
            made.parts.push_back(std::move(base));
        }
        if (lexer_.accept("+")) {
            offset(made, lexer_.accept("-"));
        } else if (lexer_.accept("-")) {
            offset(made, true);
        }
        while (lexer_.accept(",")) made.parts.push_back(operand(1));
        lexer_.expect("]");
        return made;
    }

    void offset(Operand& address, bool minus) {
        const Token token = lexer_.take();
        if (token.kind != Token::Kind::integer) lexer_.fail("an address takes a whole offset");
        const auto bytes = static_cast<std::uint64_t>(token.value);
        address.value =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(address.value) + (minus ? 0 - bytes : bytes));
    }

    PtxModule& module_;
    PtxLexer lexer_;
    RegisterNames names_;
    Function* function_ = nullptr;
    std::vector<std::uint32_t> open_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, std::uint32_t>> outermost_;
    bool external_ = false;
};

}  // namespace

PtxModule parse_ptx(std::string text) {
    PtxModule module;
    if (text.size() > largest_text)
        throw Error{Error::Kind::usage, fmt::format("a PTX text of {} bytes is too large to be emulated", text.size())};
    module.text = std::make_shared<const std::string>(std::move(text));
    Parser{module}.run();
    return module;
}

}  // namespace autotune::emulator

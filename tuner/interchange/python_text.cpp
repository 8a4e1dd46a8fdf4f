#include "tuner/interchange/python_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <span>

#include "tuner/model/evaluator.h"

namespace autotune {
namespace {

constexpr std::size_t levels_at_most = 50;
constexpr std::size_t text_at_most = std::size_t{1} << 16;
constexpr std::size_t list_at_most = 65535;
/// What comprehensions may look at, filters and inner loops too.
constexpr std::size_t steps_at_most = std::size_t{1} << 20;

struct PythonToken {
    enum class Kind { word, text, other };
    Kind kind = Kind::other;
    std::string_view piece;
    std::size_t offset = 0;
    std::size_t partner = 0;  ///< of an opening bracket: the place of its closing one
};

using Tokens = std::span<const PythonToken>;

bool word_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool opens(const PythonToken& token) { return token.piece == "(" || token.piece == "["; }

std::vector<PythonToken> tokens_of(std::string_view text) {
    if (text.size() > text_at_most) throw ParseError{fmt::format("longer than {} bytes", text_at_most), text_at_most};
    static constexpr std::string_view pairs[] = {"**", "//", "==", "!=", "<=", ">=", "&&", "||"};
    std::vector<PythonToken> out;
    std::vector<std::size_t> open;
    for (std::size_t at = 0; at < text.size();) {
        if (std::isspace(static_cast<unsigned char>(text[at]))) {
            ++at;
            continue;
        }
        std::size_t length = 1;
        auto kind = PythonToken::Kind::other;
        const bool fraction =
            text[at] == '.' && at + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0;
        if (word_letter(text[at]) || fraction) {  // numbers too: our parser tells them apart
            // "1.5", "2.e-3" and "math.ceil" are one piece
            while (at + length < text.size() && (word_letter(text[at + length]) || text[at + length] == '.' ||
                                                 ((text[at + length] == '-' || text[at + length] == '+') &&
                                                  std::isdigit(static_cast<unsigned char>(text[at])) != 0 &&
                                                  (text[at + length - 1] == 'e' || text[at + length - 1] == 'E'))))
                ++length;
            kind = PythonToken::Kind::word;
        } else if (text[at] == '"' || text[at] == '\'') {
            const std::size_t end = text.find(text[at], at + 1);
            if (end == std::string_view::npos) throw ParseError{"the quote is not closed", at};
            length = end + 1 - at;
            kind = PythonToken::Kind::text;
            // Python takes it and what follows for another character, and the word would be another.
            if (const std::size_t escape = text.find('\\', at); escape < end)
                throw ParseError{"a backslash in quotes is not known here", escape};
        } else if (std::ranges::find(pairs, text.substr(at, 2)) != std::end(pairs)) {
            length = 2;
        }
        const std::string_view piece = text.substr(at, length);
        if (piece == "(" || piece == "[") open.push_back(out.size());
        if (piece == ")" || piece == "]") {
            if (open.empty() || (out[open.back()].piece == "(") != (piece == ")"))
                throw ParseError{fmt::format("'{}' closes nothing", piece), at};
            out[open.back()].partner = out.size();
            open.pop_back();
        }
        out.push_back({kind, piece, at, 0});
        if (open.size() > levels_at_most) throw ParseError{fmt::format("more than {} levels deep", levels_at_most), at};
        at += length;
    }
    if (!open.empty()) throw ParseError{"the bracket is not closed", out[open.back()].offset};
    return out;
}

/// Where a word or sign stands outside of inner brackets; the end: nowhere.
std::size_t outside(Tokens all, std::size_t begin, std::size_t end, std::string_view piece) {
    for (std::size_t i = begin; i < end; ++i) {
        if (all[i].kind != PythonToken::Kind::text && all[i].piece == piece) return i;
        if (opens(all[i])) i = all[i].partner;
    }
    return end;
}

std::vector<std::pair<std::size_t, std::size_t>> parts(Tokens all, std::size_t begin, std::size_t end,
                                                       std::string_view by) {
    std::vector<std::pair<std::size_t, std::size_t>> out;
    while (begin < end) {
        const std::size_t stop = outside(all, begin, end, by);
        out.emplace_back(begin, stop);
        begin = stop + 1;
    }
    return out;
}

/// Writes Python's tokens as one of our expressions.
class Translator {
public:
    Translator(Tokens all, std::size_t whole) : all_{all}, whole_{whole} {}

    /// Without commas outside of brackets.
    std::string expression(std::size_t begin, std::size_t end, std::size_t level = 0) const {
        if (level > levels_at_most)
            throw ParseError{fmt::format("more than {} levels deep", levels_at_most), offset(begin)};
        if (begin >= end) throw ParseError{"a value is missing", offset(begin)};
        const std::size_t choice = outside(all_, begin, end, "if");
        if (choice == end) return bounded(plain(begin, end, level), begin);
        const std::size_t otherwise = outside(all_, choice, end, "else");
        if (otherwise == end) throw ParseError{"'if' without 'else'", offset(choice)};
        return bounded(fmt::format("(({}) ? ({}) : ({}))", expression(choice + 1, otherwise, level + 1),
                                   expression(begin, choice, level + 1), expression(otherwise + 1, end, level + 1)),
                       begin);
    }

private:
    std::size_t offset(std::size_t token) const { return token < all_.size() ? all_[token].offset : whole_; }

    /// int() says its argument three times, so int(int(int(...))) would grow without end.
    std::string bounded(std::string text, std::size_t begin) const {
        if (text.size() > text_at_most) throw ParseError{"too long once it is written out", offset(begin)};
        return text;
    }

    std::string list(std::size_t begin, std::size_t end, std::size_t level) const {
        std::string out;
        for (const auto& [first, last] : parts(all_, begin, end, ","))
            out += (out.empty() ? "" : ", ") + expression(first, last, level + 1);
        return out;
    }

    std::string plain(std::size_t begin, std::size_t end, std::size_t level) const {
        std::string out;
        for (std::size_t i = begin; i < end; ++i) {
            const PythonToken& token = all_[i];
            const bool bracket = i + 1 < end && opens(all_[i + 1]);
            if (!out.empty()) out += ' ';
            if (token.kind == PythonToken::Kind::word && bracket && all_[i + 1].piece == "[" && !is_operator(token)) {
                // p["NAME"], as restrictions name their parameters
                const std::size_t close = all_[i + 1].partner;
                if (close != i + 3 || all_[i + 2].kind != PythonToken::Kind::text)
                    throw ParseError{fmt::format("'{}[' is not followed by a name in quotes", token.piece),
                                     token.offset};
                out += all_[i + 2].piece.substr(1, all_[i + 2].piece.size() - 2);
                i = close;
            } else if (token.kind == PythonToken::Kind::word && bracket && !is_operator(token)) {
                const std::size_t close = all_[i + 1].partner;
                out += call(token, i + 2, close, level);
                i = close;
            } else if (opens(token)) {
                out += token.piece;
                out += list(i + 1, token.partner, level);
                out += all_[token.partner].piece;
                i = token.partner;
            } else {
                out += token.kind == PythonToken::Kind::text ? token.piece : in_our_words(token);
            }
        }
        return out;
    }

    static bool is_operator(const PythonToken& token) {
        return token.piece == "and" || token.piece == "or" || token.piece == "not" || token.piece == "in";
    }

    static std::string_view in_our_words(const PythonToken& token) {
        static constexpr std::pair<std::string_view, std::string_view> words[] = {
            {"True", "true"}, {"False", "false"}, {"&&", "and"}, {"||", "or"}, {"!", "not"}};
        for (const auto& [theirs, ours] : words)
            if (token.piece == theirs) return ours;
        if (token.kind == PythonToken::Kind::word && std::isalpha(static_cast<unsigned char>(token.piece[0])) != 0 &&
            token.piece.find('.') != std::string_view::npos)
            throw ParseError{fmt::format("'{}' is not known here", token.piece), token.offset};
        return token.piece;
    }

    std::string call(const PythonToken& name, std::size_t begin, std::size_t end, std::size_t level) const {
        const auto arguments = parts(all_, begin, end, ",");
        const auto argument = [&](std::size_t i) {
            return expression(arguments[i].first, arguments[i].second, level + 1);
        };
        const auto takes = [&](std::size_t count) {
            if (arguments.size() != count)
                throw ParseError{fmt::format("'{}' takes {} argument{} and is given {}", name.piece, count,
                                             count == 1 ? "" : "s", arguments.size()),
                                 name.offset};
        };
        const std::string_view function = name.piece.starts_with("math.") ? name.piece.substr(5) : name.piece;
        if (function == "int") {  // towards zero
            takes(1);
            const std::string x = argument(0);
            return fmt::format("(({0}) >= 0 ? ({0}) // 1 : -(-({0}) // 1))", x);
        }
        if (function == "floor") return takes(1), fmt::format("(({}) // 1)", argument(0));
        if (function == "ceil") return takes(1), fmt::format("(-(-({}) // 1))", argument(0));
        if (function == "float") return takes(1), fmt::format("(({}) * 1.0)", argument(0));
        if (function == "bool") return takes(1), fmt::format("(not not ({}))", argument(0));
        if (function == "pow") return takes(2), fmt::format("(({}) ** ({}))", argument(0), argument(1));
        if (function == "min" || function == "max" || function == "abs" || function == "log2")
            return fmt::format("{}({})", function, list(begin, end, level));
        throw ParseError{fmt::format("there is no function '{}' here: int, float, bool, pow, min, max, abs, log2, "
                                     "math.floor and math.ceil are known",
                                     name.piece),
                         name.offset};
    }

    Tokens all_;
    std::size_t whole_;
};

/// `(a or b) == 1` asks for the operand in Python, and for true or false with us.
bool uses_an_operand(const ExpressionNode& node, bool as_number) {
    const bool junction = node.kind == NodeKind::logical_and || node.kind == NodeKind::logical_or;
    if (junction && as_number) return true;
    const bool logical = junction || node.kind == NodeKind::logical_not;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
        const bool choice = node.kind == NodeKind::conditional;
        const bool child_as_number = choice ? i > 0 && as_number : !logical;
        if (uses_an_operand(*node.children[i], child_as_number)) return true;
    }
    return false;
}

/// Where a place of our own text stands in the Python that it was made of, as far as they have the same letters.
std::size_t place_in_python(std::string_view ours, std::size_t at, std::string_view python, std::size_t begin) {
    std::size_t place = begin;
    const auto skip_blanks = [&] {
        while (place < python.size() && std::isspace(static_cast<unsigned char>(python[place])) != 0) ++place;
    };
    for (const char c : ours.substr(0, at)) {
        if (c == ' ') continue;
        skip_blanks();
        if (place == python.size() || python[place] != c) return begin;
        ++place;
    }
    skip_blanks();
    return place;
}

/// python: the whole text, of which `ours` was made from `offset` on
Expression parsed(const std::string& ours, std::string_view python, std::size_t offset) {
    try {
        return Expression::parse(ours);
    } catch (const ParseError& error) {
        throw ParseError{error.what(), place_in_python(ours, error.offset(), python, offset)};
    }
}

/// Loop variables.
class Loops final : public Scope {
public:
    const Value* find(std::string_view name) const override {
        for (auto i = values.rbegin(); i != values.rend(); ++i)
            if (i->first == name) return &i->second;
        return nullptr;
    }
    std::vector<std::pair<std::string, Value>> values;
};

class ListReader {
public:
    ListReader(Tokens all, std::string_view text) : all_{all}, text_{text}, translator_{all, text.size()} {}

    std::vector<Value> read() { return sum(0, all_.size(), 0); }

private:
    std::size_t offset(std::size_t token) const { return token < all_.size() ? all_[token].offset : text_.size(); }

    void step(std::size_t token) {
        if (++steps_ > steps_at_most) throw ParseError{"it takes too many steps to list", offset(token)};
    }

    template <class Evaluate>
    auto evaluated(std::size_t token, Evaluate&& evaluate) {
        try {
            return evaluate();
        } catch (const EvaluationError& error) {
            throw ParseError{error.what(), offset(token)};
        }
    }

    void append(std::vector<Value>& out, Value value, std::size_t token) {
        step(token);
        if (out.size() == list_at_most)
            throw ParseError{fmt::format("more than {} values", list_at_most), offset(token)};
        out.push_back(std::move(value));
    }

    std::vector<Value> sum(std::size_t begin, std::size_t end, std::size_t level) {
        if (level > levels_at_most)
            throw ParseError{fmt::format("more than {} levels deep", levels_at_most), offset(begin)};
        std::vector<Value> out;
        const auto terms = parts(all_, begin, end, "+");
        if (terms.empty()) throw ParseError{"a list is missing", offset(begin)};
        for (const auto& [first, last] : terms)
            for (Value& value : term(first, last, level)) append(out, std::move(value), first);
        return out;
    }

    std::vector<Value> term(std::size_t begin, std::size_t end, std::size_t level) {
        if (begin >= end) throw ParseError{"a list is missing", offset(begin)};
        const PythonToken& first = all_[begin];
        if (opens(first) && first.partner + 1 < end)
            throw ParseError{
                fmt::format("'{}' after a list: lists are joined by '+' alone", all_[first.partner + 1].piece),
                offset(first.partner + 1)};
        if (opens(first)) return inside(begin + 1, first.partner, level);
        if (first.kind == PythonToken::Kind::word && begin + 1 < end && all_[begin + 1].piece == "(" &&
            all_[begin + 1].partner + 1 == end) {
            const std::size_t close = all_[begin + 1].partner;
            if (first.piece == "list" || first.piece == "tuple") {
                const bool loop = outside(all_, begin + 2, close, "for") != close;
                return loop ? inside(begin + 2, close, level + 1) : sum(begin + 2, close, level + 1);
            }
            if (first.piece == "range") return range(begin + 2, close);
        }
        throw ParseError{fmt::format("'{}' where a list such as [1, 2] or range(1, 9) is expected", first.piece),
                         first.offset};
    }

    std::vector<Value> inside(std::size_t begin, std::size_t end, std::size_t level) {
        const std::size_t loop = outside(all_, begin, end, "for");
        if (loop != end) return comprehension(begin, loop, end, level);
        std::vector<Value> out;
        for (const auto& [first, last] : parts(all_, begin, end, ",")) append(out, value(first, last), first);
        return out;
    }

    /// `element for NAME in list if condition`
    std::vector<Value> comprehension(std::size_t begin, std::size_t loop, std::size_t end, std::size_t level) {
        if (loop + 3 >= end || all_[loop + 1].kind != PythonToken::Kind::word || all_[loop + 2].piece != "in")
            throw ParseError{"'for' is not followed by a name, 'in' and a list", offset(loop)};
        if (outside(all_, loop + 1, end, "for") != end)
            throw ParseError{"one 'for' in another is not known here", offset(outside(all_, loop + 1, end, "for"))};
        const std::size_t filter = outside(all_, loop + 3, end, "if");
        const std::vector<Value> source = sum(loop + 3, filter, level + 1);
        const Expression element = parsed(translator_.expression(begin, loop), text_, offset(begin));
        const Expression condition =
            filter == end ? Expression{} : parsed(translator_.expression(filter + 1, end), text_, offset(filter));
        std::vector<Value> out;
        loops_.values.emplace_back(std::string{all_[loop + 1].piece}, Value{});
        for (const Value& each : source) {
            step(loop);
            loops_.values.back().second = each;
            if (condition.empty() || evaluated(filter, [&] { return condition.evaluate_bool(loops_); }))
                append(out, evaluated(begin, [&] { return element.evaluate(loops_); }), begin);
        }
        loops_.values.pop_back();
        return out;
    }

    Value value(std::size_t begin, std::size_t end) {
        const Expression expression = parsed(translator_.expression(begin, end), text_, offset(begin));
        return evaluated(begin, [&] { return expression.evaluate(loops_); });
    }

    std::vector<Value> range(std::size_t begin, std::size_t end) {
        std::vector<std::int64_t> numbers;
        for (const auto& [first, last] : parts(all_, begin, end, ",")) {
            const Expression expression = parsed(translator_.expression(first, last), text_, offset(first));
            numbers.push_back(evaluated(first, [&] { return expression.evaluate_integer(loops_); }));
        }
        if (numbers.empty() || numbers.size() > 3) throw ParseError{"range() takes 1 to 3 numbers", offset(begin)};
        if (numbers.size() == 1) numbers.insert(numbers.begin(), 0);
        if (numbers.size() == 2) numbers.push_back(1);
        if (numbers[2] == 0) throw ParseError{"the step of range() is 0", offset(begin)};
        std::vector<Value> out;
        std::int64_t at = numbers[0];
        while (numbers[2] > 0 ? at < numbers[1] : at > numbers[1]) {
            append(out, at, begin);
            if (__builtin_add_overflow(at, numbers[2], &at)) break;
        }
        return out;
    }

    Tokens all_;
    std::string_view text_;
    Translator translator_;
    Loops loops_;
    std::size_t steps_ = 0;
};

}  // namespace

Expression expression_from_python(std::string_view text) {
    const std::vector<PythonToken> tokens = tokens_of(text);
    const Expression out = parsed(Translator{tokens, text.size()}.expression(0, tokens.size()), text, 0);
    if (uses_an_operand(*out.node(), false))
        throw ParseError{"'and' and 'or' are true or false here, and no number to go on with", 0};
    return out;
}

std::vector<Value> values_from_python(std::string_view text) {
    const std::vector<PythonToken> tokens = tokens_of(text);
    std::vector<Value> all = ListReader{tokens, text}.read();
    std::set<Value> seen;
    std::erase_if(all, [&](const Value& value) { return !seen.insert(value).second; });
    return all;
}

}  // namespace autotune

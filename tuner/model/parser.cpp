#include "tuner/model/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "autotune/dtype.h"
#include "tuner/model/expression.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

using NodePtr = std::shared_ptr<const ExpressionNode>;

struct Token {
    enum class Kind { end, number, word, text, symbol };
    Kind kind = Kind::end;
    std::size_t offset = 0;
    std::string_view piece;
    Value value;  ///< of a number and a text

    bool is(std::string_view spelling) const {
        return (kind == Kind::symbol || kind == Kind::word) && piece == spelling;
    }
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_keyword(std::string_view word) {
    return word == "and" || word == "or" || word == "not" || word == "in" || word == "true" || word == "false";
}

/// The longest spellings first, so that "//" is never read as "/" twice.
constexpr std::string_view symbols[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/",
                                        "%",  "<",  ">",  "(",  ")",  "[",  "]", ",", "?", ":"};

/// What people write by habit of other languages, and what to write here.
struct Habit {
    std::string_view spelling, instead;
};
constexpr Habit habits[] = {{"&&", "'and'"}, {"||", "'or'"}, {"!", "'not'"}, {"=", "'=='"}, {"^", "'**'"}};

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_{text} {}

    Token next() {
        while (at_ < text_.size() && std::string_view{" \t\r\n"}.find(text_[at_]) != std::string_view::npos) ++at_;
        if (at_ == text_.size()) return {.kind = Token::Kind::end, .offset = at_, .piece = {}, .value = {}};
        const char c = text_[at_];
        if (is_letter(c)) return word();
        if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number();
        if (c == '\'' || c == '"') return quoted();
        for (const std::string_view symbol : symbols)
            if (text_.substr(at_).starts_with(symbol)) return taken(Token::Kind::symbol, symbol.size());
        for (const Habit& habit : habits)
            if (text_.substr(at_).starts_with(habit.spelling))
                throw ParseError{fmt::format("'{}' is not known here: write {}", habit.spelling, habit.instead), at_};
        if (c > ' ' && c <= '~') throw ParseError{fmt::format("'{}' has no meaning here", c), at_};
        throw ParseError{fmt::format("the byte 0x{:02x} has no meaning here", static_cast<unsigned char>(c)), at_};
    }

private:
    Token taken(Token::Kind kind, std::size_t length, Value value = {}) {
        Token token{.kind = kind, .offset = at_, .piece = text_.substr(at_, length), .value = std::move(value)};
        at_ += length;
        return token;
    }

    Token word() {
        std::size_t end = at_;
        while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
        return taken(Token::Kind::word, end - at_);
    }

    Token quoted() {
        const std::size_t end = text_.find(text_[at_], at_ + 1);
        if (end == std::string_view::npos) throw ParseError{"the quote is not closed", at_};
        return taken(Token::Kind::text, end + 1 - at_, std::string{text_.substr(at_ + 1, end - at_ - 1)});
    }

    Token number() {
        const char* const begin = text_.data() + at_;
        const char* const end = text_.data() + text_.size();
        std::int64_t integer = 0;
        const bool hex = text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X");
        const auto whole = hex ? std::from_chars(begin + 2, end, integer, 16) : std::from_chars(begin, end, integer);
        double real = 0;
        const auto fraction = std::from_chars(begin, end, real);
        const bool is_whole = hex || whole.ptr == fraction.ptr;
        const char* const stop = is_whole ? whole.ptr : fraction.ptr;
        const auto length = static_cast<std::size_t>(stop - begin);
        if (stop < end && (is_letter(*stop) || is_digit(*stop) || *stop == '.'))
            throw ParseError{"a number runs into something else", at_ + length};
        if (is_whole && whole.ec == std::errc{}) return taken(Token::Kind::number, length, integer);
        if (is_whole) throw ParseError{"the integer does not fit in 64 bits", at_};
        if (fraction.ec != std::errc{}) throw ParseError{"the number is out of range", at_};
        return taken(Token::Kind::number, length, real);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

class Parser {
public:
    Parser(ExpressionTree& tree, std::span<const FunctionInfo> known)
        : tree_{tree}, text_{tree.text}, known_{known}, lexer_{text_} {
        advance();
    }

    NodePtr whole() {
        NodePtr root = conditional();
        if (token_.kind != Token::Kind::end) throw unexpected("an operator or the end");
        return root;
    }

private:
    /// Counts nesting, so that hostile text ends in an error and not in a stack overflow.
    class Level {
    public:
        explicit Level(Parser& parser) : parser_{parser} {
            if (++parser_.level_ > expression_depth_at_most) parser_.too_deep(parser_.token_.offset);
        }
        ~Level() { --parser_.level_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

    private:
        Parser& parser_;
    };

    [[noreturn]] void too_deep(std::size_t offset) const {
        throw ParseError{fmt::format("more than {} levels deep", expression_depth_at_most), offset};
    }

    void advance() {
        end_of_last_ = token_.offset + token_.piece.size();
        token_ = lexer_.next();
    }

    bool accept(std::string_view spelling) {
        if (!token_.is(spelling)) return false;
        advance();
        return true;
    }

    void expect(std::string_view spelling) {
        if (!accept(spelling)) throw unexpected(fmt::format("'{}'", spelling));
    }

    ParseError unexpected(std::string_view wanted) const {
        const std::string found =
            token_.kind == Token::Kind::end ? std::string{"the end"} : fmt::format("'{}'", token_.piece);
        return ParseError{fmt::format("{} where {} is expected", found, wanted), token_.offset};
    }

    /// A finished node that spans from `begin` to the last token read.
    NodePtr made(ExpressionNode node, std::size_t begin) const {
        node.offset = begin;
        node.piece = text_.substr(begin, end_of_last_ - begin);
        for (const NodePtr& child : node.children) node.depth = std::max(node.depth, child->depth + 1);
        if (node.depth > expression_depth_at_most) too_deep(begin);
        return std::make_shared<const ExpressionNode>(std::move(node));
    }

    NodePtr made(NodeKind kind, std::vector<NodePtr> children, std::size_t begin) const {
        ExpressionNode node;
        node.kind = kind;
        node.children = std::move(children);
        return made(std::move(node), begin);
    }

    NodePtr conditional() {
        const Level level{*this};
        const std::size_t begin = token_.offset;
        NodePtr condition = either();
        if (!accept("?")) return condition;
        NodePtr yes = conditional();
        expect(":");
        NodePtr no = conditional();
        return made(NodeKind::conditional, {std::move(condition), std::move(yes), std::move(no)}, begin);
    }

    NodePtr either() {
        const std::size_t begin = token_.offset;
        std::vector<NodePtr> operands{both()};
        while (accept("or")) operands.push_back(both());
        return operands.size() == 1 ? operands.front() : made(NodeKind::logical_or, std::move(operands), begin);
    }

    NodePtr both() {
        const std::size_t begin = token_.offset;
        std::vector<NodePtr> operands{negation()};
        while (accept("and")) operands.push_back(negation());
        return operands.size() == 1 ? operands.front() : made(NodeKind::logical_and, std::move(operands), begin);
    }

    NodePtr negation() {
        const std::size_t begin = token_.offset;
        if (!accept("not")) return comparison();
        const Level level{*this};
        return made(NodeKind::logical_not, {negation()}, begin);
    }

    std::optional<Relation> relation() {
        static constexpr std::pair<std::string_view, Relation> spellings[] = {
            {"==", Relation::equal},      {"!=", Relation::not_equal}, {"<", Relation::less},
            {"<=", Relation::less_equal}, {">", Relation::greater},    {">=", Relation::greater_equal},
            {"in", Relation::in}};
        for (const auto& [spelling, relation] : spellings)
            if (accept(spelling)) return relation;
        if (!accept("not")) return std::nullopt;
        expect("in");
        return Relation::not_in;
    }

    NodePtr comparison() {
        const std::size_t begin = token_.offset;
        NodePtr first = sum();
        ExpressionNode node;
        node.kind = NodeKind::compare;
        while (const auto which = relation()) {
            node.relations.push_back(*which);
            const bool member = *which == Relation::in || *which == Relation::not_in;
            node.children.push_back(member ? list() : sum());
            if (member) break;
        }
        if (node.relations.empty()) return first;
        node.children.insert(node.children.begin(), std::move(first));
        return made(std::move(node), begin);
    }

    NodePtr list() {
        const std::size_t begin = token_.offset;
        const bool square = accept("[");
        if (!square && !accept("(")) throw unexpected("a list such as [1, 2] after 'in'");
        const std::string_view close = square ? "]" : ")";
        std::vector<NodePtr> elements;
        while (!token_.is(close)) {
            elements.push_back(conditional());
            if (!accept(",")) break;
        }
        expect(close);
        return made(NodeKind::list, std::move(elements), begin);
    }

    NodePtr sum() {
        const std::size_t begin = token_.offset;
        NodePtr left = product();
        for (;;) {
            const NodeKind kind = token_.is("-") ? NodeKind::subtract : NodeKind::add;
            if (!accept("+") && !accept("-")) return left;
            NodePtr right = product();
            left = made(kind, {std::move(left), std::move(right)}, begin);
        }
    }

    NodePtr product() {
        static constexpr std::pair<std::string_view, NodeKind> spellings[] = {{"*", NodeKind::multiply},
                                                                              {"/", NodeKind::divide},
                                                                              {"//", NodeKind::floor_divide},
                                                                              {"%", NodeKind::modulo}};
        const std::size_t begin = token_.offset;
        NodePtr left = sign();
        for (;;) {
            const auto found = std::ranges::find_if(spellings, [&](const auto& row) { return token_.is(row.first); });
            if (found == std::end(spellings)) return left;
            advance();
            NodePtr right = sign();
            left = made(found->second, {std::move(left), std::move(right)}, begin);
        }
    }

    NodePtr sign() {
        const std::size_t begin = token_.offset;
        if (accept("-")) return made(NodeKind::negate, {deeper_sign()}, begin);
        if (accept("+")) return deeper_sign();
        NodePtr base = primary();
        if (!accept("**")) return base;
        NodePtr exponent = deeper_sign();
        return made(NodeKind::power, {std::move(base), std::move(exponent)}, begin);
    }

    NodePtr deeper_sign() {
        const Level level{*this};
        return sign();
    }

    NodePtr primary() {
        const Token token = token_;
        if (token.kind == Token::Kind::number || token.kind == Token::Kind::text) {
            advance();
            return literal(token.value, token.offset);
        }
        if (accept("true")) return literal(true, token.offset);
        if (accept("false")) return literal(false, token.offset);
        if (accept("(")) {
            NodePtr inner = conditional();
            expect(")");
            return inner;
        }
        if (token.kind != Token::Kind::word || is_keyword(token.piece)) throw unexpected("a value");
        advance();
        if (token_.is("(")) return call(token);
        return name(token);
    }

    NodePtr literal(Value value, std::size_t begin) const {
        ExpressionNode node;
        node.value = std::move(value);
        return made(std::move(node), begin);
    }

    NodePtr name(const Token& token) {
        ExpressionNode node;
        node.kind = NodeKind::name;
        node.name = token.piece;
        note(tree_.names, node.name);
        return made(std::move(node), token.offset);
    }

    static void note(std::vector<std::string>& list, const std::string& name) {
        if (std::ranges::find(list, name) == list.end()) list.push_back(name);
    }

    const FunctionInfo& function(const Token& token) const {
        std::vector<std::string> known;
        for (const FunctionInfo& row : known_) {
            if (row.name == token.piece) return row;
            known.emplace_back(row.name);
        }
        throw ParseError{
            fmt::format("there is no function '{}'{}", token.piece, remedy(token.piece, known, "functions")),
            token.offset};
    }

    NodePtr call(const Token& token) {
        const FunctionInfo& info = function(token);
        expect("(");
        if (info.function >= Function::align && info.function <= Function::sum) return tensor_fact(info, token.offset);
        ExpressionNode node;
        node.kind = NodeKind::call;
        node.function = info.function;
        if (info.function == Function::size_of && token_.kind == Token::Kind::word && dtype_named(token_.piece)) {
            const Token dtype = token_;
            advance();
            node.children.push_back(literal(std::string{dtype.piece}, dtype.offset));
        }
        while (node.children.empty() || accept(",")) node.children.push_back(conditional());
        const std::size_t count = node.children.size();
        if (count < info.least || count > info.most) throw wrong_count(info, count, token.offset);
        expect(")");
        return made(std::move(node), token.offset);
    }

    static ParseError wrong_count(const FunctionInfo& info, std::size_t count, std::size_t offset) {
        const std::string wanted =
            info.least == info.most ? fmt::format("{}", info.least) : fmt::format("{} to {}", info.least, info.most);
        return ParseError{fmt::format("'{}' takes {} argument{} and is given {}", info.name, wanted,
                                      info.most == 1 ? "" : "s", count),
                          offset};
    }

    NodePtr tensor_fact(const FunctionInfo& info, std::size_t begin) {
        if (token_.kind != Token::Kind::word || is_keyword(token_.piece)) throw unexpected("the name of a tensor");
        ExpressionNode node;
        node.kind = NodeKind::tensor_fact;
        node.function = info.function;
        node.name = token_.piece;
        advance();
        expect(")");
        note(tree_.tensors, node.name);
        return made(std::move(node), begin);
    }

    ExpressionTree& tree_;
    std::string_view text_;
    std::span<const FunctionInfo> known_;
    Lexer lexer_;
    Token token_;
    std::size_t end_of_last_ = 0;
    std::uint32_t level_ = 0;
};

std::string literal_text(const Value& value) {
    const auto* word = std::get_if<std::string>(&value);
    if (value == Value{std::numeric_limits<std::int64_t>::min()})
        return "-9223372036854775807 - 1";  // no literal has a sign
    if (word == nullptr) return to_text(value);
    const char quote = word->find('\'') == std::string::npos ? '\'' : '"';
    return quote + *word + quote;
}

}  // namespace

std::shared_ptr<const ExpressionTree> parse_tree(std::string_view text, std::span<const FunctionInfo> known) {
    if (text.size() > expression_bytes_at_most)
        throw ParseError{fmt::format("longer than {} bytes", expression_bytes_at_most), expression_bytes_at_most};
    auto tree = std::make_shared<ExpressionTree>();
    tree->text = text;
    tree->root = Parser{*tree, known}.whole();
    return tree;
}

std::shared_ptr<const ExpressionTree> constant_tree(Value value) {
    auto tree = std::make_shared<ExpressionTree>();
    tree->text = literal_text(value);
    auto root = std::make_shared<ExpressionNode>();
    root->value = std::move(value);
    root->piece = tree->text;
    tree->root = std::move(root);
    return tree;
}

}  // namespace autotune

// Goal: an op that travels as JSON is the same op, and a hostile text is an error and nothing worse.
// Method: every op there is goes there and back; one op with each member set shows that none is forgotten; then texts
// with one thing wrong each.
#include "tuner/model/op_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tuner/loader/op_loader.h"
#include "tuner/model/builtin_ops.h"

namespace autotune {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string error_of(const std::string& text) {
    try {
        (void)op_from_json(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        return error.what();
    }
    return "no error";
}

Op small_op() {
    Op op;
    op.name = "scale";
    op.fields.push_back({.name = "n", .choices = {}, .fallback = Expression::parse("4096"), .about = "", .from = {}});
    return op;
}

/// The text of a small op after a change.
template <class Change>
std::string changed(const Change& change) {
    Json json = Json::parse(op_to_json(small_op()));
    change(json);
    return json.dump();
}

TEST(OpJson, GivesBackEveryOp) {
    std::vector<Op> ops = load_op_folder(AUTOTUNE_SOURCE_DIR "/tests/loader/ops");
    ops.insert(ops.end(), builtin_ops().begin(), builtin_ops().end());
    for (const Op& op : ops) {
        const std::string text = op_to_json(op);
        const Op back = op_from_json(text);
        EXPECT_EQ(op_to_json(back), text) << op.name;
        EXPECT_EQ(back.files, op.files) << op.name;
        EXPECT_EQ(back.variants.size(), op.variants.size()) << op.name;
        EXPECT_EQ(back.tensors.size(), op.tensors.size()) << op.name;
        EXPECT_EQ(back.toml, op.toml) << op.name;
    }
}

TEST(OpJson, KeepsValuesOfEveryKind) {
    Op op = small_op();
    op.scalars.push_back(
        {.name = "s", .dtype = DType::f16, .fallback = 1.0, .check = {true, std::int64_t{1}, 0.1, 1e300, "word"}});
    op.check_problems = {{{"n", std::int64_t{1} << 62}, {"text", "a 'b' \"c\""}}, {}};
    const Op back = op_from_json(op_to_json(op));
    EXPECT_EQ(back.scalars[0].fallback, op.scalars[0].fallback);
    EXPECT_EQ(back.scalars[0].check, op.scalars[0].check);
    EXPECT_EQ(back.scalars[0].dtype, DType::f16);
    EXPECT_EQ(back.check_problems, op.check_problems);
}

TEST(OpJson, KeepsWordsThatHoldBothKindsOfQuotes) {
    Op op = small_op();
    op.fields[0].fallback = Expression::constant(std::string{"it's \"so\""});
    EXPECT_EQ(op_from_json(op_to_json(op)).fields[0].fallback.constant_value(), Value{"it's \"so\""});
}

TEST(OpJson, KeepsFilesThatAreNoUtf8) {
    Op op = small_op();
    op.files["latin.cu"] = std::string{"// 5 \xb5m\0 \xff", 10};
    EXPECT_EQ(op_from_json(op_to_json(op)).files, op.files);
}

TEST(OpJson, KeepsWhatIsAbsentApartFromZero) {
    Op op = small_op();
    op.variants.resize(2);
    op.variants[1].spill_bytes = 0;
    const Op back = op_from_json(op_to_json(op));
    EXPECT_FALSE(back.variants[0].spill_bytes.has_value());
    EXPECT_EQ(back.variants[1].spill_bytes, 0);
}

TEST(OpJson, RefusesWhatIsNoOp) {
    EXPECT_EQ(error_of("{"), "this is no op in JSON: the text is no JSON");
    EXPECT_EQ(error_of("[]"), "this is no op in JSON: the text is no object");
    EXPECT_EQ(error_of("{}"), "this is no op in JSON: the text has no 'format'");
    EXPECT_EQ(error_of(std::string(10'000'000, '[')), "this is no op in JSON: the text is deeper than any op");
    EXPECT_EQ(error_of(changed([](Json& op) { op["surprise"] = 1; })),
              "this is no op in JSON: the text holds an unknown key");
    EXPECT_EQ(error_of(changed([](Json& op) { op["name"] = 7; })), "this is no op in JSON: name is no text");
    EXPECT_EQ(error_of(changed([](Json& op) { op["format"] = 1.5; })), "this is no op in JSON: format is no integer");
    EXPECT_EQ(error_of(changed([](Json& op) { op["format"] = 1ll << 40; })),
              "this is no op in JSON: format is beyond 32 bits");
    EXPECT_EQ(error_of(changed([](Json& op) { op["builtin"] = "yes"; })),
              "this is no op in JSON: builtin is neither true nor false");
    EXPECT_EQ(error_of(changed([](Json& op) { op["fields"] = Json::object(); })),
              "this is no op in JSON: fields is no list");
    EXPECT_EQ(error_of(changed([](Json& op) { op["fields"][0]["kind"] = "size"; })),
              "this is no op in JSON: fields[0] has an unknown 'kind'");
    EXPECT_EQ(error_of(changed([](Json& op) {
                  op["lets"] = Json{{"a", "1", "2"}};
              })),
              "this is no op in JSON: lets[0] is no pair");
}

TEST(OpJson, RefusesAnExpressionThatDoesNotParse) {
    EXPECT_THAT(error_of(changed([](Json& op) { op["fields"][0]["default"] = "1 +"; })),
                HasSubstr("fields[0].default is no expression: "));
}

TEST(OpJson, RefusesIntegersBeyond64Bits) {
    EXPECT_THAT(error_of(changed([](Json& op) { op["fields"][0]["choices"] = Json{18446744073709551615ull}; })),
                HasSubstr("fields[0].choices[0] is beyond 64 bits"));
}

TEST(OpJson, RefusesPathsThatLeaveAFolder) {
    EXPECT_THAT(error_of(changed([](Json& op) { op["files"]["../x"] = ""; })),
                HasSubstr("holds the path '../x', which leaves the op's folder"));
    EXPECT_THAT(error_of(changed([](Json& op) { op["reference"]["cpp"] = "/etc/passwd"; })),
                HasSubstr("holds the path '/etc/passwd', which is absolute"));
}

}  // namespace
}  // namespace autotune

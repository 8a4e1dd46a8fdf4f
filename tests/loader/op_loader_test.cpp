#include "tuner/loader/op_loader.h"
#include "tuner/model/op_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "autotune/error.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const fs::path examples = AUTOTUNE_SOURCE_DIR "/tests/loader/ops";

const Op& example(std::string_view name) {
    static const std::vector<Op> ops = load_op_folder(examples);
    return *std::ranges::find(ops, name, &Op::name);
}

template <class List>
std::vector<std::string> names_of(const List& list) {
    std::vector<std::string> names;
    for (const auto& one : list) {
        if constexpr (requires { one.name; })
            names.push_back(one.name);
        else
            names.push_back(one.first);
    }
    return names;
}

/// An op with one field, one output and one variant, and places to add to.
std::string op_text(const std::string& name, const std::string& lets = {}, const std::string& kernel = {}) {
    return "format = 1\nop = \"" + name +
           "\"\nsummary = \"fills\"\n[problem]\nn = { dim = \"near\" }\n[[tensor]]\nname = \"y\"\nrole = "
           "\"out\"\ndtype = \"f32\"\n"
           "shape = [\"n\"]\n[let]\n" +
           lets +
           "[reference]\nkernel = \"plain\"\n[tolerance]\ny = { exact = true }\n[[kernel]]\nname = \"plain\"\nsource = "
           "\"a.cu\"\n" +
           "entry = \"fill\"\n" + kernel + "[[kernel.launch]]\ngrid = [1]\nblock = [32]\nargs = [\"y\"]\n";
}

Op load(const std::string& text) { return load_op(text, MemoryFiles{{{"a.cu", ""}}}, "x.toml"); }

// ---- What a file becomes.

TEST(OpLoader, LoadsTheExamplesOfTheFormat) {
    EXPECT_THAT(names_of(load_op_folder(examples)), ElementsAre("conv2d", "gemm", "paged_attention"));
}

TEST(OpLoader, KeepsTheOrderOfTheFile) {
    const Op& gemm = example("gemm");
    EXPECT_THAT(names_of(gemm.fields), ElementsAre("m", "n", "k", "dtype", "bias", "beta0", "act"));
    EXPECT_THAT(names_of(gemm.tensors), ElementsAre("a", "b", "bias", "c"));
    EXPECT_THAT(names_of(gemm.variants), ElementsAre("splitk", "naive"));
    EXPECT_THAT(names_of(gemm.variants[0].parameters), ElementsAre("BM", "BN", "BK", "STAGES", "SPLITS"));
    EXPECT_THAT(gemm.variants[0].parameters[4].values, ElementsAre(Value{std::int64_t{1}}, Value{std::int64_t{2}},
                                                                   Value{std::int64_t{4}}, Value{std::int64_t{8}}));
    EXPECT_THAT(names_of(gemm.variants[0].define), ElementsAre("T", "ACT", "BIAS"));
}

TEST(OpLoader, TellsWordsFromExpressions) {
    const Op& gemm = example("gemm");
    EXPECT_EQ(gemm.field("dtype")->fallback.constant_value(), Value{"bf16"});
    EXPECT_EQ(gemm.tensor("a")->role.constant_value(), Value{"in"});
    EXPECT_EQ(gemm.tensor("a")->dtype.bare_name(), "dtype");
    EXPECT_EQ(gemm.tensor("c")->role.text(), "beta0 ? 'out' : 'inout'");
    EXPECT_EQ(gemm.variants[0].scratch[0].dtype.constant_value(), Value{"f32"});
    EXPECT_EQ(example("paged_attention").tolerances[0].accumulate.constant_value(), Value{"fma"});
}

TEST(OpLoader, GivesLaunchesTheSourceAndEntryOfTheirVariant) {
    const Variant& naive = *example("gemm").variant("naive");
    EXPECT_EQ(naive.launches[0].entry, "gemm_naive");
    EXPECT_EQ(naive.launches[0].source, "gemm_naive.cu");
    EXPECT_EQ(example("gemm").variants[0].launches[1].entry, "gemm_sum");
    EXPECT_EQ(example("gemm").variants[0].launches[1].source, "gemm_mma.cu");
}

TEST(OpLoader, LetsATensorShareTheNameOfAField) {
    const Op& gemm = example("gemm");
    EXPECT_NE(gemm.field("bias"), nullptr);
    EXPECT_EQ(gemm.tensor("bias")->when.bare_name(), "bias");
    EXPECT_EQ(gemm.variants[0].launches[0].arguments[3].expression.bare_name(), "bias");
}

TEST(OpLoader, ReadsFillsTemplatesAndSymbols) {
    const Fill& pages = example("paged_attention").tensor("pages")->fill;
    EXPECT_EQ(pages.kind, "permutation");
    EXPECT_THAT(names_of(pages.arguments), ElementsAre("of"));
    EXPECT_EQ(pages.junk_beyond.text(), "ceil_div(lens, page)");
    const Variant& tiled = *example("conv2d").variant("tiled");
    EXPECT_TRUE(tiled.parameters_as_template);
    EXPECT_EQ(tiled.symbols[0].from, "filter");
    EXPECT_FALSE(tiled.symbols[0].each_launch);
    EXPECT_EQ(example("conv2d").reference.kernel, "naive");
}

TEST(OpLoader, SortsLetsSoThatEachUsesEarlierOnes) {
    const Op op = load(op_text("fill", "a = \"b + c\"\nb = \"c * 2\"\nc = \"n + 1\"\n"));
    EXPECT_THAT(names_of(op.lets), ElementsAre("c", "b", "a"));
}

TEST(OpLoader, TakesTheFirstValueForADefaultThatIsNotGiven) {
    const Op op = load(op_text("fill", "", "[kernel.parameters]\nblock_size_x = { values = [64, 32] }\n"));
    EXPECT_EQ(op.variants[0].parameters[0].fallback.constant_value(), Value{std::int64_t{64}});
}

TEST(OpLoader, TakesAnExpressionForADefault) {
    const Op op = load(op_text(
        "fill", "",
        "[kernel.parameters]\nVEC = { values = [1, 4], default = \"n % 4 == 0 and align(y) >= 16 ? 4 : 1\" }\n"));
    EXPECT_EQ(op.variants[0].parameters[0].fallback.text(), "n % 4 == 0 and align(y) >= 16 ? 4 : 1");
}

TEST(OpLoader, ReadsADeviceReference) {
    std::string text = op_text("fill");
    text.replace(text.find("[tolerance]"), 0,
                 "define = { N = \"n\" }\n[[reference.launch]]\nsource = \"a.cu\"\nentry = \"fill64\"\ngrid = "
                 "[1]\nblock = [32]\n"
                 "args = [\"value(y)\", \"magnitude( y )\", \"i32(n)\"]\n");
    const Op op = load(text);
    const LaunchSpec& launch = op.reference.launches.at(0);
    EXPECT_EQ(launch.arguments[0].kind, ArgumentSpec::Kind::reference_value);
    EXPECT_EQ(launch.arguments[1].kind, ArgumentSpec::Kind::reference_magnitude);
    EXPECT_EQ(launch.arguments[1].tensor, "y");
    EXPECT_EQ(op.reference.define[0].first, "N");
}

TEST(OpLoader, ReadsATensorMap) {
    std::string text = op_text("fill", "", "[kernel.parameters]\nBM = { values = [64] }\n");
    text.replace(text.find("args = [\"y\"]"), 12, "args = [{ tensor_map = \"y\", box = [\"BM\"], swizzle = 128 }]");
    const ArgumentSpec argument = load(text).variants[0].launches[0].arguments[0];
    EXPECT_EQ(argument.kind, ArgumentSpec::Kind::tensor_map);
    EXPECT_EQ(argument.box[0].text(), "BM");
    EXPECT_EQ(argument.swizzle, 128);
}

TEST(OpLoader, ReadsFilesWithWindowsLineEnds) {
    std::string text = op_text("fill");
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2))
        text.replace(at, 1, "\r\n");
    EXPECT_EQ(load(text).name, "fill");
}

// ---- The files of an op.

TEST(OpLoader, CollectsSourcesAndWhatTheyInclude) {
    EXPECT_THAT(names_of(example("gemm").files),
                ElementsAre("gemm.cpp", "gemm_mma.cu", "gemm_naive.cu", "parts/lane.cuh", "tile.cuh"));
}

TEST(OpLoader, FindsSharedHeadersAfterTheOpsOwn) {
    const MemoryFiles own{{{"a.cu", "#include \"one.cuh\"\n# include \"two.cuh\"\n"}, {"one.cuh", "own"}}};
    const MemoryFiles shared{{{"one.cuh", "shared"}, {"two.cuh", "shared"}}};
    LoadOptions options;
    options.shared = &shared;
    const Op op = load_op(op_text("fill"), own, "x.toml", options);
    EXPECT_EQ(op.files.at("one.cuh"), "own");
    EXPECT_EQ(op.files.at("two.cuh"), "shared");
}

TEST(OpLoader, RefusesASourceThatIncludesAFileOfTheMachine) {
    const MemoryFiles files{{{"a.cu", "#include \"b.cuh\"\n"}, {"b.cuh", "#include \"/etc/passwd\"\n"}}};
    try {
        load_op(op_text("x"), files, "x.toml");
        FAIL() << "it was loaded";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("x.toml:18:10: 'b.cuh' includes '/etc/passwd'; what an op includes is in its "
                              "folder"));
    }
}

// Goal: names that stand for names cannot overflow the stack.
TEST(OpLoader, BoundsHowManyLetsFollowEachOther) {
    const auto chain = [](int length) {
        std::string lets;
        for (int i = 0; i < length - 1; ++i)
            lets += "v" + std::to_string(i) + " = \"v" + std::to_string(i + 1) + "\"\n";
        return lets + "v" + std::to_string(length - 1) + " = 1\n";
    };
    EXPECT_EQ(load(op_text("x", chain(1024))).lets.size(), 1024u);
    EXPECT_THROW(load(op_text("x", chain(1025))), Error);
}

TEST(OpLoader, BoundsTheParametersOfAVariant) {
    const auto parameters = [](int count) {
        std::string text = "[kernel.parameters]\n";
        for (int i = 0; i < count; ++i) text += "P" + std::to_string(i) + " = { values = [1] }\n";
        return text;
    };
    EXPECT_EQ(load(op_text("x", {}, parameters(64))).variants[0].parameters.size(), 64u);
    EXPECT_THROW(load(op_text("x", {}, parameters(65))), Error);
}

// Goal: a source of any bytes makes no op that cannot be written as JSON. The compiler says that it lacks the header.
TEST(OpLoader, LeavesAnIncludeWhoseNameIsNoUtf8ToTheCompiler) {
    const MemoryFiles files{{{"a.cu", "#include \"h\xf6he.cuh\"\n"}, {"h\xf6he.cuh", "int height;\n"}}};
    const Op op = load_op(op_text("fill"), files, "x.toml");
    EXPECT_THAT(names_of(op.files), ElementsAre("a.cu"));
    EXPECT_EQ(op_to_json(op_from_json(op_to_json(op))), op_to_json(op));
}

TEST(OpLoader, EndsWithHeadersThatIncludeEachOther) {
    const MemoryFiles files{{{"a.cu", "#include \"b.cuh\"\n"}, {"b.cuh", "#include \"a.cu\"\n#include \"b.cuh\"\n"}}};
    EXPECT_THAT(names_of(load_op(op_text("fill"), files, "x.toml").files), ElementsAre("a.cu", "b.cuh"));
}

TEST(OpLoader, RefusesAnOpOfTooManyFiles) {
    std::map<std::string, std::string, std::less<>> files{{"a.cu", "#include \"0.cuh\"\n"}};
    for (int i = 0; i < 300; ++i)
        files[std::to_string(i) + ".cuh"] = "#include \"" + std::to_string(i + 1) + ".cuh\"\n";
    try {
        load_op(op_text("fill"), MemoryFiles{files}, "x.toml");
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("op 'fill' has more than 256 files"));
    }
}

// ---- Folders.

class OpFolder : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "autotune-ops-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        write("ops/a.cu", "");
    }
    void TearDown() override { fs::remove_all(folder_); }

    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((folder_ / path).parent_path());
        std::ofstream{folder_ / path} << text;
    }
    fs::path ops() const { return folder_ / "ops"; }
    std::string error_of(const LoadOptions& options = {}) const {
        try {
            load_op_folder(ops(), options);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::usage);
            std::string text = error.what();
            for (std::size_t at; (at = text.find(ops().string())) != std::string::npos;)
                text.replace(at, ops().string().size(), "OPS");
            return text;
        }
        return "no error";
    }

    fs::path folder_;
};

TEST_F(OpFolder, LoadsItsOpsByFileNameAndKnowsWhereTheyAreFrom) {
    write("ops/z.toml", op_text("first"));
    write("ops/b.toml", op_text("second"));
    write("ops/notes.txt", "no op");
    const auto loaded = load_op_folder(ops());
    EXPECT_THAT(names_of(loaded), ElementsAre("second", "first"));
    EXPECT_EQ(loaded[0].folder, ops().string());
    EXPECT_FALSE(loaded[0].builtin);
}

TEST_F(OpFolder, SaysWhenThereIsNoOpOrNoFolder) {
    EXPECT_EQ(error_of(), "there is no .toml file in 'OPS'; an op is one .toml and the sources it names");
    fs::remove_all(ops());
    EXPECT_EQ(error_of(), "the folder 'OPS' cannot be read: No such file or directory");
}

TEST_F(OpFolder, HasOneFileAnOp) {
    write("ops/a.toml", op_text("same"));
    write("ops/b.toml", op_text("same"));
    EXPECT_EQ(error_of(), "OPS/a.toml and OPS/b.toml both are op 'same'; a folder has one file an op");
}

TEST_F(OpFolder, RefusesALinkThatLeavesIt) {
    write("secret.cu", "");
    write("ops/a.toml", op_text("fill"));
    fs::remove(ops() / "a.cu");
    fs::create_symlink(folder_ / "secret.cu", ops() / "a.cu");
    EXPECT_THAT(error_of(), HasSubstr("OPS/a.toml:18:10: 'a.cu' is a link that leaves the op's folder\n"));
}

TEST_F(OpFolder, FollowsALinkThatStaysInside) {
    write("ops/a.toml", op_text("fill"));
    fs::rename(ops() / "a.cu", ops() / "real.cu");
    fs::create_symlink("real.cu", ops() / "a.cu");
    EXPECT_EQ(error_of(), "no error");
}

TEST_F(OpFolder, RefusesAFolderAndAPipeInPlaceOfASource) {
    write("ops/a.toml", op_text("fill"));
    fs::remove(ops() / "a.cu");
    fs::create_directory(ops() / "a.cu");
    EXPECT_THAT(error_of(), HasSubstr("'a.cu' is no regular file"));
}

TEST_F(OpFolder, MayItselfBeALink) {
    write("ops/a.toml", op_text("fill"));
    fs::create_directory_symlink(ops(), folder_ / "link");
    EXPECT_THAT(names_of(load_op_folder(folder_ / "link")), ElementsAre("fill"));
}

TEST_F(OpFolder, ExtendsAnOpOfTheSameFolderWhateverTheFilesAreCalled) {
    write("ops/z.toml", op_text("fill"));
    write("ops/b.cu", "");
    write("ops/a.toml",
          "format = 1\nextends = \"fill\"\n[let]\nhalf = \"n // 2\"\n[[kernel]]\nname = \"mine\"\nsource = \"b.cu\"\n"
          "entry = \"mine\"\n[[kernel.launch]]\ngrid = [\"half\"]\nblock = [32]\nargs = [\"y\"]\n");
    const auto loaded = load_op_folder(ops());
    ASSERT_EQ(loaded.size(), 1u);
    EXPECT_THAT(names_of(loaded[0].variants), ElementsAre("plain", "mine"));
    EXPECT_THAT(names_of(loaded[0].lets), ElementsAre("half"));
    EXPECT_THAT(names_of(loaded[0].files), UnorderedElementsAre("a.cu", "b.cu"));
}

TEST_F(OpFolder, KeepsTheHomeOfABuiltInOpThatItExtends) {
    Op builtin = load(op_text("fill"));
    builtin.builtin = true;
    LoadOptions options;
    options.known = [&](std::string_view name) { return name == "fill" ? &builtin : nullptr; };
    write("ops/a.toml",
          "format = 1\nextends = \"fill\"\n[[kernel]]\nname = \"mine\"\nsource = \"a.cu\"\nentry = \"mine\"\n"
          "[[kernel.launch]]\ngrid = [1]\nblock = [32]\nargs = [\"y\"]\n");
    const auto loaded = load_op_folder(ops(), options);
    EXPECT_TRUE(loaded[0].builtin);
    EXPECT_EQ(loaded[0].folder, "");
    write("ops/a.cu", "other");
    EXPECT_THAT(
        error_of(options),
        HasSubstr("OPS/a.toml:5:10: 'a.cu' is also a file of op 'fill', with another text; rename one of them"));
}

TEST_F(OpFolder, MayReplaceABuiltInOpAndKeepItsReference) {
    Op builtin = load(op_text("fill"));
    builtin.builtin = true;
    builtin.reference.cpp = "fill.cpp";
    LoadOptions options;
    options.known = [&](std::string_view name) { return name == "fill" ? &builtin : nullptr; };
    std::string text = op_text("fill");
    text.replace(text.find("kernel = \"plain\""), 16, "cpp = \"fill.cpp\"");
    write("ops/a.toml", text);
    const auto loaded = load_op_folder(ops(), options);
    EXPECT_EQ(loaded[0].reference.cpp, "fill.cpp");
    EXPECT_FALSE(loaded[0].files.contains("fill.cpp"));
    EXPECT_FALSE(loaded[0].builtin);
}

}  // namespace
}  // namespace autotune

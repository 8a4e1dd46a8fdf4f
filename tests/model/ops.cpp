#include "tests/model/ops.h"

namespace autotune::test {
namespace {

Field dim(std::string name, std::int64_t fallback, bool near = true) {
    Field field;
    field.name = std::move(name);
    field.near = near;
    field.fallback = Expression::constant(fallback);
    return field;
}

Field choice(std::string name, std::initializer_list<const char*> words, std::string fallback) {
    Field field;
    field.name = std::move(name);
    field.kind = Field::Kind::choice;
    for (const char* word : words) field.choices.emplace_back(std::string{word});
    field.fallback = Expression::constant(std::move(fallback));
    return field;
}

Field flag(std::string name, bool fallback, std::string_view from = "") {
    Field field;
    field.name = std::move(name);
    field.kind = Field::Kind::flag;
    field.fallback = Expression::constant(fallback);
    field.from = expression(from);
    return field;
}

Tensor tensor(std::string name, std::string_view role, std::initializer_list<std::string_view> shape) {
    Tensor out;
    out.name = std::move(name);
    out.role = role.find('?') == role.npos ? Expression::constant(std::string{role}) : expression(role);
    out.dtype = expression("dtype");
    out.shape = expressions(shape);
    return out;
}

Parameter parameter(std::string name, std::initializer_list<std::int64_t> values, std::string_view fallback) {
    Parameter out;
    out.name = std::move(name);
    for (const std::int64_t value : values) out.values.emplace_back(value);
    out.fallback = expression(fallback);
    return out;
}

LaunchSpec launch(std::string entry, std::initializer_list<std::string_view> grid,
                  std::initializer_list<std::string_view> block, std::initializer_list<std::string_view> arguments) {
    LaunchSpec out;
    out.entry = std::move(entry);
    out.grid = expressions(grid);
    out.block = expressions(block);
    for (const std::string_view text : arguments) out.arguments.push_back(argument(text));
    return out;
}

Variant splitk() {
    Variant out;
    out.name = "splitk";
    out.source = "gemm_mma.cu";
    out.needs = expression("cc >= 80 and dtype != 'f32' and min(align(a), align(b)) >= 16");
    out.define = {{"T", expression("dtype")}, {"ACT", expression("act")}, {"BIAS", expression("bias")}};
    out.parameters = {parameter("BM", {64, 128}, "128"), parameter("BN", {64, 128}, "128"),
                      parameter("BK", {32, 64}, "32"), parameter("STAGES", {2, 3, 4}, "3"),
                      parameter("SPLITS", {1, 2, 4, 8}, "2")};
    out.constraints = {{"each split has a step", expression("SPLITS <= steps")}};
    Scratch partial;
    partial.name = "partial";
    partial.dtype = Expression::constant(std::string{"f32"});
    partial.shape = expressions({"SPLITS", "m", "n"});
    partial.when = expression("SPLITS > 1");
    out.scratch = {partial};
    out.launches = {launch("gemm_part", {"ceil_div(n, BN)", "ceil_div(m, BM)", "SPLITS"}, {"256"},
                           {"a", "b", "SPLITS > 1 ? partial : c", "bias", "i32(m)", "i32(n)", "i32(k)", "i64(lda)",
                            "alpha", "beta"}),
                    launch("gemm_sum", {"ceil_div(m * n, 1024)"}, {"256"},
                           {"partial", "c", "bias", "i32(SPLITS)", "i32(m)", "i32(n)", "alpha", "beta"})};
    out.launches[0].shared = expression("STAGES * (BM + BN) * BK * sizeof(dtype)");
    out.launches[1].when = expression("SPLITS > 1");
    return out;
}

}  // namespace

Expression expression(std::string_view text) { return text.empty() ? Expression{} : Expression::parse(text); }

std::vector<Expression> expressions(std::initializer_list<std::string_view> texts) {
    std::vector<Expression> out;
    for (const std::string_view text : texts) out.push_back(expression(text));
    return out;
}

Value whole(std::int64_t value) { return value; }

ArgumentSpec argument(std::string_view text) {
    ArgumentSpec out;
    out.expression = expression(text);
    return out;
}

Op softmax_op() {
    Op op;
    op.name = "softmax";
    op.fields = {dim("rows", 4096), dim("cols", 1024), choice("dtype", {"f32", "f16", "bf16"}, "bf16")};
    op.tensors = {tensor("x", "in", {"rows", "cols"}), tensor("y", "out", {"rows", "cols"})};
    op.tensors[0].strides = expressions({"ldx", "1"});
    op.flops = expression("5 * rows * cols");
    op.bytes = expression("2 * rows * cols * sizeof(dtype)");
    op.tolerances = {{.tensor = "y",
                      .terms = expression("cols"),
                      .accumulate = Expression::constant(std::string{"fma"}),
                      .intermediate = {},
                      .absolute = {},
                      .relative = {}}};
    op.files = {{"softmax.cu", "#include \"common.cuh\"\n  #  include <cuda_fp16.h>\n"},
                {"common.cuh", "#include \"deep.cuh\"\n"},
                {"deep.cuh", "// deep\n"},
                {"other.cuh", "// not included\n"},
                {"naive.cu", "// naive\n"}};

    Variant online;
    online.name = "online";
    online.source = "softmax.cu";
    online.entry = "softmax_rows";
    online.define = {{"T", expression("dtype")}};
    online.parameters = {
        parameter("THREADS", {64, 128, 256, 512, 1024}, "256"),
        parameter("VEC", {1, 2, 4, 8}, "cols % 4 == 0 and min(align(x), align(y)) >= 4 * sizeof(dtype) ? 4 : 1")};
    online.constraints = {{"a row splits into whole vectors", expression("cols % VEC == 0")},
                          {"each load is aligned", expression("min(align(x), align(y)) >= VEC * sizeof(dtype)")}};
    online.launches = {launch("", {"rows"}, {"THREADS"}, {"x", "y", "i32(rows)", "i32(cols)", "i64(ldx)"})};

    Variant naive;
    naive.name = "naive";
    naive.source = "naive.cu";
    naive.entry = "softmax_naive";
    naive.define = {{"T", expression("dtype")}};
    naive.launches = {launch("", {"ceil_div(rows, 128)"}, {"128"}, {"x", "y", "i32(rows)", "i32(cols)", "i64(ldx)"})};
    op.variants = {online, naive};
    return op;
}

Op gemm_op() {
    Op op;
    op.name = "gemm";
    op.fields = {dim("m", 4096),
                 dim("n", 4096),
                 dim("k", 4096),
                 choice("dtype", {"f32", "f16", "bf16"}, "bf16"),
                 flag("bias", false),
                 flag("beta0", true, "beta == 0"),
                 choice("act", {"none", "relu", "gelu"}, "none")};
    op.scalars = {{.name = "alpha", .dtype = DType::f32, .fallback = 1.0, .check = {Value{1.0}, Value{0.5}}},
                  {.name = "beta", .dtype = DType::f32, .fallback = 0.0, .check = {}}};
    op.tensors = {tensor("a", "in", {"m", "k"}), tensor("b", "in", {"k", "n"}), tensor("bias", "in", {"n"}),
                  tensor("c", "beta0 ? 'out' : 'inout'", {"m", "n"})};
    op.tensors[0].strides = expressions({"lda", "1"});
    op.tensors[2].when = expression("bias");
    op.lets = {{"steps", expression("ceil_div(k, BK)")}};
    op.flops = expression("2 * m * n * k");
    op.bytes = expression("(m * k + k * n + m * n) * sizeof(dtype)");
    op.tolerances = {{.tensor = "c",
                      .terms = expression("k"),
                      .accumulate = expression("dtype == 'f32' ? 'fma' : 'mma'"),
                      .intermediate = {},
                      .absolute = {},
                      .relative = {}}};
    op.files = {{"gemm_mma.cu", "// mma\n"}, {"gemm_naive.cu", "// naive\n"}, {"gemm_reference.cu", "// fp64\n"}};

    Variant naive;
    naive.name = "naive";
    naive.source = "gemm_naive.cu";
    naive.entry = "gemm_naive";
    naive.define = {{"T", expression("dtype")}, {"ACT", expression("act")}, {"BIAS", expression("bias")}};
    naive.launches = {launch("", {"ceil_div(n, 16)", "ceil_div(m, 16)"}, {"16", "16"},
                             {"a", "b", "c", "bias", "i32(m)", "i32(n)", "i32(k)", "i64(lda)", "alpha", "beta"})};
    op.variants = {splitk(), naive};

    op.reference.define = {{"T", expression("dtype")}};
    op.reference.launches = {
        launch("gemm_reference", {"ceil_div(n, 16)", "ceil_div(m, 16)"}, {"16", "16"}, {"a", "b"})};
    op.reference.launches[0].source = "gemm_reference.cu";
    ArgumentSpec value, magnitude;
    value.kind = ArgumentSpec::Kind::reference_value;
    magnitude.kind = ArgumentSpec::Kind::reference_magnitude;
    value.tensor = magnitude.tensor = "c";
    op.reference.launches[0].arguments.push_back(value);
    op.reference.launches[0].arguments.push_back(magnitude);
    return op;
}

DeviceLimits hopper() {
    return {.cc = 90,
            .sm_count = 132,
            .max_shared = 232448,
            .shared_per_sm = 233472,
            .reserved_shared = 1024,
            .threads_per_sm = 2048,
            .blocks_per_sm_limit = 32,
            .l2_bytes = 50 << 20,
            .memory_bytes = std::int64_t{80} << 30};
}

DeviceLimits turing() {
    return {.cc = 75,
            .sm_count = 40,
            .max_shared = 65536,
            .shared_per_sm = 65536,
            .threads_per_sm = 1024,
            .blocks_per_sm_limit = 16,
            .l2_bytes = 4 << 20,
            .memory_bytes = std::int64_t{16} << 30};
}

std::vector<std::pair<std::string, Value>> fields(std::string_view text) { return config_from_text(text).values; }

}  // namespace autotune::test

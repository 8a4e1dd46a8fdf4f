#include "tuner/chains/chain_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "autotune/error.h"
#include "tuner/chains/chain_text.h"
#include "tuner/loader/op_loader.h"
#include "tuner/model/builtin_ops.h"

namespace autotune {
namespace {

/// `piece` once for each name, joined.
template <class Piece>
std::string each(const std::vector<std::string>& names, std::string_view between, Piece piece) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : std::string{between}) + piece(name);
    return all;
}

int operations_of(const ChainNode& node) {
    int count = node.step > ChainStep::scalar ? 1 : 0;
    for (const ChainNode& part : node.parts) count += operations_of(part);
    return count;
}

std::string macro_of(std::string_view name, std::string_view end) {
    std::string macro;
    for (const char c : name) macro += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    return fmt::format("IN_{}_{}", macro, end);
}

std::string problem_sections(const Chain& chain) {
    std::string text = fmt::format(R"text([problem]
chain = {{ text = true, default = "{}", about = "what is computed" }}
batch = {{ dim = "near", default = 1 }}
rows = {{ dim = "near", default = 16384 }}
cols = {{ dim = "near", default = 4096 }}
dtype = {{ one_of = ["f32", "f16", "bf16"], default = "bf16", about = "of all tensors for which nothing else is said" }}
y_dtype = {{ one_of = ["f32", "f16", "bf16"], default = "dtype" }}
)text",
                                   chain.text);
    for (const std::string& name : chain.inputs)
        text += fmt::format(R"text({0}_batch = {{ dim = "near", default = "batch" }}
{0}_rows = {{ dim = "near", default = "rows" }}
{0}_cols = {{ dim = "near", default = "cols" }}
{0}_dtype = {{ one_of = ["f32", "f16", "bf16"], default = "dtype" }}
)text",
                            name);
    text += fmt::format(R"text(
[[problem.constraint]]
claim = "the chain is the one that the op was made of"
holds = "chain == '{}'"
)text",
                        chain.text);
    for (const std::string& name : chain.inputs)
        for (const char* dim : {"batch", "rows", "cols"})
            text += fmt::format(R"text(
[[problem.constraint]]
claim = "{0}_{1} is 1 or {1}"
holds = "{0}_{1} in [1, {1}]"
)text",
                                name, dim);
    for (const std::string& name : chain.scalars)
        text += fmt::format(R"text(
[[scalar]]
name = "{}"
dtype = "f32"
default = 0.5
check = [0.5, 0.125]
)text",
                            name);
    if (chain.dropouts > 0)
        text += R"text(
[[scalar]]
name = "seed"
dtype = "i64"
default = 1
check = [1, 81985529216486895]

[[scalar]]
name = "offset"
dtype = "u32"
default = 0
check = [0, 7]
)text";
    return text;
}

std::string tensor_sections(const Chain& chain) {
    std::string text;
    for (const std::string& name : chain.inputs)
        text += fmt::format(R"text(
[[tensor]]
name = "{0}"
role = "in"
dtype = "{0}_dtype"
shape = ["{0}_batch", "{0}_rows", "{0}_cols"]
strides = ["{0}_batch_stride", "{0}_row_stride", 1]
)text",
                            name);
    text += fmt::format(R"text(
[[tensor]]
name = "y"
role = "out"
dtype = "y_dtype"
shape = ["batch", "rows", "cols"]
strides = ["y_batch_stride", "y_row_stride", 1]
may_alias = [{}]
)text",
                        each(chain.inputs, ", ", [](const std::string& name) { return fmt::format("\"{}\"", name); }));
    return text;
}

/// What is shared by the variants: where an input stands for all, what is packed, how wide a load may be. An input of
/// one element is read as one column, also where y has no more columns.
std::string let_section(const Chain& chain) {
    std::string text = "\n[let]\nelements = \"batch * rows * cols\"\n";
    for (const std::string& name : chain.inputs)
        text += fmt::format(R"text({0}_single = "{0}_batch * {0}_rows * {0}_cols == 1"
{0}_one_batch = "{0}_batch < batch"
{0}_one_row = "{0}_rows < rows"
{0}_one_col = "{0}_cols < cols or {0}_single and elements > 1"
{0}_full = "{0}_batch == batch and {0}_rows == rows and {0}_cols == cols"
)text",
                            name);
    text += fmt::format("packed = \"contiguous(y){}\"\n", each(chain.inputs, "", [](const std::string& name) {
                            return fmt::format(" and ({0}_single or {0}_full and contiguous({0}))", name);
                        }));
    // Elements that a load may have: a wider one is made of pieces of 16 bytes.
    const auto widest = [](const std::string& name) {
        return fmt::format("({0}_one_col or {0}_single or align({0}) == 16 ? 16 : align({0}) // sizeof({0}_dtype))",
                           name);
    };
    text += fmt::format("fits = \"min(align(y) == 16 ? 16 : align(y) // sizeof(y_dtype), {})\"\n",
                        each(chain.inputs, ", ", widest));
    text += fmt::format(
        "largest = \"max(sizeof(y_dtype), {})\"\n",
        each(chain.inputs, ", ", [](const std::string& name) { return fmt::format("sizeof({}_dtype)", name); }));
    text += R"text(usual = "min(fits, 16 // largest)"
even = "cols % 16 == 0 ? 16 : cols % 8 == 0 ? 8 : cols % 4 == 0 ? 4 : cols % 2 == 0 ? 2 : 1"
usual_of_row = "min(usual, even)"
across = "min(256, pow2(ceil_div(cols, usual_of_row)))"
# Of a config: how far apart the rows of a thread are.
apart = "max(VEC, 32 // sizeof(y_dtype))"

)text";
    return text;
}

std::string check_section(const Chain& chain) {
    struct Sizes {
        int batch, rows, cols;
    };
    const auto problem = [&](const Sizes& y, const std::string& other, const Sizes& of_other) {
        std::string text = fmt::format("    {{ batch = {}, rows = {}, cols = {}", y.batch, y.rows, y.cols);
        for (const std::string& name : chain.inputs) {
            const Sizes& size = name == other ? of_other : y;
            text += fmt::format(", {0}_batch = {1}, {0}_rows = {2}, {0}_cols = {3}", name, size.batch, size.rows,
                                size.cols);
        }
        return text + " },\n";
    };
    std::string text = "[check]\nproblems = [\n";
    for (const Sizes& y :
         {Sizes{1, 7, 1}, Sizes{1, 1, 2}, Sizes{1, 33, 33}, Sizes{3, 5, 127}, Sizes{2, 3, 4096}, Sizes{1, 1, 4097}})
        text += problem(y, {}, y);
    for (const std::string& name : chain.inputs)
        for (const Sizes& one : {Sizes{1, 1, 264}, Sizes{2, 6, 1}, Sizes{1, 6, 264}, Sizes{1, 1, 1}})
            text += problem({2, 6, 264}, name, one);
    return text + "]\n";
}

/// flat: y is one row. ragged: its rows start anywhere, as those of an odd length do.
enum class Layout { ragged, flat, rows };

std::string parameters_of(Layout layout) {
    switch (layout) {
        case Layout::flat:
            return R"text(BX = { values = [128, 256, 512, 1024], default = 256, about = "threads a block" }
VEC = { values = [1, 2, 4, 8, 16], default = "usual", about = "elements a load" }
)text";
        case Layout::ragged:
            return R"text(BX = { values = [32, 64, 128, 256, 512], default = 64, about = "threads along a row" }
BY = { values = [1, 2, 4, 8, 16], default = 2, about = "threads across rows" }
VEC = { values = [2, 4, 8, 16], default = "min(16, 32 // largest)", about = "elements a load" }
)text";
        default:
            return R"text(BX = { values = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], default = "across", about = "threads along a row" }
BY = { values = [1, 2, 4, 8, 16, 32, 64, 128, 256], default = "256 // across", about = "threads across rows" }
VEC = { values = [1, 2, 4, 8, 16], default = "usual_of_row", about = "elements a load" }
)text";
    }
}

std::string variant_text(const Chain& chain, Layout layout) {
    const bool flat = layout == Layout::flat, ragged = layout == Layout::ragged;
    const auto define = [](const std::string& name) {
        return fmt::format("{} = \"{}_dtype\", {} = \"{}_one_batch\", {} = \"{}_one_row\", {} = \"{}_one_col\"",
                           macro_of(name, "T"), name, macro_of(name, "ONE_BATCH"), name, macro_of(name, "ONE_ROW"),
                           name, macro_of(name, "ONE_COL"), name);
    };
    const auto strides = [](const std::string& name) {
        return fmt::format("\"{0}\", \"i64({0}_batch_stride)\", \"i64({0}_row_stride)\"", name);
    };
    std::string arguments = strides("y");
    for (const std::string& name : chain.inputs) arguments += ", " + strides(name);
    for (const std::string& name : chain.scalars) arguments += fmt::format(", \"{}\"", name);
    if (chain.dropouts > 0) arguments += ", \"seed\", \"offset\"";
    std::string text = fmt::format(R"text([[kernel]]
name = "{}"
source = "{}.cu"
entry = "{}"
)text",
                                   ragged ? "ragged"
                                   : flat ? "flat"
                                          : "rows",
                                   chain.name, chain.name);
    if (flat) text += "needs = \"packed\"\n";
    if (ragged)
        text += "needs = \"usual_of_row < 16 // largest and cols >= 64 and (batch == 1 or contiguous(y))\"\n";
    text += fmt::format(
        R"text(define = {{ FLAT = "{}", RAGGED = "{}", EVEN = "{}", NARROW = "sizeof(y_dtype) == 2", ONE_BATCH = "batch == 1", Y_T = "y_dtype", {} }}
spill_bytes = 0

[kernel.parameters]
)text",
        flat ? "1 == 1" : "1 == 0", ragged ? "1 == 1" : "1 == 0",
        ragged ? "1 == 0"
        : flat ? "elements % 16 == 0"
               : "cols % 16 == 0",
        each(chain.inputs, ", ", define));
    text += parameters_of(layout);
    text += fmt::format(R"text(ITEMS = {{ values = [1, 2, 4, 8], default = {}, about = "{}" }}
)text",
                        ragged ? 1 : 2, flat ? "loads a thread" : "rows a thread");
    if (!ragged)
        text += R"text(
[[kernel.constraint]]
claim = "loads are aligned"
holds = "VEC <= fits"
)text";
    text += fmt::format(R"text(
[[kernel.constraint]]
claim = "a thread holds at most 128 elements"
holds = "{} * VEC * ITEMS <= 128 or VEC * ITEMS == 1"
)text",
                        chain.inputs.size());
    const std::string_view grid =
        ragged ? "ceil_div(cols + apart - 1, BX * VEC) * ceil_div(ceil_div(batch * rows, apart * ITEMS) * apart, BY)"
        : flat ? "ceil_div(elements, BX * VEC * ITEMS)"
               : "ceil_div(cols, BX * VEC) * ceil_div(batch * rows, BY * ITEMS)";
    if (ragged)
        text += R"text(
[[kernel.constraint]]
claim = "a load has at least 4 bytes"
holds = "VEC * largest >= 4"

[[kernel.constraint]]
claim = "rows are counted in 32 bits"
holds = "ceil_div(batch * rows, apart * ITEMS) * apart + BY <= 4294967296"
)text";
    if (layout == Layout::rows)
        text += R"text(
[[kernel.constraint]]
claim = "rows are made of whole vectors"
holds = "VEC <= even"
)text";
    if (!flat)
        text += R"text(
[[kernel.constraint]]
claim = "a block has 128 to 1024 threads"
holds = "128 <= BX * BY <= 1024"

[[kernel.constraint]]
claim = "at least half of the threads along a row have a load"
holds = "BX == 1 or BX * VEC < 2 * cols"
)text";
    text += fmt::format(R"text(
[[kernel.constraint]]
claim = "a grid has at most 2^31 - 1 blocks"
holds = "{0} <= 2147483647"

[[kernel.launch]]
grid = ["{0}"]
block = [{1}]
args = [{2}, "i64(batch)", "i64(rows)", "i64(cols)"]
)text",
                        grid, flat ? "\"BX\"" : "\"BX\", \"BY\"", arguments);
    return text;
}

/// The parameters of chain() in a kernel of numbers F.
std::string chain_function(const Chain& chain) {
    std::vector<std::string> parameters;
    for (const std::string& name : chain.inputs) parameters.push_back("F in_" + name);
    for (const std::string& name : chain.scalars) parameters.push_back("F given_" + name);
    for (std::size_t i = 0; i < chain.dropouts; ++i) parameters.push_back(fmt::format("unsigned bits_{}", i));
    return fmt::format(R"text(template <class F>
__device__ __forceinline__ F chain({}) {{
    return {};
}}
)text",
                       each(parameters, ", ", [](const std::string& one) { return one; }), code_of(chain));
}

/// What a kernel takes beside y.
std::string kernel_parameters(const Chain& chain) {
    std::string text;
    for (const std::string& name : chain.inputs)
        text += fmt::format("const {1}* {0}, long long {0}_batch_stride, long long {0}_row_stride,\n        ",
                            "at_" + name, macro_of(name, "T"));
    for (const std::string& name : chain.scalars) text += fmt::format("float given_{}, ", name);
    if (chain.dropouts > 0) text += "long long seed, unsigned offset, ";
    return text + "long long batch, long long rows, long long cols";
}

}  // namespace

std::string chain_toml(const Chain& chain) {
    std::string text = fmt::format(R"text(format = 1
op = "{}"
summary = "y = {}"

)text",
                                   chain.name, chain.text);
    text += problem_sections(chain) + tensor_sections(chain) + let_section(chain);
    std::string inputs, reference_arguments;
    for (const std::string& name : chain.inputs) {
        inputs += fmt::format(" + {0}_batch * {0}_rows * {0}_cols * sizeof({0}_dtype)", name);
        reference_arguments += fmt::format("\"{0}\", \"i64({0}_batch_stride)\", \"i64({0}_row_stride)\", ", name);
    }
    for (const std::string& name : chain.scalars) reference_arguments += fmt::format("\"{}\", ", name);
    if (chain.dropouts > 0) reference_arguments += "\"seed\", \"offset\", ";
    text += fmt::format(
        R"text([work]
flops = "{} * batch * rows * cols"
bytes = "batch * rows * cols * sizeof(y_dtype){}"

[reference]
cpp = "{}"
define = {{ NARROW = "sizeof(y_dtype) == 2", {} }}

[[reference.launch]]
source = "{}_reference.cu"
entry = "{}_reference"
grid = ["min(ceil_div(elements, 256), 1048576)"]
block = [256]
args = ["value(y)", "magnitude(y)", {}"i64(batch)", "i64(rows)", "i64(cols)"]

# The magnitude is a bound in units of 2^-23: kernel_templates/bounded.cuh adds it up.
[tolerance]
y = {{ terms = "1", accumulate = "fma" }}

)text",
        operations_of(chain.root), inputs, chain_reference,
        each(chain.inputs, ", ",
             [](const std::string& name) {
                 return fmt::format(
                     "{0} = \"{1}_dtype\", {2} = \"{1}_one_batch\", {3} = \"{1}_one_row\", {4} = \"{1}_one_col\"",
                     macro_of(name, "T"), name, macro_of(name, "ONE_BATCH"), macro_of(name, "ONE_ROW"),
                     macro_of(name, "ONE_COL"));
             }),
        chain.name, chain.name, reference_arguments);
    return text + check_section(chain) + "\n" + variant_text(chain, Layout::ragged) + "\n" +
           variant_text(chain, Layout::flat) + "\n" + variant_text(chain, Layout::rows);
}

std::string chain_source(const Chain& chain) {
    std::string text = fmt::format(R"text(// {0}: y = {1}
//
// Made of that text. Tensors are [batch, rows, cols]; each has a stride for batch and row.
#include "elementwise.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#if FLAT
#define BY 1
#endif

{2}
extern "C" __global__ void __launch_bounds__(BX * BY)
    {0}(
        Y_T* at_y, long long at_y_batch_stride, long long at_y_row_stride,
        {3}) {{
    constexpr bool whole = EVEN, one_column = !FLAT;  // of a thread's vectors
    const Extents extents{{batch, rows, cols}};
    const Result<Y_T> y{{at_y, at_y_batch_stride, at_y_row_stride}};
)text",
                                   chain.name, chain.text, chain_function(chain), kernel_parameters(chain));
    for (const std::string& name : chain.inputs)
        text += fmt::format(
            "    const Operand<{1}, {2}, {3}, {4}> in_{0}{{\n        at_{0}, at_{0}_batch_stride, "
            "at_{0}_row_stride}};\n",
            name, macro_of(name, "T"), macro_of(name, "ONE_BATCH"), macro_of(name, "ONE_ROW"),
            macro_of(name, "ONE_COL"));
    text += R"text(
    // 1. All loads are issued before the first is used.
    Site site[ITEMS];
)text";
    for (const std::string& name : chain.inputs)
        text += fmt::format("    Pieces<{}, VEC> raw_{}[ITEMS];\n", macro_of(name, "T"), name);
    text += R"text(#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
#if FLAT
        site[k] = site_of_row<BX, VEC, ITEMS>(extents, k);
#elif RAGGED
        site[k] = site_of_ragged<BX, BY, VEC, ITEMS, ONE_BATCH>(extents, at_y, at_y_row_stride, k);
#else
        site[k] = site_of_tile<BX, BY, VEC, ITEMS, ONE_BATCH>(extents, k);
#endif
)text";
    for (const std::string& name : chain.inputs)
        text += fmt::format(R"text(        raw_{0}[k] = one_column && k > 0 && {1} && ({2} || ONE_BATCH)
                         ? raw_{0}[0]
                         : in_{0}.load<VEC, whole, RAGGED>(site[k]);
)text",
                            name, macro_of(name, "ONE_ROW"), macro_of(name, "ONE_BATCH"));
    text += R"text(    }

    // 2. The chain, an element at a time.
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        float result[VEC];
)text";
    for (const std::string& name : chain.inputs)
        text += fmt::format("        float x_{0}[VEC];\n        in_{0}.to_floats(raw_{0}[k], x_{0});\n", name);
    if (chain.dropouts > 0)
        text += "        const long long index = (site[k].batch * rows + site[k].row) * cols + site[k].col;\n";
    for (std::size_t i = 0; i < chain.dropouts; ++i)
        text += fmt::format(
            "        unsigned bits_{0}[VEC];\n        draw<VEC, FLAT || whole>(seed, offset, {0}, index, bits_{0});\n", i);
    std::string arguments =
        each(chain.inputs, ", ", [](const std::string& name) { return fmt::format("x_{}[j]", name); });
    for (const std::string& name : chain.scalars) arguments += ", given_" + name;
    for (std::size_t i = 0; i < chain.dropouts; ++i) arguments += fmt::format(", bits_{}[j]", i);
    text += fmt::format(R"text(#pragma unroll
        for (int j = 0; j < VEC; ++j) result[j] = chain<float>({});
        y.store<VEC, whole>(site[k], result);
    }}
}}
)text",
                        arguments);
    return text;
}

std::string chain_reference_source(const Chain& chain) {
    std::string text =
        fmt::format(R"text(// {0} in double: what stands in for the CPU reference where that would take seconds
//
// value, magnitude  double, packed: the result, and its error bound in units of 2^-24
// launch            grid = any, block = 256
#include "elementwise.cuh"
#include "bounded.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif

{1}
extern "C" __global__ void __launch_bounds__(256)
    {0}_reference(
        double* value, double* magnitude,
        {2}) {{
    const long long elements = batch * rows * cols;
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < elements; i += gridDim.x * 256ll) {{
        const long long b = i / cols / rows, r = i / cols % rows, c = i % cols;
)text",
                    chain.name, chain_function(chain), kernel_parameters(chain));
    for (const std::string& name : chain.inputs)
        text += fmt::format(
            "        const Bounded in_{0}{{to_float(at_{0}[({1} ? 0 : b * at_{0}_batch_stride) + ({2} ? 0 : r * "
            "at_{0}_row_stride) + ({3} ? 0 : c)]), 0.0}};\n",
            name, macro_of(name, "ONE_BATCH"), macro_of(name, "ONE_ROW"), macro_of(name, "ONE_COL"));
    for (std::size_t i = 0; i < chain.dropouts; ++i)
        text +=
            fmt::format("        const unsigned bits_{0} = random_bits_of(seed, offset, {0}, i);\n", i);
    std::string arguments = each(chain.inputs, ", ", [](const std::string& name) { return "in_" + name; });
    for (const std::string& name : chain.scalars) arguments += fmt::format(", Bounded{{given_{}, 0.0}}", name);
    for (std::size_t i = 0; i < chain.dropouts; ++i) arguments += fmt::format(", bits_{}", i);
    text += fmt::format(R"text(        const Bounded y = chain<Bounded>({});
        value[i] = y.value;
        magnitude[i] = y.error * 0x1p24;
    }}
}}
)text",
                        arguments);
    return text;
}

Op chain_op(std::string_view text) {
    const Chain chain = Chain::parse(text);
    const MemoryFiles own{
        {{chain.name + ".cu", chain_source(chain)}, {chain.name + "_reference.cu", chain_reference_source(chain)}}};
    const MemoryFiles shared{builtin_files()};
    try {
        return load_op(chain_toml(chain), own, chain.name + ".toml",
                       {.shared = &shared, .linked = [](std::string_view file) { return file == chain_reference; }});
    } catch (const Error& error) {  // two names that mean the same in an op, mostly
        throw Error{Error::Kind::usage,
                    fmt::format("no op can be made of the chain '{}': {}", chain.text, error.what()),
                    "take other names for its tensors"};
    }
}

std::vector<std::string> add_chain(OpSet& ops, std::string_view text) {
    Op op = chain_op(text);
    for (const Op* other : ops.added())
        if (other->name == op.name)
            throw Error{Error::Kind::usage, fmt::format("two ops are called '{}'", op.name),
                        fmt::format("give one of them a name of its own: '{}_2 = ...'", op.name)};
    std::vector<Op> one;
    one.push_back(std::move(op));
    return ops.add(std::move(one));
}

}  // namespace autotune

#include "tuner/loader/format.h"

#include <fmt/format.h>

#include <array>

namespace autotune {
namespace {

using enum KeyType;

constexpr std::string_view roles = "in out inout scratch";

constexpr auto sections = std::to_array<SectionRow>({
    {"the top",
     "What the file is. `op` says a new op; the name of a built-in op replaces it, with a note. `extends` adds "
     "variants to an op that there is: beside it stand only `format`, `summary`, `[let]` and `[[kernel]]`."},
    {"[problem]",
     "One line a field: `NAME = { ... }`, with exactly one of `dim`, `one_of`, `flag` and `text`. The fields are "
     "the key under which a result is stored. `[[problem.constraint]]` says which problems are legal."},
    {"[[problem.constraint]]", "A legal problem. One that violates it is bad input, not a config that fails."},
    {"[[scalar]]", "A value given at launch that is no part of the key."},
    {"[[tensor]]",
     "What the kernels read and write. A tensor's `align` (min(16, the largest power of two that divides its pointer "
     "and "
     "every stride in bytes but the last)) and `layout` (contiguous, pitched, other) are key fields too."},
    {"fill", "What an input is filled with: a word (`fill = \"normal\"`, the default) or `{ kind = ..., ... }`."},
    {"[let]", "`NAME = expression`: shared names. They may use each other in any order; a cycle is an error."},
    {"[work]",
     "What the op must do at least. Without it there is no floor test and no roofline. `sum(lens)` may read an integer "
     "input here and nowhere else."},
    {"[reference]",
     "What a result is judged by: exactly one of `cpp`, `kernel` and `npy`. Built-in C++ references are linked in; a "
     "user's is compiled with the system's compiler when its folder is named by `--ops`: that is the consent."},
    {"[[reference.launch]]",
     "A plain fp64 kernel that stands in where the C++ reference would take seconds. It is checked against the C++ "
     "reference before it is believed. Its `args` may also say `value(c)` and `magnitude(c)`: arrays of double in "
     "the shape of the output c."},
    {"[inputs]", "C++ that makes inputs whose sizes or contents a fill cannot say. The same ABI as a reference's."},
    {"[tolerance]",
     "One line an output: `y = { ... }` with `terms` and `accumulate`, or `abs` and `rel`, or `exact = true`. With S "
     "the "
     "sum of the magnitudes of an element's terms, the bound of its error is u(out) * |y| + acc * S + u(intermediate) "
     "* S "
     "+ rel * |y| + abs + the smallest subnormal of out; acc is 2 * sqrt(terms) * 2^-24 for `fma` and (terms / 16, "
     "rounded "
     "up) * 2^-23 for `mma`."},
    {"[check]", "What the second check of a winner also tries, beside its own ragged sizes."},
    {"[[kernel]]",
     "One variant: a way to compute the op. Variants are tried in file order; the default config is that of the first "
     "whose `needs` and constraints hold at its defaults, and the last must hold for every legal problem."},
    {"[kernel.parameters]",
     "One line a parameter: `NAME = { values = [...], ... }`. Each becomes a macro of that name (a boolean as 1 or "
     "0)."},
    {"[[kernel.constraint]]", "What a config must satisfy; the claim is what people read when it does not."},
    {"[[kernel.scratch]]",
     "Memory that the launches share. It belongs to the launch sequence, and so does its zeroing."},
    {"[[kernel.symbol]]", "A `__constant__` or `__device__` variable that is filled from a tensor."},
    {"[[kernel.launch]]", "The launches of a variant, in order."},
    {"a tensor map",
     "An argument of a launch that the device makes from a tensor: `{ tensor_map = \"a\", box = [\"BM\", \"BK\"], "
     "swizzle = 128 }`."},
});

constexpr auto keys = std::to_array<KeyRow>({
    {"the top", "format", integer, true, "", "1, the version of this format"},
    {"the top", "op", name, false, "", "the op's name"},
    {"the top", "extends", name, false, "", "instead of `op`: the op that gets more variants"},
    {"the top", "summary", text, false, "", "one line that says what is computed; required with `op`"},
    {"the top", "problem", table, false, "", ""},
    {"the top", "scalar", tables, false, "", ""},
    {"the top", "tensor", tables, false, "", ""},
    {"the top", "let", table, false, "", ""},
    {"the top", "work", table, false, "", ""},
    {"the top", "reference", table, false, "", ""},
    {"the top", "inputs", table, false, "", ""},
    {"the top", "tolerance", table, false, "", ""},
    {"the top", "check", table, false, "", ""},
    {"the top", "kernel", tables, false, "", ""},

    {"[problem]", "dim", word, false, "near exact",
     "a size of at least 1; `near`: a result for a similar size may stand in"},
    {"[problem]", "one_of", values, false, "", "the choices"},
    {"[problem]", "flag", flag, false, "", "`flag = true`: a field that is true or false"},
    {"[problem]", "text", flag, false, "", "`text = true`: a text of at most 4 KiB, which never reaches a compiler"},
    {"[problem]", "default", expression, false, "", "what it is when nothing is said; may use earlier fields"},
    {"[problem]", "about", text, false, "", "what it means"},
    {"[problem]", "key", flag, false, "", "`key = false`: it only fills inputs and is no part of the key"},
    {"[problem]", "from", expression, false, "",
     "what it follows from: an expression over scalars (`\"beta == 0\"`), or `\"inputs\"`: the input generator sets "
     "it"},

    {"[[problem.constraint]]", "claim", text, true, "", "what must be so, in words"},
    {"[[problem.constraint]]", "holds", expression, true, "", "the same as an expression over fields"},

    {"[[scalar]]", "name", name, true, "", "its name"},
    {"[[scalar]]", "dtype", word, true, "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 u32 bool", "its type"},
    {"[[scalar]]", "default", value, true, "", "its value when nothing is said, and the one that is timed"},
    {"[[scalar]]", "check", values, false, "", "values that a check also tries"},

    {"[[tensor]]", "name", name, true, "",
     "its name; it may be that of a field (`bias`): then `args`, `align`, `contiguous` and `sum` mean the tensor, all "
     "else the field"},
    {"[[tensor]]", "role", expression, true, roles, "`in`, `out`, `inout`, `scratch`, or an expression that chooses"},
    {"[[tensor]]", "dtype", expression, true, "", "an element type, or an expression that gives one: often a field"},
    {"[[tensor]]", "shape", expressions, true, "",
     "row-major; dims are solved from bare names at a call, other expressions are checked"},
    {"[[tensor]]", "strides", expressions, false, "",
     "in elements; a bare name that is none of the problem and that a launch is given (an argument such as `i64(ldx)`, "
     "or "
     "a tensor map of the tensor) is free; packed without this key"},
    {"[[tensor]]", "when", expression, false, "", "whether it is there; an absent tensor is a null pointer"},
    {"[[tensor]]", "may_alias", names, false, "", "tensors that may be the same memory"},
    {"[[tensor]]", "fill", text_or_table, false, "", "what an input holds, see below"},
    {"[[tensor]]", "key", flag, false, "", "`key = false`: its alignment and layout are no part of the key"},

    {"fill", "kind", word, true, "normal uniform constant int permutation sorted lengths special",
     "the kind of values"},
    {"fill", "low", expression, false, "", "of `uniform`, `int` and `sorted`: the least"},
    {"fill", "high", expression, false, "", "of `uniform`, `int` and `sorted`: the greatest"},
    {"fill", "value", expression, false, "", "of `constant`: the value"},
    {"fill", "of", expression, false, "", "of `permutation`: of how many"},
    {"fill", "max", expression, false, "", "of `lengths`: the longest"},
    {"fill", "like", expression, false, "", "of `lengths`: `full`, `uniform` or `skewed`, or a field that says it"},
    {"fill", "zeros", expression, false, "", "of `lengths`: whether some are 0"},
    {"fill", "junk_beyond", expression, false, "",
     "elements of a row (the last dimension) from here on must not be read, and hold junk; may name an integer input, "
     "whose elements are spread evenly over the rows"},

    {"[work]", "flops", expression, false, "", "operations"},
    {"[work]", "bytes", expression, false, "", "the traffic that no kernel can avoid"},

    {"[reference]", "cpp", file, false, "", "a C++ file, written against `autotune/reference.hpp`"},
    {"[reference]", "kernel", name, false, "", "a variant of this file that is plain enough to be believed"},
    {"[reference]", "npy", table, false, "", "`{ y = \"golden.npy\" }`: an array file for each output"},
    {"[reference]", "define", table, false, "", "macros of the device reference, as a variant's"},
    {"[reference]", "launch", tables, false, "", ""},

    {"[[reference.launch]]", "source", file, true, "", "a .cu file"},
    {"[[reference.launch]]", "entry", text, true, "", "the kernel in it"},
    {"[[reference.launch]]", "when", expression, false, "", "whether it runs"},
    {"[[reference.launch]]", "grid", expressions, true, "", "blocks: x, y, z"},
    {"[[reference.launch]]", "block", expressions, true, "", "threads a block: x, y, z"},
    {"[[reference.launch]]", "shared", expression, false, "", "dynamic shared memory, bytes"},
    {"[[reference.launch]]", "args", expressions, true, "", "as of a variant's launch, and `value(c)`, `magnitude(c)`"},

    {"[inputs]", "cpp", file, true, "",
     "a C++ file that says `AUTOTUNE_INPUTS(op)`, and `AUTOTUNE_SIZES(op)` where dims come `from = \"inputs\"`"},

    {"[tolerance]", "terms", expression, false, "", "how many terms an element sums"},
    {"[tolerance]", "accumulate", expression, false, "fma mma",
     "`fma`, `mma` (tensor cores), or an expression that chooses"},
    {"[tolerance]", "intermediate", expression, false, "", "an element type to which the kernel rounds on the way"},
    {"[tolerance]", "abs", expression, false, "", "absolute"},
    {"[tolerance]", "rel", expression, false, "", "relative to the reference"},
    {"[tolerance]", "exact", flag, false, "", "`exact = true`: every bit"},

    {"[check]", "problems", tables, false, "",
     "an array of problems: `[{ rows = 1, cols = 1 }, ...]`; fields left out take those of the problem at hand"},

    {"[[kernel]]", "name", name, true, "", "the variant's name"},
    {"[[kernel]]", "source", file, false, "", "a .cu file: of each launch that names none"},
    {"[[kernel]]", "entry", text, false, "", "a kernel in it: of each launch that names none"},
    {"[[kernel]]", "include", names, false, "",
     "headers that the sources find, beside those that they include by a quoted name"},
    {"[[kernel]]", "needs", expression, false, "", "where it can run at all, over problem and device"},
    {"[[kernel]]", "define", table, false, "",
     "`{ T = \"dtype\", D = \"head_dim\" }`: what of the problem becomes a macro. With the parameters it is all of "
     "problem and config that a binary depends on"},
    {"[[kernel]]", "parameters_as", word, false, "macros template",
     "`template`: they are template arguments, with `entry = \"ns::conv<{T}, {BX}>\"`"},
    {"[[kernel]]", "parameters", table, false, "", ""},
    {"[[kernel]]", "constraint", tables, false, "", ""},
    {"[[kernel]]", "scratch", tables, false, "", ""},
    {"[[kernel]]", "symbol", tables, false, "", ""},
    {"[[kernel]]", "launch", tables, true, "", ""},
    {"[[kernel]]", "options", names, false, "",
     "options of the compiler: floating point, optimisation, warnings, `-D`; none that names a file"},
    {"[[kernel]]", "arch", text, false, "", "`sm_90a`: compile for this and no other"},
    {"[[kernel]]", "spill_bytes", integer, false, "", "spills allowed; no limit without this key"},
    {"[[kernel]]", "pipelined", flag, false, "",
     "a remark of ptxas that an asynchronous path was serialised ends a candidate"},
    {"[[kernel]]", "deterministic", flag, false, "", "equal inputs give equal bits; true unless said"},
    {"[[kernel]]", "idempotent", flag, false, "", "running it again changes nothing; true unless said"},

    {"[kernel.parameters]", "values", values, true, "", "of one kind: integers, floats, booleans, or words"},
    {"[kernel.parameters]", "default", expression, false, "",
     "one of them, or an expression over problem and device that gives one; the first without this key"},
    {"[kernel.parameters]", "about", text, false, "", "what it means"},

    {"[[kernel.constraint]]", "claim", text, true, "", "what must be so, in words"},
    {"[[kernel.constraint]]", "holds", expression, true, "",
     "the same as an expression over problem, device and parameters"},

    {"[[kernel.scratch]]", "name", name, true, "", "its name in `args`"},
    {"[[kernel.scratch]]", "dtype", expression, true, "", "its element type"},
    {"[[kernel.scratch]]", "shape", expressions, true, "", "its extents"},
    {"[[kernel.scratch]]", "when", expression, false, "", "whether it is there"},
    {"[[kernel.scratch]]", "start", word, false, "undefined zero",
     "`zero`: it is cleared before the launches, as a timed part of the sequence"},

    {"[[kernel.symbol]]", "name", text, true, "", "the variable, as the source spells it"},
    {"[[kernel.symbol]]", "from", name, true, "", "the tensor"},
    {"[[kernel.symbol]]", "copy", word, true, "prepare launch",
     "`prepare`: once a problem, untimed; `launch`: each time, on the stream, timed"},

    {"[[kernel.launch]]", "source", file, false, "", "a .cu file; the variant's without this key"},
    {"[[kernel.launch]]", "entry", text, false, "", "a kernel in it; the variant's without this key"},
    {"[[kernel.launch]]", "when", expression, false, "", "whether it runs"},
    {"[[kernel.launch]]", "repeat", expression, false, "", "how many times in a row"},
    {"[[kernel.launch]]", "grid", expressions, true, "", "blocks: x, y, z; `blocks_per_sm` is a name here only"},
    {"[[kernel.launch]]", "block", expressions, true, "", "threads a block: x, y, z"},
    {"[[kernel.launch]]", "shared", expression, false, "", "dynamic shared memory, bytes"},
    {"[[kernel.launch]]", "cluster", expressions, false, "", "blocks a cluster: x, y, z"},
    {"[[kernel.launch]]", "cooperative", flag, false, "", "a cooperative launch"},
    {"[[kernel.launch]]", "args", expressions, true, "",
     "tensors, scratch and scalars by name; numbers with their width: `i32(m)`, `i64(lda)`, `f32(eps)`; or a tensor "
     "map"},

    {"a tensor map", "tensor_map", name, true, "", "the tensor"},
    {"a tensor map", "box", expressions, true, "", "extents of the part that one copy moves, one a dimension"},
    {"a tensor map", "swizzle", integer, false, "", "0, 32, 64 or 128 bytes"},
});

constexpr auto limits = std::to_array<LimitRow>({
    {"cc", "compute capability, 90 for 9.0"},
    {"sm_count", "multiprocessors"},
    {"max_shared", "bytes of shared memory a block may have, with opt-in"},
    {"max_threads", "threads a block may have"},
    {"warp", "threads a warp"},
    {"shared_per_sm", "bytes of shared memory a multiprocessor has"},
    {"registers_per_sm", "32-bit registers a multiprocessor has"},
    {"threads_per_sm", "threads that a multiprocessor holds"},
    {"l2", "bytes of second-level cache"},
    {"memory", "bytes of device memory"},
});

constexpr auto functions = std::to_array<FunctionRow>({
    {"min", "min(a, b, ...)", "the least"},
    {"max", "max(a, b, ...)", "the greatest"},
    {"abs", "abs(a)", "without sign"},
    {"ceil_div", "ceil_div(a, b)", "a / b rounded up"},
    {"round_up", "round_up(a, b)", "the least multiple of b that is not below a"},
    {"log2", "log2(a)", "the logarithm of base 2: an integer where a is a power of two"},
    {"pow2", "pow2(a)", "the least power of two that is not below a"},
    {"sizeof", "sizeof(dtype)", "bytes an element of that type takes; `sizeof(f32)` works, too"},
    {"align", "align(x)", "the alignment of tensor x, bytes, at most 16"},
    {"contiguous", "contiguous(x)", "whether tensor x is packed"},
    {"sum", "sum(lens)", "the sum of an integer input; in `[work]` only"},
    {"i32", "i32(a)", "a as a 32-bit integer: an argument's width"},
    {"i64", "i64(a)", "a as a 64-bit integer"},
    {"f32", "f32(a)", "a as a float"},
});

std::string_view type_in_page(KeyType type) {
    switch (type) {
        case integer:
            return "integer";
        case flag:
            return "true or false";
        case text:
            return "text";
        case name:
            return "name";
        case word:
            return "word";
        case value:
            return "value";
        case values:
            return "array of values";
        case expression:
            return "expression";
        case expressions:
            return "array of expressions";
        case names:
            return "array of strings";
        case file:
            return "file";
        case table:
            return "table";
        case tables:
            return "array of tables";
        case text_or_table:
            return "word or table";
    }
    return "";
}

std::string quoted_words(std::string_view words) {
    std::string out;
    while (!words.empty()) {
        const std::size_t end = words.find(' ');
        const std::string_view one = words.substr(0, end);
        words = end == std::string_view::npos ? std::string_view{} : words.substr(end + 1);
        if (!out.empty()) out += words.empty() ? " or " : ", ";
        out += fmt::format("\"{}\"", one);
    }
    return out;
}

}  // namespace

std::span<const KeyRow> format_keys() { return keys; }
std::span<const SectionRow> format_sections() { return sections; }
std::span<const LimitRow> format_limits() { return limits; }
std::span<const FunctionRow> format_functions() { return functions; }

std::string describe(const KeyRow& row) {
    switch (row.type) {
        case integer:
            return "an integer";
        case flag:
            return "true or false";
        case text:
            return "a text";
        case name:
            return "a name: letters, digits and _";
        case word:
            return quoted_words(row.words);
        case value:
            return "a number, true, false or a word";
        case values:
            return "an array of numbers, booleans or words";
        case expression:
            return "an expression: a string, a number, true or false";
        case expressions:
            return "an array of expressions";
        case names:
            return "an array of strings";
        case file:
            return "the path of a file in the op's folder";
        case table:
            return "a table";
        case tables:
            return "an array of tables";
        case text_or_table:
            return "a word or a table";
    }
    return "";
}

std::string op_format_page(std::span<const std::pair<std::string, std::string>> examples) {
    std::string page =
        "# An op as data: the .toml format\n\n"
        "<!-- Made by `autotune-embed --docs` from the table that the loader checks files against; do not edit. -->\n\n"
        "One file an op. It is data: nothing in it is executed on the host. Order means something (variants, "
        "parameters and values are\n"
        "taken as they stand in the file), unknown keys are errors, and every error names file, line and column, shows "
        "the line with a\n"
        "caret, and says what would be right. Files that an op names stay inside its folder. Limits: an op file 1 MiB, "
        "each source 4 MiB,\n"
        "256 files; brackets nest 32 deep, a key has 8 parts, a variant 64 parameters, `[let]` 1024 names.\n\n"
        "Where a literal or an expression may stand (`default`, `role`, `dtype`, `accumulate`), a declared word wins; "
        "any other string is\n"
        "an expression.\n";
    for (const SectionRow& section : sections) {
        page += fmt::format("\n## {}{}\n\n{}\n",
                            section.section == "the top"        ? "The top"
                            : section.section == "a tensor map" ? "A tensor map"
                                                                : section.section,
                            section.section == "[problem]" || section.section == "[kernel.parameters]" ||
                                    section.section == "[tolerance]"
                                ? ": one table a name"
                                : "",
                            section.about);
        std::string rows;
        for (const KeyRow& row : keys)
            if (row.section == section.section && !row.about.empty())
                rows += fmt::format("| `{}` | {}{} | {} |\n", row.key,
                                    row.type == word ? quoted_words(row.words) : std::string{type_in_page(row.type)},
                                    row.required ? ", required" : "", row.about);
        if (!rows.empty()) page += "\n| key | holds | meaning |\n| --- | --- | --- |\n" + rows;
    }
    page +=
        "\n## Expressions\n\n"
        "Integers (64 bits; overflow is an error), floats, booleans, and words in quotes (`dtype == 'f32'`). `+ - * / "
        "// % **`,\n"
        "comparison chains (`1 <= x < 4`), `==`, `!=`, `in`, `and`, `or`, `not`, `c ? a : b`. `and`, `or` and `?:` "
        "evaluate only what they\n"
        "need; `//` and `%` round down. A division by zero, an overflow or a wrong type makes a config not valid, with "
        "that as the reason;\n"
        "it never passes. Unknown names are errors when the file is loaded. One evaluator serves loading, spaces and "
        "dispatch.\n\n"
        "Names are the problem's fields, `[let]`, parameters and the device's limits; scalars, tensors, scratch and "
        "free strides in `args`.\n"
        "What a key depends on (`[problem]`, shapes, `[work]`, `[tolerance]`) sees fields only, so that a key means "
        "the same on every device.\n\n"
        "| function | value |\n| --- | --- |\n";
    for (const FunctionRow& row : functions) page += fmt::format("| `{}` | {} |\n", row.example, row.about);
    page += "\n| limit of the device | meaning |\n| --- | --- |\n";
    for (const LimitRow& row : limits) page += fmt::format("| `{}` | {} |\n", row.name, row.about);
    page += "| `blocks_per_sm` | blocks of this kernel that fit a multiprocessor at once; in `grid` only |\n";
    if (!examples.empty()) page += "\n## Examples\n";
    for (const auto& [title, body] : examples) page += fmt::format("\n{}\n\n```toml\n{}```\n", title, body);
    return page;
}

}  // namespace autotune

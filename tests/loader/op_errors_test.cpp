// Goal: whatever is wrong in an op file, the words say where, what, and what would be right.
// Method: one good op; each row changes one thing in it and holds the whole message.
#include <gtest/gtest.h>

#include <string>

#include "autotune/error.h"
#include "tuner/loader/op_loader.h"

namespace autotune {
namespace {

// clang-format off
constexpr const char* good_op = R"t(format = 1
op = "scale"
summary = "y = factor * x"
[problem]
n = { dim = "near", default = 4096 }
dtype = { one_of = ["f32", "f16"], default = "f32" }
zero = { flag = true, default = false, from = "factor == 0" }
note = { text = true, default = "" }
[[problem.constraint]]
claim = "n is even"
holds = "n % 2 == 0"
[[scalar]]
name = "factor"
dtype = "f32"
default = 2.0
[[tensor]]
name = "x"
role = "in"
dtype = "dtype"
shape = ["n"]
strides = ["step"]
fill = { kind = "uniform", low = 0, high = 1 }
[[tensor]]
name = "y"
role = "out"
dtype = "dtype"
shape = ["n"]
[let]
parts = "ceil_div(n, BLOCK)"
half = "n // 2"
[work]
flops = "n"
[reference]
cpp = "scale.cpp"
[tolerance]
y = { rel = 0.001 }
[check]
problems = [{ n = 2 }]
[[kernel]]
name = "plain"
source = "scale.cu"
entry = "scale"
needs = "cc >= 80"
define = { T = "dtype" }
[kernel.parameters]
BLOCK = { values = [64, 128], default = 128 }
ORDER = { values = ["up", "down"], default = "up" }
[[kernel.constraint]]
claim = "a block fits"
holds = "BLOCK <= max_threads"
[[kernel.scratch]]
name = "partial"
dtype = "f32"
shape = ["parts"]
[[kernel.launch]]
grid = ["parts"]
block = ["BLOCK"]
args = ["x", "y", "i32(n)", "factor", "i64(step)", "partial"]
[[kernel]]
name = "other"
source = "scale.cu"
entry = "scale"
[[kernel.launch]]
grid = [1]
block = [32]
args = ["x", "y"]
)t";

constexpr const char* good_extension = R"t(format = 1
extends = "scale"
[[kernel]]
name = "mine"
source = "scale.cu"
entry = "mine"
[[kernel.launch]]
grid = ["half"]
block = [32]
args = ["x", "y", "i64(step)"]
)t";

struct Row {
    const char* name;
    const char* file;  ///< good_op or good_extension
    const char* from;  ///< its first occurrence becomes
    const char* to;
    const char* message;  ///< and, after a line `help: `, the help
};

constexpr Row rows[] = {
    {"FormatsOfTheFuture", good_op, "format = 1", "format = 2",
     R"t(x.toml:1:10: this file is of format 2; this program reads format 1
  1 | format = 2
    |          ^)t"},
    {"UnknownKeysAtTheTop", good_op, "summary =", "sumary =",
     R"t(x.toml:3:1: unknown key 'sumary' at the top; did you mean 'summary'?
  3 | sumary = "y = factor * x"
    | ^~~~~~)t"},
    {"UnknownKeysWithoutALikelyMeaning", good_op, "summary =", "wibble =",
     R"t(x.toml:3:1: unknown key 'wibble' at the top; the keys are format, op, extends, summary, problem, scalar, tensor, let, work, reference, inputs, tolerance, check and kernel
  3 | wibble = "y = factor * x"
    | ^~~~~~)t"},
    {"WrongTypes", good_op, "format = 1", R"t(format = "1")t",
     R"t(x.toml:1:10: 'format' is an integer, not '1'
  1 | format = "1"
    |          ^~~)t"},
    {"NeitherOpNorExtends", good_op, R"t(op = "scale"
)t", "",
     R"t(x.toml:1:1: the file says neither op nor extends: op = "NAME" for an op of its own
  1 | format = 1
    | ^)t"},
    {"OpAndExtends", good_op, R"t(op = "scale")t", R"t(op = "scale"
extends = "scale")t",
     R"t(x.toml:1:1: the file says op and extends; it is one of them
  1 | format = 1
    | ^)t"},
    {"OpNames", good_op, R"t(op = "scale")t", R"t(op = "my scale")t",
     R"t(x.toml:2:6: 'op' is a name: letters, digits and _, not 'my scale'
  2 | op = "my scale"
    |      ^~~~~~~~~~)t"},
    {"NoSummary", good_op, R"t(summary = "y = factor * x"
)t", "",
     R"t(x.toml:2:6: op 'scale' has no summary: one line that says what it computes
  2 | op = "scale"
    |      ^~~~~~~)t"},
    {"NoReference", good_op, R"t([reference]
cpp = "scale.cpp"
)t", "",
     R"t(x.toml:2:6: op 'scale' has no [reference], so no result of it can be checked
  2 | op = "scale"
    |      ^~~~~~~)t"},
    {"NoFormat", good_op, R"t(format = 1
)t", "",
     R"t(x.toml:1:1: there is no 'format' at the top: 1, the version of this format
  1 | op = "scale"
    | ^)t"},
    {"FieldsThatAreNoTable", good_op, R"t(n = { dim = "near", default = 4096 })t", "n = 4096",
     R"t(x.toml:5:1: field 'n' is a table, not an integer: n = { dim = "near" }
  5 | n = 4096
    | ^)t"},
    {"FieldsWithoutKind", good_op, R"t(n = { dim = "near", default = 4096 })t", "n = { default = 4096 }",
     R"t(x.toml:5:1: field 'n' does not say what it is: dim, one_of, flag or text
  5 | n = { default = 4096 }
    | ^)t"},
    {"FieldsOfTwoKinds", good_op, R"t(n = { dim = "near", default = 4096 })t", R"t(n = { dim = "near", flag = true })t",
     R"t(x.toml:5:1: field 'n' is dim and flag at once; it is one of dim, one_of, flag and text
  5 | n = { dim = "near", flag = true }
    | ^)t"},
    {"WordsOfADim", good_op, R"t(dim = "near")t", R"t(dim = "nearly")t",
     R"t(x.toml:5:13: 'dim' is "near" or "exact", not 'nearly'
  5 | n = { dim = "nearly", default = 4096 }
    |             ^~~~~~~~)t"},
    {"FlagFalse", good_op, "zero = { flag = true", "zero = { flag = false",
     R"t(x.toml:7:17: 'flag' is true or not given: flag = true
  7 | zero = { flag = false, default = false, from = "factor == 0" }
    |                 ^~~~~)t"},
    {"FieldNames", good_op, "n = { dim", R"t("my n" = { dim)t",
     R"t(x.toml:5:1: 'my n' is no name: letters, digits and _, at most 64
  5 | "my n" = { dim = "near", default = 4096 }
    | ^~~~)t"},
    {"FieldNamedAsAFunction", good_op, "note = {", "min = {",
     R"t(x.toml:8:1: a field of the problem cannot be called 'min': that is a function of expressions
  8 | min = { text = true, default = "" }
    | ^~~)t"},
    {"FieldNamedAsALimit", good_op, "note = {", "warp = {",
     R"t(x.toml:8:1: a field of the problem cannot be called 'warp': that is a limit of the device
  8 | warp = { text = true, default = "" }
    | ^~~~)t"},
    {"FieldNamedAsAWord", good_op, "note = {", "not = {",
     R"t(x.toml:8:1: a field of the problem cannot be called 'not': that is a word of expressions
  8 | not = { text = true, default = "" }
    | ^~~)t"},
    {"ParameterNamedAsTheKernelInResults", good_op, "ORDER = {", "variant = {",
     R"t(x.toml:47:1: a parameter cannot be called 'variant': that is what results call the kernel of a config
  47 | variant = { values = ["up", "down"], default = "up" }
     | ^~~~~~~)t"},
    {"ChoicesOfTwoKinds", good_op, R"t(one_of = ["f32", "f16"])t", R"t(one_of = ["f32", 16])t",
     R"t(x.toml:6:28: the choices of a field are of one kind
  6 | dtype = { one_of = ["f32", 16], default = "f32" }
    |                            ^~)t"},
    {"ChoicesTwice", good_op, R"t(one_of = ["f32", "f16"])t", R"t(one_of = ["f32", "f32"])t",
     R"t(x.toml:6:28: 'f32' is a choice already
  6 | dtype = { one_of = ["f32", "f32"], default = "f32" }
    |                            ^~~~~)t"},
    {"NoChoices", good_op, R"t(one_of = ["f32", "f16"])t", "one_of = []",
     R"t(x.toml:6:11: field 'dtype' has no choices
  6 | dtype = { one_of = [], default = "f32" }
    |           ^~~~~~)t"},
    {"ChoicesThatAreNoWord", good_op, R"t(one_of = ["f32", "f16"])t", R"t(one_of = ["f32", "f 16"])t",
     R"t(x.toml:6:28: 'f 16' is no word: letters, digits and _, not starting with a digit
  6 | dtype = { one_of = ["f32", "f 16"], default = "f32" }
    |                            ^~~~~~)t"},
    {"DefaultsThatAreNoChoice", good_op, R"t(default = "f32" })t", R"t(default = "'f64'" })t",
     R"t(x.toml:6:47: this is 'f64', but the choices of 'dtype' are f32 and f16
  6 | dtype = { one_of = ["f32", "f16"], default = "'f64'" }
    |                                               ^~~~~)t"},
    {"DefaultsThatNameNothing", good_op, R"t(default = "f32" })t", R"t(default = "f64" })t",
     R"t(x.toml:6:47: unknown name 'f64' in a default; the words are f32 and f16, the field is n
  6 | dtype = { one_of = ["f32", "f16"], default = "f64" }
    |                                               ^~~)t"},
    {"DefaultsOfADim", good_op, "default = 4096", "default = 0",
     R"t(x.toml:5:31: this is '0', but a dim is an integer from 1 to 2^40
  5 | n = { dim = "near", default = 0 }
    |                               ^)t"},
    {"DefaultsOfAFlag", good_op, "default = false", "default = 1",
     R"t(x.toml:7:33: this is '1', but the default of a flag is true or false
  7 | zero = { flag = true, default = 1, from = "factor == 0" }
    |                                 ^)t"},
    {"DefaultsFromLaterFields", good_op, "default = 4096", R"t(default = "zero ? 1 : 2")t",
     R"t(x.toml:5:32: field 'zero' stands further down; a default takes earlier fields only
  5 | n = { dim = "near", default = "zero ? 1 : 2" }
    |                                ^~~~)t"},
    {"DefaultsOfAText", good_op, R"t(default = "" })t", "default = 1 }",
     R"t(x.toml:8:33: the default of a text is a string, not an integer
  8 | note = { text = true, default = 1 }
    |                                 ^)t"},
    {"FromTheInputsWithoutInputs", good_op, R"t(n = { dim = "near", default = 4096 })t", R"t(n = { dim = "near", from = "inputs" })t",
     R"t(x.toml:5:28: field 'n' comes from the inputs, but there is no [inputs]
  5 | n = { dim = "near", from = "inputs" }
    |                            ^~~~~~~~)t"},
    {"FromTheInputsOfAFlag", good_op, R"t(from = "factor == 0")t", R"t(from = "inputs")t",
     R"t(x.toml:7:47: only a dim can come from the inputs; 'zero' is none
  7 | zero = { flag = true, default = false, from = "inputs" }
    |                                               ^~~~~~~~)t"},
    {"FromAnUnknownScalar", good_op, R"t(from = "factor == 0")t", R"t(from = "beta == 0")t",
     R"t(x.toml:7:48: unknown name 'beta' in 'from'; the scalar is factor, the fields are n, dtype, zero and note
  7 | zero = { flag = true, default = false, from = "beta == 0" }
    |                                                ^~~~)t"},
    {"ProblemConstraintsOnTheDevice", good_op, R"t(holds = "n % 2 == 0")t", R"t(holds = "n % warp == 0")t",
     R"t(x.toml:11:14: 'warp' is a limit of the device, which a constraint of the problem cannot use; it takes fields and [let] names
  11 | holds = "n % warp == 0"
     |              ^~~~)t"},
    {"ProblemConstraintsOnScalars", good_op, R"t(holds = "n % 2 == 0")t", R"t(holds = "factor > 0")t",
     R"t(x.toml:11:10: 'factor' is a scalar, which a constraint of the problem cannot use; it takes fields and [let] names
  11 | holds = "factor > 0"
     |          ^~~~~~)t"},
    {"ProblemConstraintsOnParametersByLet", good_op, R"t(holds = "n % 2 == 0")t", R"t(holds = "parts > 1")t",
     R"t(x.toml:11:10: 'parts' uses the parameter 'BLOCK', which a constraint of the problem cannot use; it takes fields and [let] names
  11 | holds = "parts > 1"
     |          ^~~~~)t"},
    {"UnparsableExpressions", good_op, R"t(holds = "n % 2 == 0")t", R"t(holds = "n % 2 ==")t",
     R"t(x.toml:11:18: this is no expression: the end where a value is expected
  11 | holds = "n % 2 =="
     |                  ^)t"},
    {"NoClaim", good_op, R"t(claim = "n is even"
)t", "",
     R"t(x.toml:9:1: there is no 'claim' in [[problem.constraint]]: what must be so, in words
  9 | [[problem.constraint]]
    | ^)t"},
    {"UnknownWordsOfAChoice", good_op, R"t(holds = "n % 2 == 0")t", R"t(holds = "dtype == 'f61'")t",
     R"t(x.toml:11:19: 'f61' is no choice of 'dtype'; did you mean 'f16'?
  11 | holds = "dtype == 'f61'"
     |                   ^~~~~)t"},
    {"UnknownWordsOfAChoiceInAList", good_op, R"t(holds = "n % 2 == 0")t", R"t(holds = "dtype in ['f32', 'double']")t",
     R"t(x.toml:11:27: 'double' is no choice of 'dtype'; the choices are f32 and f16
  11 | holds = "dtype in ['f32', 'double']"
     |                           ^~~~~~~~)t"},
    {"ScalarTypes", good_op, R"t(dtype = "f32"
default = 2.0)t", R"t(dtype = "float"
default = 2.0)t",
     R"t(x.toml:14:9: 'dtype' is "f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "u32" or "bool", not 'float'
  14 | dtype = "float"
     |         ^~~~~~~)t"},
    {"ScalarValues", good_op, "default = 2.0", R"t(default = "two")t",
     R"t(x.toml:15:11: a scalar of type f32 is a number, not a string
  15 | default = "two"
     |           ^~~~~)t"},
    {"ScalarsThatAreWhole", good_op, R"t(dtype = "f32"
default = 2.0)t", R"t(dtype = "i32"
default = 2.5)t",
     R"t(x.toml:15:11: a scalar of type i32 is whole
  15 | default = 2.5
     |           ^~~)t"},
    {"NamesTakenTwice", good_op, R"t(name = "factor")t", R"t(name = "n")t",
     R"t(x.toml:13:8: 'n' is a field of the problem already; each name stands for one thing
  13 | name = "n"
     |        ^~~)t"},
    {"TensorsTwice", good_op, R"t(name = "y"
role)t", R"t(name = "x"
role)t",
     R"t(x.toml:24:8: 'x' is a tensor already; each name stands for one thing
  24 | name = "x"
     |        ^~~)t"},
    {"TensorsNamedAsAScalar", good_op, R"t(name = "y"
role)t", R"t(name = "factor"
role)t",
     R"t(x.toml:24:8: 'factor' is a scalar already; each name stands for one thing
  24 | name = "factor"
     |        ^~~~~~~~)t"},
    {"RequiredKeys", good_op, R"t(role = "in"
)t", "",
     R"t(x.toml:16:1: there is no 'role' in [[tensor]]: in, out, inout, scratch, or an expression that chooses
  16 | [[tensor]]
     | ^)t"},
    {"Roles", good_op, R"t(role = "in")t", R"t(role = "input")t",
     R"t(x.toml:18:9: unknown name 'input' in a role; did you mean 'inout'?
  18 | role = "input"
     |         ^~~~~)t"},
    {"RolesInsideExpressions", good_op, R"t(role = "in")t", R"t(role = "zero ? 'in' : 'input'")t",
     R"t(x.toml:18:23: this is 'input', but a role is in, out, inout or scratch
  18 | role = "zero ? 'in' : 'input'"
     |                       ^~~~~~~)t"},
    {"Types", good_op, R"t(role = "in"
dtype = "dtype")t", R"t(role = "in"
dtype = "'float'")t",
     R"t(x.toml:19:10: this is 'float', but the types are f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, u8, u32 and bool
  19 | dtype = "'float'"
     |          ^~~~~~~)t"},
    {"FieldsThatHoldNoType", good_op, R"t(role = "in"
dtype = "dtype")t", R"t(role = "in"
dtype = "n")t",
     R"t(x.toml:19:10: field 'n' holds no type, so it cannot be a dtype
  19 | dtype = "n"
     |          ^)t"},
    {"Shapes", good_op, R"t(shape = ["n"]
strides)t", R"t(shape = "n"
strides)t",
     R"t(x.toml:20:9: 'shape' is an array of expressions, not 'n'
  20 | shape = "n"
     |         ^~~)t"},
    {"StridesWithASlipInTheNameOfAField", good_op, R"t(strides = ["step"])t", R"t(strides = ["notee"])t",
     R"t(x.toml:21:13: unknown name 'notee' in a stride, and no launch is given it; did you mean 'note'?
  21 | strides = ["notee"]
     |             ^~~~~)t"},
    {"StridesThatNoLaunchIsGiven", good_op, R"t("factor", "i64(step)", "partial")t", R"t("factor", "partial")t",
     R"t(x.toml:21:13: unknown name 'step' in a stride, and no launch is given it; the fields are n, dtype, zero and note, the [let] names are half and parts
  21 | strides = ["step"]
     |             ^~~~)t"},
    {"StridesByDimension", good_op, R"t(strides = ["step"])t", R"t(strides = ["step", 1])t",
     R"t(x.toml:21:1: 'strides' of tensor 'x' has 2 entries, its shape has 1
  21 | strides = ["step", 1]
     | ^~~~~~~)t"},
    {"ShapesOnTheDevice", good_op, R"t(shape = ["n"]
strides)t", R"t(shape = ["sm_count"]
strides)t",
     R"t(x.toml:20:11: 'sm_count' is a limit of the device, which a shape cannot use; it takes fields and [let] names
  20 | shape = ["sm_count"]
     |           ^~~~~~~~)t"},
    {"AliasesOfNothing", good_op, R"t(strides = ["step"])t", R"t(strides = ["step"]
may_alias = ["z"])t",
     R"t(x.toml:22:14: there is no tensor 'z'; the tensors are x and y
  22 | may_alias = ["z"]
     |              ^~~)t"},
    {"Fills", good_op, R"t(fill = { kind = "uniform", low = 0, high = 1 })t", R"t(fill = "gaussian")t",
     R"t(x.toml:22:8: 'gaussian' is no fill; there are normal, uniform, constant, int, permutation, sorted, lengths and special
  22 | fill = "gaussian"
     |        ^~~~~~~~~~)t"},
    {"FillArguments", good_op, R"t(kind = "uniform", low)t", R"t(kind = "normal", low)t",
     R"t(x.toml:22:27: fill 'normal' takes no 'low'
  22 | fill = { kind = "normal", low = 0, high = 1 }
     |                           ^~~)t"},
    {"FillKeys", good_op, R"t(kind = "uniform", low)t", R"t(kind = "uniform", lower)t",
     R"t(x.toml:22:28: unknown key 'lower' in fill; the keys are kind, low, high, value, of, max, like, zeros and junk_beyond
  22 | fill = { kind = "uniform", lower = 0, high = 1 }
     |                            ^~~~~)t"},
    {"CirclesOfLets", good_op, R"t(half = "n // 2")t", R"t(half = "third + 1"
third = "half - 1")t",
     R"t(x.toml:30:1: [let] goes in a circle: 'half', which uses 'third', which uses 'half'
  30 | half = "third + 1"
     | ^~~~)t"},
    {"LetsOfScalars", good_op, R"t(half = "n // 2")t", R"t(half = "factor / 2")t",
     R"t(x.toml:30:9: 'factor' is a scalar, which [let] cannot use; it takes parameters, fields, [let] names, limits of the device and align() and contiguous() of tensors
  30 | half = "factor / 2"
     |         ^~~~~~)t"},
    {"LetsThatNameNothing", good_op, R"t(half = "n // 2")t", R"t(half = "m // 2")t",
     R"t(x.toml:30:9: unknown name 'm' in [let]; the fields are n, dtype, zero and note, the [let] names are half and parts
  30 | half = "m // 2"
     |         ^)t"},
    {"LetsNamedAsAField", good_op, R"t(half = "n // 2")t", R"t(n = "2")t",
     R"t(x.toml:30:1: 'n' is a field of the problem already; each name stands for one thing
  30 | n = "2"
     | ^)t"},
    {"LetsThatAreNoExpression", good_op, R"t(half = "n // 2")t", "half = [1]",
     R"t(x.toml:30:1: a [let] name stands for an expression, not an array
  30 | half = [1]
     | ^~~~)t"},
    {"SumsOutsideOfWork", good_op, R"t(half = "n // 2")t", R"t(half = "sum(x) // 2")t",
     R"t(x.toml:30:9: 'sum(x)' is a sum over a tensor, which [let] cannot use; it takes parameters, fields, [let] names, limits of the device and align() and contiguous() of tensors
  30 | half = "sum(x) // 2"
     |         ^~~~~~)t"},
    {"SumsOverNothing", good_op, R"t(flops = "n")t", R"t(flops = "sum(z)")t",
     R"t(x.toml:32:10: there is no tensor 'z'; the tensors are x and y
  32 | flops = "sum(z)"
     |          ^~~~~~)t"},
    {"ReferencesOfTwoKinds", good_op, R"t(cpp = "scale.cpp")t", R"t(cpp = "scale.cpp"
kernel = "plain")t",
     R"t(x.toml:33:2: [reference] says cpp and kernel at once; it is one of cpp, kernel and npy
  33 | [reference]
     |  ^~~~~~~~~)t"},
    {"ReferencesThatSayNothing", good_op, R"t(cpp = "scale.cpp"
)t", "",
     R"t(x.toml:33:2: there is no reference: [reference] says cpp, kernel or npy
  33 | [reference]
     |  ^~~~~~~~~)t"},
    {"MissingFiles", good_op, R"t(cpp = "scale.cpp")t", R"t(cpp = "scal.cpp")t",
     R"t(x.toml:34:7: there is no file 'scal.cpp' beside x.toml
  34 | cpp = "scal.cpp"
     |       ^~~~~~~~~~)t"},
    {"ReferencesToNoVariant", good_op, R"t(cpp = "scale.cpp")t", R"t(kernel = "naive")t",
     R"t(x.toml:34:10: there is no variant 'naive'; the variants are plain and other
  34 | kernel = "naive"
     |          ^~~~~~~)t"},
    {"GoldenFilesForEachOutput", good_op, R"t(cpp = "scale.cpp")t", R"t(npy = { x = "y.npy" })t",
     R"t(x.toml:24:8: output 'y' has no file in npy of [reference]
  24 | name = "y"
     |        ^~~)t"},
    {"DeviceReferencesWithoutSource", good_op, R"t(cpp = "scale.cpp")t", R"t(cpp = "scale.cpp"
[[reference.launch]]
entry = "scale64"
grid = [1]
block = [1]
args = ["value(y)"])t",
     R"t(x.toml:35:1: there is no 'source' in [[reference.launch]]: a .cu file
  35 | [[reference.launch]]
     | ^)t"},
    {"ReferenceArgumentsOfInputs", good_op, R"t(cpp = "scale.cpp")t", R"t(cpp = "scale.cpp"
[[reference.launch]]
source = "scale.cu"
entry = "scale64"
grid = [1]
block = [1]
args = ["value(x)"])t",
     R"t(x.toml:40:9: 'x' is no output
  40 | args = ["value(x)"]
     |         ^~~~~~~~~~)t"},
    {"ReferenceArgumentsOfNothing", good_op, R"t(cpp = "scale.cpp")t", R"t(cpp = "scale.cpp"
[[reference.launch]]
source = "scale.cu"
entry = "scale64"
grid = [1]
block = [1]
args = ["magnitude(z)"])t",
     R"t(x.toml:40:9: there is no tensor 'z'; the tensors are x and y
  40 | args = ["magnitude(z)"]
     |         ^~~~~~~~~~~~~~)t"},
    {"ReferenceLaunchesWithoutParameters", good_op, R"t(cpp = "scale.cpp")t", R"t(cpp = "scale.cpp"
[[reference.launch]]
source = "scale.cu"
entry = "scale64"
grid = ["parts"]
block = [1]
args = ["value(y)"])t",
     R"t(x.toml:38:10: 'parts' uses the parameter 'BLOCK', which a grid cannot use; it takes fields, [let] names, limits of the device and align() and contiguous() of tensors
  38 | grid = ["parts"]
     |          ^~~~~)t"},
    {"OutputsWithoutTolerance", good_op, R"t(y = { rel = 0.001 }
)t", "",
     R"t(x.toml:24:8: output 'y' has no tolerance; [tolerance] has a line for each: y = { terms = ..., accumulate = "fma" }
  24 | name = "y"
     |        ^~~)t"},
    {"TolerancesOfInputs", good_op, "y = { rel = 0.001 }", R"t(y = { rel = 0.001 }
x = { exact = true })t",
     R"t(x.toml:37:1: 'x' is no output
  37 | x = { exact = true }
     | ^)t"},
    {"TolerancesOfNothing", good_op, "y = { rel = 0.001 }", R"t(y = { rel = 0.001 }
z = { exact = true })t",
     R"t(x.toml:37:1: there is no tensor 'z'; the tensors are x and y
  37 | z = { exact = true }
     | ^)t"},
    {"EmptyTolerances", good_op, "y = { rel = 0.001 }", "y = {}",
     R"t(x.toml:36:1: the tolerance of 'y' is empty: it says terms and accumulate, abs or rel, or exact = true
  36 | y = {}
     | ^)t"},
    {"TolerancesThatAreTwoThings", good_op, "y = { rel = 0.001 }", "y = { rel = 0.001, exact = true }",
     R"t(x.toml:36:1: the tolerance of 'y' is a bound and exact at once; it is one of them
  36 | y = { rel = 0.001, exact = true }
     | ^)t"},
    {"TolerancesHalfSaid", good_op, "y = { rel = 0.001 }", R"t(y = { terms = "n" })t",
     R"t(x.toml:36:1: the tolerance of 'y' needs terms and accumulate together
  36 | y = { terms = "n" }
     | ^)t"},
    {"TolerancesThatAreNoTable", good_op, "y = { rel = 0.001 }", "y = 0.001",
     R"t(x.toml:36:1: the tolerance of 'y' is a table, not a float: y = { terms = ..., accumulate = "fma" }
  36 | y = 0.001
     | ^)t"},
    {"Accumulators", good_op, "y = { rel = 0.001 }", R"t(y = { terms = "n", accumulate = "zero ? 'fma' : 'tensor'" })t",
     R"t(x.toml:36:49: this is 'tensor', but accumulate is fma or mma
  36 | y = { terms = "n", accumulate = "zero ? 'fma' : 'tensor'" }
     |                                                 ^~~~~~~~)t"},
    {"CheckFields", good_op, "[{ n = 2 }]", "[{ m = 2 }]",
     R"t(x.toml:38:15: there is no field 'm'; the fields are n, dtype, zero and note
  38 | problems = [{ m = 2 }]
     |               ^)t"},
    {"CheckValues", good_op, "[{ n = 2 }]", "[{ n = 0 }]",
     R"t(x.toml:38:19: 'n' cannot be this: it is an integer of at least 1
  38 | problems = [{ n = 0 }]
     |                   ^)t"},
    {"CheckChoices", good_op, "[{ n = 2 }]", R"t([{ dtype = "f64" }])t",
     R"t(x.toml:38:23: 'dtype' cannot be this: it is one of f32 and f16
  38 | problems = [{ dtype = "f64" }]
     |                       ^~~~~)t"},
    {"VariantsTwice", good_op, R"t(name = "other")t", R"t(name = "plain")t",
     R"t(x.toml:60:8: there are two variants 'plain'; each has a name of its own
  60 | name = "plain"
     |        ^~~~~~~)t"},
    {"VariantsWithoutLaunches", good_op, R"t([[kernel.launch]]
grid = [1]
block = [32]
args = ["x", "y"]
)t", "",
     R"t(x.toml:59:1: there is no 'launch' in [[kernel]]
  59 | [[kernel]]
     | ^)t"},
    {"SourcesThatLeave", good_op, R"t(source = "scale.cu"
entry = "scale"
needs)t", R"t(source = "../scale.cu"
entry = "scale"
needs)t",
     R"t(x.toml:41:10: the path '../scale.cu' leaves the op's folder
  41 | source = "../scale.cu"
     |          ^~~~~~~~~~~~~)t"},
    {"SourcesThatAreAbsolute", good_op, R"t(source = "scale.cu"
entry = "scale"
needs)t", R"t(source = "/scale.cu"
entry = "scale"
needs)t",
     R"t(x.toml:41:10: the path '/scale.cu' is absolute; an op's files are in its folder
  41 | source = "/scale.cu"
     |          ^~~~~~~~~~~)t"},
    {"SourcesThatAreTooLarge", good_op, R"t(source = "scale.cu"
entry = "scale"
needs)t", R"t(source = "big.cu"
entry = "scale"
needs)t",
     R"t(x.toml:41:10: 'big.cu' has 4194305 bytes, a source at most 4194304
  41 | source = "big.cu"
     |          ^~~~~~~~)t"},
    {"NeedsOnParameters", good_op, R"t(needs = "cc >= 80")t", R"t(needs = "BLOCK >= 64")t",
     R"t(x.toml:43:10: 'BLOCK' is a parameter, which 'needs' cannot use; it takes fields, [let] names, limits of the device and align() and contiguous() of tensors
  43 | needs = "BLOCK >= 64"
     |          ^~~~~)t"},
    {"NeedsOnScalars", good_op, R"t(needs = "cc >= 80")t", R"t(needs = "factor > 0")t",
     R"t(x.toml:43:10: 'factor' is a scalar, which 'needs' cannot use; it takes fields, [let] names, limits of the device and align() and contiguous() of tensors
  43 | needs = "factor > 0"
     |          ^~~~~~)t"},
    {"NeedsThatNameNothing", good_op, R"t(needs = "cc >= 80")t", R"t(needs = "ccc >= 80")t",
     R"t(x.toml:43:10: unknown name 'ccc' in 'needs'; did you mean 'cc'?
  43 | needs = "ccc >= 80"
     |          ^~~)t"},
    {"UnknownVariantKeys", good_op, R"t(needs = "cc >= 80")t", R"t(need = "cc >= 80")t",
     R"t(x.toml:43:1: unknown key 'need' in [[kernel]]; did you mean 'needs'?
  43 | need = "cc >= 80"
     | ^~~~)t"},
    {"DefinesOfTexts", good_op, R"t(define = { T = "dtype" })t", R"t(define = { T = "note" })t",
     R"t(x.toml:44:16: field 'note' is a text, which never reaches a compiler
  44 | define = { T = "note" }
     |                ^~~~~~)t"},
    {"DefinesOfNothing", good_op, R"t(define = { T = "dtype" })t", R"t(define = { T = "dtyp" })t",
     R"t(x.toml:44:17: unknown name 'dtyp' in a define; did you mean 'dtype'?
  44 | define = { T = "dtyp" }
     |                 ^~~~)t"},
    {"DefinesOfParameters", good_op, R"t(define = { T = "dtype" })t", R"t(define = { T = "BLOCK" })t",
     R"t(x.toml:44:17: 'BLOCK' is a parameter, which a define cannot use; it takes fields and [let] names
  44 | define = { T = "BLOCK" }
     |                 ^~~~~)t"},
    {"DefinesOfReservedNames", good_op, R"t(define = { T = "dtype" })t", R"t(define = { int = "dtype" })t",
     R"t(x.toml:44:12: 'int' is a word of CUDA C++, so it cannot be a macro
  44 | define = { int = "dtype" }
     |            ^~~)t"},
    {"DefinesOfCompilersNames", good_op, R"t(define = { T = "dtype" })t", R"t(define = { __T = "dtype" })t",
     R"t(x.toml:44:12: '__T' is reserved to the compiler (two underscores, or _ and a capital), so it cannot be a macro
  44 | define = { __T = "dtype" }
     |            ^~~)t"},
    {"DefinesNamedAsAParameter", good_op, R"t(define = { T = "dtype" })t", R"t(define = { BLOCK = "n" })t",
     R"t(x.toml:44:12: 'BLOCK' is a parameter and a define; one macro has one meaning
  44 | define = { BLOCK = "n" }
     |            ^~~~~)t"},
    {"ParametersThatAreNoTable", good_op, "BLOCK = { values = [64, 128], default = 128 }", "BLOCK = [64, 128]",
     R"t(x.toml:46:1: parameter 'BLOCK' is a table, not an array: BLOCK = { values = [1, 2], default = 1 }
  46 | BLOCK = [64, 128]
     | ^~~~~)t"},
    {"ParameterNames", good_op, "ORDER = {", R"t("my order" = {)t",
     R"t(x.toml:47:1: 'my order' is no name: letters, digits and _, at most 64
  47 | "my order" = { values = ["up", "down"], default = "up" }
     | ^~~~~~~~)t"},
    {"ParametersNamedAsAField", good_op, "ORDER = {", "n = {",
     R"t(x.toml:47:1: 'n' is a field of the problem already; each name stands for one thing
  47 | n = { values = ["up", "down"], default = "up" }
     | ^)t"},
    {"ParametersNamedAsATensor", good_op, "ORDER = {", "x = {",
     R"t(x.toml:47:1: 'x' is a tensor already; each name stands for one thing
  47 | x = { values = ["up", "down"], default = "up" }
     | ^)t"},
    {"ParametersNamedAsALimit", good_op, "ORDER = {", "warp = {",
     R"t(x.toml:47:1: a parameter cannot be called 'warp': that is a limit of the device
  47 | warp = { values = ["up", "down"], default = "up" }
     | ^~~~)t"},
    {"ParametersOfReservedNames", good_op, "ORDER = {", "threadIdx = {",
     R"t(x.toml:47:1: 'threadIdx' is a word of CUDA C++, so it cannot be a macro
  47 | threadIdx = { values = ["up", "down"], default = "up" }
     | ^~~~~~~~~)t"},
    {"NoValues", good_op, R"t(values = ["up", "down"], default = "up")t", "values = []",
     R"t(x.toml:47:11: parameter 'ORDER' has no values
  47 | ORDER = { values = [] }
     |           ^~~~~~)t"},
    {"ValuesTwice", good_op, "values = [64, 128]", "values = [64, 64]",
     R"t(x.toml:46:25: 64 is a value already
  46 | BLOCK = { values = [64, 64], default = 128 }
     |                         ^~)t"},
    {"ValuesOfTwoKinds", good_op, "values = [64, 128]", "values = [64, 1.5]",
     R"t(x.toml:46:25: the values of a parameter are of one kind; the first is an integer
  46 | BLOCK = { values = [64, 1.5], default = 128 }
     |                         ^~~)t"},
    {"ValuesThatCannotBePasted", good_op, R"t(values = ["up", "down"])t", R"t(values = ["up", "a; b"])t",
     R"t(x.toml:47:27: 'a; b' cannot be pasted into a source: letters, digits, _ and :, not starting with a digit
  47 | ORDER = { values = ["up", "a; b"], default = "up" }
     |                           ^~~~~~)t"},
    {"DefaultsThatAreNoValue", good_op, "default = 128", "default = 96",
     R"t(x.toml:46:41: this is '96', but the values of 'BLOCK' are 64 and 128
  46 | BLOCK = { values = [64, 128], default = 96 }
     |                                         ^~)t"},
    {"DefaultsThatMayBeNoValue", good_op, "default = 128", R"t(default = "n > 9 ? 128 : 32")t",
     R"t(x.toml:46:56: this is '32', but the values of 'BLOCK' are 64 and 128
  46 | BLOCK = { values = [64, 128], default = "n > 9 ? 128 : 32" }
     |                                                        ^~)t"},
    {"DefaultsOnParameters", good_op, "default = 128", R"t(default = "ORDER == 'up' ? 64 : 128")t",
     R"t(x.toml:46:42: 'ORDER' is a parameter, which a default cannot use; it takes fields, [let] names, limits of the device and align() and contiguous() of tensors
  46 | BLOCK = { values = [64, 128], default = "ORDER == 'up' ? 64 : 128" }
     |                                          ^~~~~)t"},
    {"DefaultsThatAreNoWord", good_op, R"t(default = "up")t", R"t(default = "left")t",
     R"t(x.toml:47:47: unknown name 'left' in a default; the words are up and down, the fields are n, dtype, zero and note, the [let] names are half and parts
  47 | ORDER = { values = ["up", "down"], default = "left" }
     |                                               ^~~~)t"},
    {"UnknownNamesInConstraints", good_op, R"t(holds = "BLOCK <= max_threads")t", R"t(holds = "BLK <= max_threads")t",
     R"t(x.toml:50:10: unknown name 'BLK' in a constraint; the parameters are BLOCK and ORDER, the fields are n, dtype, zero and note, the [let] names are half and parts
  50 | holds = "BLK <= max_threads"
     |          ^~~)t"},
    {"UnknownNamesThatAreNearlyRight", good_op, R"t(holds = "BLOCK <= max_threads")t", R"t(holds = "BLOCKS <= max_threads")t",
     R"t(x.toml:50:10: unknown name 'BLOCKS' in a constraint; did you mean 'BLOCK'?
  50 | holds = "BLOCKS <= max_threads"
     |          ^~~~~~)t"},
    {"WordsOfParameters", good_op, R"t(holds = "BLOCK <= max_threads")t", R"t(holds = "ORDER != 'dwon'")t",
     R"t(x.toml:50:19: 'dwon' is no choice of 'ORDER'; did you mean 'down'?
  50 | holds = "ORDER != 'dwon'"
     |                   ^~~~~~)t"},
    {"AlignmentsOfNothing", good_op, R"t(holds = "BLOCK <= max_threads")t", R"t(holds = "align(z) >= 4")t",
     R"t(x.toml:50:10: there is no tensor 'z'; the tensors are x and y
  50 | holds = "align(z) >= 4"
     |          ^~~~~~~~)t"},
    {"ConstraintsOnBlocksPerSm", good_op, R"t(holds = "BLOCK <= max_threads")t", R"t(holds = "blocks_per_sm > 1")t",
     R"t(x.toml:50:10: 'blocks_per_sm' is a name in a grid only
  50 | holds = "blocks_per_sm > 1"
     |          ^~~~~~~~~~~~~)t"},
    {"ScratchNamedAsATensor", good_op, R"t(name = "partial")t", R"t(name = "x")t",
     R"t(x.toml:52:8: 'x' is a tensor already; each name stands for one thing
  52 | name = "x"
     |        ^~~)t"},
    {"ScratchTypes", good_op, R"t(name = "partial"
dtype = "f32")t", R"t(name = "partial"
dtype = "n")t",
     R"t(x.toml:53:10: field 'n' holds no type, so it cannot be a dtype
  53 | dtype = "n"
     |          ^)t"},
    {"SymbolsFromNothing", good_op, R"t([[kernel.launch]]
grid = ["parts"])t", R"t([[kernel.symbol]]
name = "d"
from = "z"
copy = "prepare"
[[kernel.launch]]
grid = ["parts"])t",
     R"t(x.toml:57:8: there is no tensor 'z'; the tensors are x and y
  57 | from = "z"
     |        ^~~)t"},
    {"SymbolCopies", good_op, R"t([[kernel.launch]]
grid = ["parts"])t", R"t([[kernel.symbol]]
name = "d"
from = "x"
copy = "often"
[[kernel.launch]]
grid = ["parts"])t",
     R"t(x.toml:58:8: 'copy' is "prepare" or "launch", not 'often'
  58 | copy = "often"
     |        ^~~~~~~)t"},
    {"LaunchesWithoutSource", good_op, R"t(name = "other"
source = "scale.cu"
)t", R"t(name = "other"
)t",
     R"t(x.toml:62:1: this launch has no source: say it here or for the variant
  62 | [[kernel.launch]]
     | ^)t"},
    {"LaunchesWithoutEntry", good_op, R"t(entry = "scale"
[[kernel.launch]]
grid = [1])t", R"t([[kernel.launch]]
grid = [1])t",
     R"t(x.toml:62:1: this launch has no entry: say it here or for the variant
  62 | [[kernel.launch]]
     | ^)t"},
    {"GridsOfManyDimensions", good_op, "grid = [1]", "grid = [1, 1, 1, 1]",
     R"t(x.toml:64:1: 'grid' has 4 dimensions; it has 1 to 3
  64 | grid = [1, 1, 1, 1]
     | ^~~~)t"},
    {"BlocksOfNoDimension", good_op, "block = [32]", "block = []",
     R"t(x.toml:65:1: 'block' has 0 dimensions; it has 1 to 3
  65 | block = []
     | ^~~~~)t"},
    {"LetsOfOtherParameters", good_op, "grid = [1]", R"t(grid = ["parts"])t",
     R"t(x.toml:64:10: 'parts' uses the parameter 'BLOCK', which this variant does not have
  64 | grid = ["parts"]
     |          ^~~~~)t"},
    {"ArgumentsThatNameNothing", good_op, R"t("factor", "i64(step)")t", R"t("facto", "i64(step)")t",
     R"t(x.toml:58:30: unknown name 'facto' in an argument; did you mean 'factor'?
  58 | args = ["x", "y", "i32(n)", "facto", "i64(step)", "partial"]
     |                              ^~~~~)t"},
    {"ArgumentsWithoutWidth", good_op, R"t("i32(n)")t", R"t("n")t",
     R"t(x.toml:58:20: the argument 'n' is a number without a width; write i32(n), i64(n) or f32(n)
  58 | args = ["x", "y", "n", "factor", "i64(step)", "partial"]
     |                    ^)t"},
    {"ArgumentsWithoutWidthInAConditional", good_op, R"t("i32(n)")t", R"t("zero ? i32(n) : n + 1")t",
     R"t(x.toml:58:36: the argument 'n + 1' is a number without a width; write i32(n + 1), i64(n + 1) or f32(n + 1)
  58 | args = ["x", "y", "zero ? i32(n) : n + 1", "factor", "i64(step)", "partial"]
     |                                    ^~~~~)t"},
    {"LiteralArguments", good_op, R"t("i32(n)")t", "32",
     R"t(x.toml:58:19: the argument '32' is a number without a width; write i32(32), i64(32) or f32(32)
  58 | args = ["x", "y", 32, "factor", "i64(step)", "partial"]
     |                   ^~)t"},
    {"ArgumentsOfOtherScratch", good_op, R"t(args = ["x", "y"])t", R"t(args = ["x", "y", "partial"])t",
     R"t(x.toml:66:20: unknown name 'partial' in an argument; the tensors are x and y, the scalar is factor, the free stride is step, the fields are n, dtype, zero and note, the [let] names are half and parts
  66 | args = ["x", "y", "partial"]
     |                    ^~~~~~~)t"},
    {"FreeStridesInConstraints", good_op, R"t(holds = "BLOCK <= max_threads")t", R"t(holds = "step % 4 == 0")t",
     R"t(x.toml:50:10: 'step' is a free stride, which a constraint cannot use; it takes parameters, fields, [let] names, limits of the device and align() and contiguous() of tensors
  50 | holds = "step % 4 == 0"
     |          ^~~~)t"},
    {"TensorMapsOfNothing", good_op, R"t(args = ["x", "y"])t", R"t(args = ["x", { tensor_map = "z", box = [8] }])t",
     R"t(x.toml:66:29: there is no tensor 'z'; the tensors are x and y
  66 | args = ["x", { tensor_map = "z", box = [8] }]
     |                             ^~~)t"},
    {"Swizzles", good_op, R"t(args = ["x", "y"])t", R"t(args = ["x", { tensor_map = "y", box = [8], swizzle = 48 }])t",
     R"t(x.toml:66:55: a swizzle is 0, 32, 64 or 128 bytes
  66 | args = ["x", { tensor_map = "y", box = [8], swizzle = 48 }]
     |                                                       ^~)t"},
    {"Boxes", good_op, R"t(args = ["x", "y"])t", R"t(args = ["x", { tensor_map = "y", box = [] }])t",
     R"t(x.toml:66:34: a box has 1 to 5 dimensions
  66 | args = ["x", { tensor_map = "y", box = [] }]
     |                                  ^~~)t"},
    {"BoxesOfTensors", good_op, R"t(args = ["x", "y"])t", R"t(args = ["x", { tensor_map = "y", box = ["x"] }])t",
     R"t(x.toml:66:42: 'x' is a tensor, which a box cannot use; it takes parameters, fields, [let] names, limits of the device and align() and contiguous() of tensors
  66 | args = ["x", { tensor_map = "y", box = ["x"] }]
     |                                          ^)t"},
    {"TensorMapsInAGrid", good_op, "grid = [1]", R"t(grid = [{ tensor_map = "y", box = [1] }])t",
     R"t(x.toml:64:9: a tensor map is an argument; it cannot stand here
  64 | grid = [{ tensor_map = "y", box = [1] }]
     |         ^)t"},
    {"Architectures", good_op, R"t(needs = "cc >= 80")t", R"t(arch = "sm90")t",
     R"t(x.toml:43:8: 'sm90' is no architecture: sm_90, sm_90a
  43 | arch = "sm90"
     |        ^~~~~~)t"},
    {"OptionsThatAreNone", good_op, R"t(needs = "cc >= 80")t", R"t(options = ["O3"])t",
     R"t(x.toml:43:12: 'O3' is no option of the compiler: it starts with -
  43 | options = ["O3"]
     |            ^~~~)t"},
    {"OptionsThatNameAFile", good_op, R"t(needs = "cc >= 80")t", R"t(options = ["-DX=1", "--time=times.csv"])t",
     R"t(x.toml:43:21: '--time=times.csv' is not among the options that an op may give: floating point, optimisation, warnings, -D, -U, -std, and those of ptxas; none that names a file
  43 | options = ["-DX=1", "--time=times.csv"]
     |                     ^~~~~~~~~~~~~~~~~~)t"},
    {"OptionsOfPtxasThatNameAFile", good_op, R"t(needs = "cc >= 80")t", R"t(options = ["--ptxas-options=-O2,-o,x"])t",
     R"t(x.toml:43:12: '--ptxas-options=-O2,-o,x' hands ptxas '-o', which is not among the options that an op may give it
  43 | options = ["--ptxas-options=-O2,-o,x"]
     |            ^~~~~~~~~~~~~~~~~~~~~~~~~~)t"},
    {"OptionsThatSetTheArchitecture", good_op, R"t(needs = "cc >= 80")t", R"t(options = ["-arch=sm_90"])t",
     R"t(x.toml:43:12: the architecture is said by arch = "sm_90a", not by an option
  43 | options = ["-arch=sm_90"]
     |            ^~~~~~~~~~~~~)t"},
    {"Spills", good_op, R"t(needs = "cc >= 80")t", "spill_bytes = -1",
     R"t(x.toml:43:15: spill_bytes is from 0 to 1000000
  43 | spill_bytes = -1
     |               ^~)t"},
    {"PlaceholdersWithoutTemplates", good_op, R"t(entry = "scale"
needs)t", R"t(entry = "scale<{BLOCK}>"
needs)t",
     R"t(x.toml:42:9: entry 'scale<{BLOCK}>' names template arguments; that takes parameters_as = "template"
  42 | entry = "scale<{BLOCK}>"
     |         ^~~~~~~~~~~~~~~~)t"},
    {"UnknownPlaceholders", good_op, R"t(entry = "scale"
needs)t", R"t(parameters_as = "template"
entry = "scale<{BLOK}>"
needs)t",
     R"t(x.toml:43:9: '{BLOK}' in the entry is no parameter and no define; did you mean 'BLOCK'?
  43 | entry = "scale<{BLOK}>"
     |         ^~~~~~~~~~~~~~~)t"},
    {"OpenPlaceholders", good_op, R"t(entry = "scale"
needs)t", R"t(parameters_as = "template"
entry = "scale<{BLOCK>"
needs)t",
     R"t(x.toml:43:9: entry 'scale<{BLOCK>' has a { that is not closed
  43 | entry = "scale<{BLOCK>"
     |         ^~~~~~~~~~~~~~~)t"},
    {"NoOutput", good_op, R"t(role = "out")t", R"t(role = "in")t",
     R"t(x.toml:2:6: op 'scale' has no output: a [[tensor]] with role "out" or "inout"
  2 | op = "scale"
    |      ^~~~~~~)t"},
    {"ExtensionsOfNothing", good_extension, R"t("scale"
[[)t", R"t("scal"
[[)t",
     R"t(x.toml:2:11: there is no op 'scal' to extend
  2 | extends = "scal"
    |           ^~~~~~
help: autotune ops)t"},
    {"ExtensionsThatSayTooMuch", good_extension, "[[kernel]]", R"t([work]
flops = 1
[[kernel]])t",
     R"t(x.toml:3:2: 'work' has no place in a file that extends 'scale'; it takes summary, let and kernel
  3 | [work]
    |  ^~~~)t"},
    {"ExtensionsWithoutAVariant", good_extension, R"t([[kernel]]
name = "mine"
source = "scale.cu"
entry = "mine"
[[kernel.launch]]
grid = ["half"]
block = [32]
args = ["x", "y", "i64(step)"]
)t", "",
     R"t(x.toml:2:11: the file adds no [[kernel]] to 'scale'
  2 | extends = "scale"
    |           ^~~~~~~)t"},
    {"ExtensionsThatRepeatAVariant", good_extension, R"t("mine"
source)t", R"t("plain"
source)t",
     R"t(x.toml:4:8: there are two variants 'plain'; each has a name of its own
  4 | name = "plain"
    |        ^~~~~~~)t"},
    {"ExtensionsThatNameNothing", good_extension, R"t("half")t", R"t("hulf")t",
     R"t(x.toml:8:10: unknown name 'hulf' in a grid; did you mean 'half'?
  8 | grid = ["hulf"]
    |          ^~~~)t"},
};
// clang-format on

const MemoryFiles& files() {
    static const MemoryFiles files{{{"scale.cu", "#include \"lane.cuh\"\n"},
                                    {"lane.cuh", ""},
                                    {"scale.cpp", ""},
                                    {"y.npy", ""},
                                    {"big.cu", std::string((4u << 20) + 1, ' ')}}};
    return files;
}

LoadOptions with_scale() {
    static const Op scale = load_op(good_op, files(), "scale.toml");
    LoadOptions options;
    options.known = [](std::string_view name) { return name == "scale" ? &scale : nullptr; };
    return options;
}

std::string message_of(const std::string& text) {
    try {
        (void)load_op(text, files(), "x.toml", with_scale());
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        return error.help().empty() ? error.what() : std::string{error.what()} + "\nhelp: " + error.help();
    }
    return "no error";
}

TEST(OpErrors, SayWhereWhatAndWhatWouldBeRight) {
    for (const Row& row : rows) {
        SCOPED_TRACE(row.name);
        std::string text = row.file;
        const std::size_t at = text.find(row.from);
        ASSERT_NE(at, std::string::npos);
        text.replace(at, std::string{row.from}.size(), row.to);
        EXPECT_EQ(message_of(text), row.message);
    }
}

TEST(OpErrors, AreNoneForTheGoodFiles) {
    EXPECT_EQ(message_of(good_op), "no error");
    EXPECT_EQ(message_of(good_extension), "no error");
}

}  // namespace
}  // namespace autotune

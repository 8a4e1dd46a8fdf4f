#ifndef AUTOTUNE_LOADER_USER_REFERENCE_H
#define AUTOTUNE_LOADER_USER_REFERENCE_H

#include <chrono>
#include <filesystem>
#include <string>

#include "tuner/model/op.h"

namespace autotune {

struct HostCompiler {
    std::string program = "c++";  ///< found by PATH; takes the options of g++ and clang++
    std::filesystem::path cache;  ///< a folder of ours alone; made when it is not there
    std::chrono::milliseconds timeout{60'000};
};

/// Whether the op's host code `file` (its reference's or input generator's) is a user's that has to be compiled, not a
/// built-in one that is linked in.
bool has_user_code(const Op& op, const std::string& file);

/// Compiles a C++ file of a user's op into a shared library that defines `autotune_reference` or `autotune_inputs`, and
/// returns its path. The file is built from `op.files` alone, in a folder of its own, with the headers of
/// autotune/reference.hpp; a library of the same text, headers and compiler is built once and found again.
/// The user consents by naming the op's folder; the library runs in a worker process only.
/// throws  Error{compile} when there is no such compiler; Error{usage} with the compiler's words when the file does not
///         compile, takes longer than the timeout (the compiler and its children are then killed), or when the cache
///         folder is open to other users
std::filesystem::path compile_user_code(const Op& op, const std::string& file, const HostCompiler& compiler);

}  // namespace autotune
#endif

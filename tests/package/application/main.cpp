// What an application includes of autotune compiles, and the libraries link.
#include <autotune/dtype.h>
#include <autotune/error.h>
#include <autotune/reference.hpp>

#include <cstdio>

int main() {
    try {
        throw autotune::Error{autotune::Error::Kind::usage, "made up"};
    } catch (const autotune::Error& error) {
        if (autotune::exit_code(error.kind()) != 1) return 1;
    }
    std::printf("%s has %zu bytes\n", autotune::name_of(autotune::DType::bf16).data(), autotune::size_of(autotune::DType::bf16));
    return autotune::size_of(autotune::DType::bf16) == 2 ? 0 : 1;
}

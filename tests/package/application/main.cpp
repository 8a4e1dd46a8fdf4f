// The part of a dispatch that needs no GPU: the built-in ops are in the library, and bad use is an error with a sentence.
#include <autotune/dispatcher.h>
#include <autotune/error.h>
#include <autotune/reference.hpp>

#include <cstdio>

int main() {
    autotune::Dispatcher dispatcher{{.user_database = false}};
    if (!dispatcher.prepare("softmax", {{"dtype", "bf16"}})) return 1;
    try {
        dispatcher.prepare("softmx");
        return 1;
    } catch (const autotune::Error& error) {
        std::puts(error.what());
        return error.kind() == autotune::Error::Kind::usage ? 0 : 1;
    }
}

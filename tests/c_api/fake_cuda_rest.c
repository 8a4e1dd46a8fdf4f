/* Every driver call that autotune looks for, as a weak name of one function: fake_cuda.c has those that do something.
 */
#include <cuda.h> /* its macros give the exported names */

__attribute__((used)) static int fake_cuda_not_supported(void) { return 801; }

#define TEXT(name) #name
#define WEAK(symbol) __asm__(".weak " symbol "\n.set " symbol ", fake_cuda_not_supported");
#define DRIVER_CALL(name) WEAK(TEXT(name))
#define DRIVER_CALL_OPTIONAL(name) WEAK(TEXT(name))
#define DRIVER_CALL_AS(name, symbol) WEAK(symbol)
#include "device/driver_calls.def"

/// layernorm: each row around its mean, as norm.h has it.
#include "tuner/references/norm.h"

AUTOTUNE_REFERENCE(layernorm) { autotune::norm(call, autotune::Centre::mean); }

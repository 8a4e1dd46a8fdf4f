/// rmsnorm: each row around 0, as norm.h has it.
#include "tuner/references/norm.h"

AUTOTUNE_REFERENCE(rmsnorm) { autotune::norm(call, autotune::Centre::zero); }
